"""The wordings that hosts and servers use at present: too long, too often, used up, and troubles of their own."""

from __future__ import annotations

import json

import pytest

from ctxengine.providers.failures import read_failure

OVER_LENGTH: dict[str, tuple[str, int | None, int | None]] = {
    "vllm": (
        "You passed 98305 input tokens and requested 32768 output tokens. However, the model's context length is only "
        "131072 tokens, resulting in a maximum input length of 98304 tokens. Please reduce the length of the input "
        "prompt. (parameter=input_tokens, value=98305)",
        98_305,
        98_304,
    ),
    "vllm, by characters": (
        "You passed 500000 input characters and requested 512 output tokens. However, the model's context length is only "
        "32768 tokens, resulting in a maximum input length of 32256 tokens (at most 258048 characters).",
        None,
        32_256,
    ),
    "vllm, where the window alone is stated": (
        "However, the model's context length is only 131072 tokens.",
        None,
        131_072,
    ),
    "vllm, characters beside the output asked for": (
        "This model's maximum context length is 32768 tokens. However, you requested 512 output tokens and your prompt "
        "contains 200000 characters (more than 131072 characters, which is the upper bound for 32768 input tokens).",
        None,
        32_768,
    ),
    "vllm, in full": (
        "This model's maximum context length is 32768 tokens. However, you requested 512 output tokens and your prompt "
        "contains 32836 input tokens, for a total of 33348 tokens (32836 + 512 = 33348 > 32768).",
        32_836,
        32_768,
    ),
    "vllm, no output asked for": (
        "This model's maximum context length is 262144 tokens. However, your request has 1000010 input tokens. Please "
        "reduce the length of the input messages. None",
        1_000_010,
        262_144,
    ),
    "deepseek and azure": (
        "This model's maximum context length is 131072 tokens. However, you requested 140123 tokens (135123 in the "
        "messages, 5000 in the completion). Please reduce the length of the messages or completion.",
        135_123,
        131_072,
    ),
    "openrouter's poolside": (
        "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
        131_393,
        131_040,
    ),
    "a compatible host": (
        "Input length (265330) exceeds model's maximum context length (262144).",
        265_330,
        262_144,
    ),
    "sglang": (
        "Input length (265330 tokens) exceeds the maximum allowed length (262144 tokens). Use a shorter input.",
        265_330,
        262_144,
    ),
    "sglang and together": (
        "The input (516368 tokens) is longer than the model's context length (262144 tokens).",
        516_368,
        262_144,
    ),
    "a server on a desk": (
        "Prompt has 5,958,968 tokens, but the configured context size is 256,000 tokens",
        5_958_968,
        256_000,
    ),
    "mistral": ("Prompt 262280 > 262144 maximum context length", 262_280, 262_144),
    "bedrock": (
        "Too many input tokens. Max input tokens: 8192, request input token count: 9279",
        9_279,
        8_192,
    ),
    "gemini, the maximum alone": (
        "The input token count exceeds the maximum number of tokens allowed 1048576.",
        None,
        1_048_576,
    ),
    "vertex": (
        "Unable to submit request because the input token count is 1200000 but model only supports up to 1048576.",
        1_200_000,
        1_048_576,
    ),
    "cohere": (
        "too many tokens: size limit exceeded by 19296 tokens. Try using shorter or fewer inputs. The limit for this "
        "model is 132000 tokens.",
        None,
        132_000,
    ),
    "lmstudio": (
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 10247>= n_ctx: "
        "4096). Try to load the model with a larger context length.",
        None,
        4_096,
    ),
    "lmstudio, earlier": (
        "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)",
        None,
        7_424,
    ),
    "cloudflare": (
        "AiError: The estimated number of input and maximum output tokens (35000) exceeded this model context window "
        "limit (24000)",
        None,
        24_000,
    ),
    "xunfei": (
        "InternalError.Algo.InvalidParameter: Range of input length should be [1, 202745]",
        None,
        202_745,
    ),
    "cohere without the limit": (
        "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs.",
        None,
        None,
    ),
    "z.ai by number 1210": ("tokens in request more than max tokens allowed", None, None),
    "z.ai in other words": (
        "The number of tokens in the prompt exceeds the maximum context length of the model",
        None,
        None,
    ),
    "together": (
        "Input token count + max_tokens parameter must be less than the context length of the model being queried.",
        None,
        None,
    ),
    "gemini without figures": (
        "The input token count exceeds the maximum number of tokens allowed.",
        None,
        None,
    ),
    "bedrock Converse": (
        "The model returned the following errors: Input is too long for requested model.",
        None,
        None,
    ),
    "llama.cpp without figures": (
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        None,
        None,
    ),
    "all messages": ("The total length of all messages is too long.", None, None),
    "ollama": ("input length exceeds maximum context length", None, None),
}
"""Text, tokens counted, maximum."""

