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
UNNUMBERED = {
    "openai responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "openai code": '{"error":{"code":"context_length_exceeded","message":"Too long."}}',
    "bedrock": "Input is too long for requested model.",
    "bedrock, other words": "prompt is too long",
    "ollama": "the prompt is longer than the context length currently available to the model",
    "groq": "Please reduce the length of the messages or completion.",
    "minimax": "invalid params, context window exceeds limit",
    "another local server": "the number of tokens to keep is greater than the context length",
    "llama.cpp by type": '{"error":{"type":"exceed_context_size_error","n_prompt_tokens":9412,"n_ctx":8192}}',
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
    "a bad parameter": (400, "max_tokens: must be positive", "invalid_request"),
    "an unknown model": (404, "model: nope", "invalid_request"),
}


@pytest.mark.parametrize("dialect", sorted(NUMBERED))
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_numbers_are_read_the_right_way_round(dialect: str, wrapped: bool) -> None:
    text, actual, maximum = NUMBERED[dialect]
    body = json.dumps({"type": "error", "error": {"message": text}}) if wrapped else text
    assert read_failure(400, body) == ("over_length", "reassemble", actual, maximum)


@pytest.mark.parametrize("dialect", sorted(UNNUMBERED))
def test_words_without_numbers_are_enough(dialect: str) -> None:
    assert read_failure(400, UNNUMBERED[dialect]) == ("over_length", "reassemble", None, None)


@pytest.mark.parametrize("case", sorted(OTHER))
def test_other_refusals_are_not_taken_for_length(case: str) -> None:
    status, text, code = OTHER[case]
    assert read_failure(status, text).code == code


def test_a_hostile_body_costs_no_time() -> None:
    body = "maximum context length is 1 tokens" + "(" * 200_000
    assert read_failure(400, body).code == "over_length"
