"""Every dialect of "too long" (providers.md 3) is read, with its numbers the right way round; nothing else is taken for it."""

from __future__ import annotations

import json

import pytest

from ctxengine.providers.failures import read_failure

CHAT_VLLM = (
    "This model's maximum context length is 65536 tokens. However, you requested 4093 output tokens and your prompt "
    "contains at least 61444 input tokens, for a total of at least 65537 tokens."
)
OLD_VLLM = (
    "This model's maximum context length is 4096 tokens. However, you requested 6616 tokens (568 in the messages, 6048 in "
    "the completion). Please reduce the length of the messages or completion."
)
OPENROUTER = (
    "This endpoint's maximum context length is 16384 tokens. However, you requested about 26265 tokens (26255 of text "
    "input, 10 in the output)."
)
CONTEXT = "This model's maximum context length is 128000 tokens. However, your messages resulted in 130047 tokens."

NUMBERED = {
    "anthropic": ("prompt is too long: 213462 tokens > 200000 maximum", 213_462, 200_000),
    "anthropic with output": (
        "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000",
        199_759,
        200_000,
    ),
    "openai chat": (CONTEXT, 130_047, 128_000),
    "gemini": (
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        1_196_265,
        1_048_575,
    ),
    "openrouter": (OPENROUTER, 26_255, 16_384),
    "vllm": (CHAT_VLLM, 61_444, 65_536),
    "older vllm": (OLD_VLLM, 568, 4_096),
    "vllm, the answer too long": (
        "'max_tokens' is too large: 100000. This model's maximum context length is 131072 tokens and your request has "
        "32000 input tokens (100000 > 131072 - 32000).",
        32_000,
        131_072,
    ),
    "llama.cpp": (
        "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it",
        9_412,
        8_192,
    ),
    "mistral": (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        40_000,
        32_768,
    ),
    "xai": (
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        537_812,
        131_072,
    ),
    "moonshot": (
        "Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)",
        9_000,
        8_192,
    ),
    "copilot": ("prompt token count of 70000 exceeds the limit of 64000", 70_000, 64_000),
    "venice": (
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        9_000,
        8_192,
    ),
}
NUMBERED |= {
    "openai, by configuration": (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300123 tokens.",
        300_123,
        272_000,
    ),
    "thousands in groups": (
        "prompt is too long: 213,462 tokens > 200,000 maximum",
        213_462,
        200_000,
    ),
    "legacy completions": (
        "This model's maximum context length is 4097 tokens, however you requested 5000 tokens (4500 in your prompt; "
        "500 for the completion).",
        4_500,
        4_097,
    ),
    "sglang": (
        "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 40000 "
        "tokens: 39000 tokens from the input messages and 1000 tokens for the completion.",
        39_000,
        32_768,
    ),
    "newer vllm": (
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        5_000,
        4_096,
    ),
    "cerebras": (
        "Please reduce the length of the messages or completion. Current length is 12345 while limit is 8192",
        12_345,
        8_192,
    ),
    "cohere": (
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4090.",
        4_090,
        4_081,
    ),
    "text generation inference": (
        "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8300 `inputs` tokens and 512 `max_new_tokens`",
        8_300,
        8_193,
    ),
    "fireworks": (
        "The prompt is too long: 9000, model maximum context length: 8192",
        9_000,
        8_192,
    ),
    "vertex": (
        "the input token count is 1200000 but model only supports up to 1048576.",
        1_200_000,
        1_048_576,
    ),
    "a window in words": (
        "Your prompt contains 140000 tokens, which exceeds the context window of 131072 tokens",
        140_000,
        131_072,
    ),
    "moonshot, the maximum alone": (
        "Invalid request: Your request exceeded model token limit: 8192",
        None,
        8_192,
    ),
    "qwen": ("Range of input length should be [1, 30720]", None, 30_720),
    "a desktop runner": (
        "Trying to keep the first 5000 tokens. However, the model is loaded with context length of only 4096 tokens",
        None,
        4_096,
    ),
    "github models": (
        "Request body too large for gpt-4o model. Max size: 8000 tokens.",
        None,
        8_000,
    ),
    "a router": (
        "ContextWindowExceededError: input exceeds the model's maximum context length of 65,536 tokens",
        None,
        65_536,
    ),
}
LLAMA = '{"error":{"type":"exceed_context_size_error","n_prompt_tokens":9412,"n_ctx":8192}}'
UNNUMBERED = {
    "openai responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "openai code": '{"error":{"code":"context_length_exceeded","message":"Too long."}}',
    "bedrock": "Input is too long for requested model.",
    "bedrock, other words": "prompt is too long",
    "ollama": "the prompt is longer than the context length currently available to the model",
    "groq": "Please reduce the length of the messages or completion.",
    "minimax": "invalid params, context window exceeds limit",
    "another local server": "the number of tokens to keep is greater than the context length",
    "llama.cpp by type": '{"error":{"type":"exceed_context_size_error"}}',
    "ollama, other words": "prompt too long; exceeded max context length by 12 tokens",
    "nova": "Input Tokens Exceeded: Number of input tokens exceeds maximum length.",
    "z.ai": "Prompt exceeds max length",
    "openrouter's word for it": '{"error":{"type":"token_limit_exceeded"}}',
    "other languages": "输入长度超过模型限制",
}
OTHER = {
    "a rate limit in the words of one on length": (
        413,
        "Request too large on tokens per minute (TPM): Limit 6000, Requested 9000",
        "rate_limited",
    ),
    "a rate limit of Bedrock": (
        400,
        "Too many tokens, please wait before trying again.",
        "rate_limited",
    ),
    "429": (429, CONTEXT, "rate_limited"),
    "too many bytes": (413, "Request exceeds the maximum size", "too_large"),
    "Vertex, with the status of too many bytes": (413, "Prompt is too long", "over_length"),
    "a bad key": (401, "invalid x-api-key", "auth"),
    "a key without the right": (403, "not allowed", "auth"),
    "overloaded": (529, "Overloaded", "transient"),
    "a broken server that quotes the words": (500, "prompt is too long", "transient"),
    "a slow client": (408, "", "transient"),
    "two calls at once": (409, "conflict", "transient"),
    "a limit of tokens a minute": (
        400,
        "Rate limit reached on tokens per min (TPM)",
        "rate_limited",
    ),
    "an account that is used up": (
        429,
        '{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}',
        "auth",
    ),
    "a balance that is used up": (400, "Your credit balance is too low to access the API", "auth"),
    "no credits": (402, "Insufficient credits", "auth"),
    "a bad parameter": (400, "max_tokens: must be positive", "invalid_request"),
    "an unknown model": (404, "model: nope", "invalid_request"),
    "more output than the model gives": (
        400,
        "max_tokens_exceeded: 128000 > 64000, which is the maximum allowed number of output tokens",
        "invalid_request",
    ),
    "more output, in other words": (
        400,
        "'max_tokens' exceeded; too many tokens requested for output",
        "invalid_request",
    ),
    "a request that is quoted": (
        400,
        '{"detail":[{"msg":"Input should be a string","input":"Implement a rate limiter: too many requests"}]}',
        "invalid_request",
    ),
    "a message that quotes": (
        400,
        '{"error":{"message":"Invalid messages[3]: we throttle uploads by a rate limit"}}',
        "invalid_request",
    ),
    "a stated length beside a rate limit's name": (
        400,
        '{"error":{"message":"prompt is too long: 213462 tokens > 200000 maximum"},"num_retries_rate_limit":2}',
        "over_length",
    ),
    "a rate limit by its message": (
        400,
        '{"error":{"message":"Rate limit exceeded, try later"}}',
        "rate_limited",
    ),
    "a rate limit by its code": (
        400,
        '{"error":{"code":"rate_limit_exceeded","message":"x"}}',
        "rate_limited",
    ),
    "a rate limit as a string": (400, '{"error":"Too many requests"}', "rate_limited"),
    "a conflict with a code": (
        409,
        '{"error":{"type":"invalid_request_error","details":{"error_code":"thread_already_continued"}}}',
        "invalid_request",
    ),
    "a conflict by its code": (409, '{"error":{"type":"conflict_error"}}', "transient"),
}