WRAPS = {
    "bare": "{text}",
    "a JSON text": "{json}",
    "openai": '{{"error":{{"message":{json},"type":"invalid_request_error","param":"messages","code":null}}}}',
    "anthropic": '{{"type":"error","error":{{"type":"invalid_request_error","message":{json}}}}}',
    "vllm": '{{"error":{{"message":{json},"type":"BadRequestError","param":"input_tokens","code":400}}}}',
    "flat": '{{"object":"error","message":{json},"type":"invalid_request_error","code":"3051"}}',
    "ollama": '{{"error":{json}}}',
    "text generation inference": '{{"error":{json},"error_type":"validation"}}',
    "xai": '{{"code":"Client specified an invalid argument","error":{json}}}',
    "fastapi": '{{"detail":{json}}}',
    "bedrock": '{{"Message":{json}}}',
    "bedrock, in a stream": '{{"validationException":{{"message":{json}}}}}',
    "an AWS client": '{{"Error":{{"Code":"ValidationException","Message":{json}}}}}',
    "minimax": '{{"base_resp":{{"status_code":2013,"status_msg":{json}}}}}',
    "cloudflare": '{{"errors":[{{"message":{json},"code":5021}}],"success":false,"result":{{}}}}',
    "gemini": '[{{"error":{{"code":400,"message":{json},"status":"INVALID_ARGUMENT"}}}}]',
    "an event": 'event: error\ndata: {{"error":{{"message":{json}}}}}',
}
NESTED = {
    "openrouter": {
        "error": {"code": 400, "message": "Provider returned error", "metadata": {"raw": 0}}
    },
    "a router": {"error": {"message": 0, "type": None, "code": "400"}},
}
"""Bodies with another server's body as text where the 0 stands."""


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("dialect", OVER_LENGTH)
def test_a_prompt_that_was_too_long_is_read_in_every_wording_and_wrap(
    dialect: str, wrap: str
) -> None:
    text, actual, maximum = OVER_LENGTH[dialect]
    body = WRAPS[wrap].format(text=text, json=json.dumps(text))
    assert read_failure(400, body) == ("over_length", "reassemble", actual, maximum)


@pytest.mark.parametrize("dialect", OVER_LENGTH)
def test_it_is_read_where_one_server_hands_on_the_answer_of_another(dialect: str) -> None:
    text, actual, maximum = OVER_LENGTH[dialect]
    body = {"error": {"message": text, "type": "BadRequestError", "param": None, "code": 400}}
    routed = (
        f"litellm.BadRequestError: OpenAIException - {json.dumps(body)}. Received Model Group=x"
    )
    told = [
        json.dumps(NESTED["openrouter"]).replace("0}", json.dumps(json.dumps(body)) + "}"),
        json.dumps(NESTED["a router"]).replace('"message": 0', f'"message": {json.dumps(routed)}'),
        f"Error code: 400 - {body}",
        json.dumps({"error": f"Error code: 400 - {body}"}),
    ]
    for said in told:
        assert read_failure(400, said) == ("over_length", "reassemble", actual, maximum), said