@pytest.mark.parametrize("dialect", sorted(NUMBERED))
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_numbers_are_read_the_right_way_round(dialect: str, wrapped: bool) -> None:
    text, actual, maximum = NUMBERED[dialect]
    body = json.dumps({"type": "error", "error": {"message": text}}) if wrapped else text
    assert read_failure(400, body) == ("over_length", "reassemble", actual, maximum)


IN_STREAM = {
    '{"type":"error","error":{"type":"overloaded_error"}}': "transient",
    '{"type":"error","error":{"type":"rate_limit_error"}}': "rate_limited",
    '{"type":"error","code":"rate_limit_exceeded","message":"x"}': "rate_limited",
    '{"error":{"code":502,"message":"Provider returned error"}}': "transient",
    '{"error":{"code":400,"message":"prompt is too long: 30 tokens > 20 maximum"}}': "over_length",
    '{"status":"failed","error":{"code":"context_length_exceeded"}}': "over_length",
    '{"type":"response.failed","response":{"error":{"code":"server_error"}}}': "transient",
    '{"type":"response.failed","response":{"error":{"code":"invalid_prompt"}}}': "invalid_request",
    "prompt is too long: 213462 tokens > 200000 maximum": "over_length",
    '{"error":{"code":"400","message":"Provider returned error"}}': "invalid_request",
    '{"error":{"code":"502","message":"Provider returned error"}}': "transient",
    '{"type":"response.failed","response":{"error":{"code":"invalid_base64_image"}}}': "invalid_request",
    '{"type":"error","error":{"type":"cyber_policy_violation"}}': "invalid_request",
    '{"error":{"type":"BadRequestError","code":"invalid_function_parameters"}}': "invalid_request",
    '{"error":{"code":"invalid_api_key"}}': "auth",
    '{"promptFeedback":{"blockReason":"SAFETY"}}': "invalid_request",
    '{"error":{"type":"ThrottlingException"}}': "rate_limited",
    '{"error":{"status":"UNAVAILABLE","code":14}}': "transient",
    '{"error":{"type":"upstream_error"}}': "transient",
    '{"type":"error","message":"Something went wrong."}': "transient",
    '{"status":"cancelled","output":[],"error":null}': "transient",
    "the connection broke off": "transient",
    "": "transient",
}


@pytest.mark.parametrize("body", IN_STREAM)
def test_an_error_inside_a_stream_that_began_well_is_judged_by_its_words(body: str) -> None:
    assert read_failure(200, body).code == IN_STREAM[body]


def test_figures_that_stand_as_fields_are_read() -> None:
    assert read_failure(400, LLAMA) == ("over_length", "reassemble", 9_412, 8_192)


@pytest.mark.parametrize("dialect", sorted(UNNUMBERED))
def test_words_without_numbers_are_enough(dialect: str) -> None:
    assert read_failure(400, UNNUMBERED[dialect]) == ("over_length", "reassemble", None, None)


@pytest.mark.parametrize("case", sorted(OTHER))
def test_other_refusals_are_not_taken_for_length(case: str) -> None:
    status, text, code = OTHER[case]
    assert read_failure(status, text).code == code


def test_a_hostile_body_costs_no_time() -> None:
    for filler in ("(", "9", "1,000", "maximum context length is 1 tokens "):
        body = "maximum context length is 1 tokens" + filler * (200_000 // len(filler))
        assert read_failure(400, body).code == "over_length"