OTHER = {
    "groq's flex tier": (498, '{"error":{"code":"capacity_exceeded"}}', "transient"),
    "a call that was cancelled": (499, '{"error":{"code":499,"status":"CANCELLED"}}', "transient"),
    "groq's tokens a minute": (
        413,
        '{"error":{"message":"Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7000.",'
        '"type":"tokens","code":"rate_limit_exceeded"}}',
        "rate_limited",
    ),
    "azure": (
        400,
        "Requests to the ChatCompletions_Create Operation have exceeded token rate limit of your current pricing tier.",
        "rate_limited",
    ),
    "bedrock": (
        400,
        '{"__type":"com.amazon.coral.availability#ThrottlingException"}',
        "rate_limited",
    ),
    "mistral": (429, '{"object":"error","message":"Requests rate limit exceeded"}', "rate_limited"),
    "cerebras": (
        400,
        '{"message":"Tokens per minute limit exceeded - too many tokens processed.","type":"too_many_tokens_error"}',
        "rate_limited",
    ),
    "gemini, with the words of a bill": (
        429,
        '{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota, please check '
        'your plan and billing details."}}',
        "rate_limited",
    ),
    "moonshot, suspended": (
        429,
        '{"error":{"message":"Your account is suspended, please recharge","type":"exceeded_current_quota_error"}}',
        "auth",
    ),
    "moonshot, by its words": (
        429,
        '{"error":{"message":"Your account is suspended due to insufficient balance, please recharge your account"}}',
        "auth",
    ),
    "openai, a hard limit": (429, '{"error":{"code":"billing_hard_limit_reached"}}', "auth"),
    "openai, the account is not active": (
        429,
        '{"error":{"message":"Your account is not active, please check your billing details on our website."}}',
        "auth",
    ),
    "gemini, paid in advance": (
        429,
        '{"error":{"status":"RESOURCE_EXHAUSTED","message":"Your prepayment credits are depleted."}}',
        "auth",
    ),
    "gemini, a cap for the month": (
        429,
        '{"error":{"status":"RESOURCE_EXHAUSTED","message":"Your billing account has exceeded its monthly spending cap."}}',
        "auth",
    ),
    "anthropic, a limit of one's own": (
        400,
        '{"error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits."}}',
        "auth",
    ),
    "z.ai": (429, '{"error":{"code":"1113","message":"账户余额不足"}}', "auth"),
    "cohere, more output than the model gives": (
        400,
        "too many tokens: max tokens must be less than or equal to 4096, the maximum output length for this model - "
        "received 1000000.",
        "invalid_request",
    ),
    "vllm, more output than the window": (
        400,
        "max_tokens=140000 cannot be greater than max_model_len=max_total_tokens=131072.",
        "invalid_request",
    ),
    "a role that is used up": (
        400,
        '{"error":{"type":"invalid_request_error","message":"Invalid role.","param":"insufficient_quota"}}',
        "invalid_request",
    ),
    "a schema that counts tokens a minute": (
        400,
        '{"error":{"type":"invalid_request_error","message":"Invalid schema for function shops: in context=(), '
        'Counts tokens per minute of each shop is not valid.","code":"invalid_function_parameters"}}',
        "invalid_request",
    ),
    "a rate limit whose type is that of an invalid request": (
        400,
        '{"error":{"type":"invalid_request_error","code":"rate_limit_exceeded","message":"tokens per minute"}}',
        "rate_limited",
    ),
}


@pytest.mark.parametrize("case", OTHER)
def test_what_is_no_matter_of_length_is_told_apart(case: str) -> None:
    status, body, code = OTHER[case]
    assert read_failure(status, body).code == code


IN_STREAM = {
    '{"validationException":{"message":"Malformed input request"}}': "invalid_request",
    '{"validationException":{"message":"Input is too long for requested model."}}': "over_length",
    '{"throttlingException":{"message":"Too many tokens, please wait before trying again."}}': "rate_limited",
    '{"throttlingException":{}}': "rate_limited",
    '{"internalServerException":{"message":"x"}}': "transient",
    '{"modelStreamErrorException":{"message":"x","originalStatusCode":400}}': "transient",
    '{"modelTimeoutException":{"message":"x"}}': "transient",
    '{"serviceUnavailableException":{"message":"x"}}': "transient",
    '{"accessDeniedException":{"message":"x"}}': "auth",
    '{"__type":"com.amazon#ValidationException","message":"x"}': "invalid_request",
    '{"__type":"com.amazon#ThrottlingException"}': "rate_limited",
    '{"__type":"ValidationException:http://internal.amazon.com/coral/com.amazon.coral.validate/"}': "invalid_request",
    '{"Error":{"Code":"validationException","Message":"Malformed input request"}}': "invalid_request",
    '{"Error":{"Code":"ThrottlingException","Message":"x"}}': "rate_limited",
    '{"one":{"message":"x"},"validationException":{"message":"x"}}': "transient",
    '{"error":{"code":"exceeded_current_quota_error","message":"x"}}': "auth",
    '{"error":{"type":"engine_overloaded_error"}}': "transient",
    '{"error":{"code":498}}': "transient",
    '{"error":{"type":"unknown_parameter"}}': "invalid_request",
    '{"error":{"code":"stream_options_invalid"}}': "invalid_request",
    '{"error":{"code":"invalid_network_configuration"}}': "invalid_request",
    **{
        f'{{"error":{{"code":"{word}","message":"x"}}}}': "transient"
        for word in (
            *("network_error", "stream_error", "stream_terminated", "service_busy"),
            *("unknown_error", "NetworkError", "stream_closed", "stream_interrupted", "terminated"),
            *("connection_terminated", "server_busy", "ServerIsBusy", "ServiceBusyException"),
            *("busy", "model_busy", "llm.service_busy", "StreamTerminatedError", "SystemBusy"),
        )
    },
    **{
        f'{{"error":{{"code":"{word}","message":"x"}}}}': "invalid_request"
        for word in (
            *("account_terminated", "subscription_terminated", "AccountTerminated"),
            *("api_key_terminated", "project_terminated", "model_terminated", "busybox_missing"),
            *("unterminated_string", "account_busy", "terminatedAccount", "service_terminates"),
        )
    },
}


@pytest.mark.parametrize("body", IN_STREAM)
def test_an_error_inside_a_stream_is_judged_by_its_key_or_its_code(body: str) -> None:
    assert read_failure(200, body).code == IN_STREAM[body]
