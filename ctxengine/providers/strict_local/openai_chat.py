"""OpenAI Chat Completions: checks, prompt, answer and stream."""

from __future__ import annotations

from dataclasses import replace

from ctxengine.engine.wire.base import WireApi
from ctxengine.providers.strict_local.cache_openai import CacheUsage
from ctxengine.providers.strict_local.counting import Counter, inline_data
from ctxengine.providers.strict_local.exchange import (
    Answer,
    Call,
    Json,
    dump,
    json_answer,
    object_of,
    objects,
    pieces,
    plain_event,
    text_of,
)
from ctxengine.providers.strict_local.models import reasons, scripted_name
from ctxengine.providers.strict_local.openai_request import (
    Request,
    bare,
    has_breakpoint,
    read,
    seed_of,
    serve_cache,
    unsupported,
)
from ctxengine.providers.strict_local.refusal import Refusal
from ctxengine.providers.strict_local.rules import refuse_breaches
from ctxengine.providers.strict_local.rules_openai import CHAT, missing
from ctxengine.providers.strict_local.script import Offer, Turn, View
from ctxengine.providers.strict_local.segments import Chain, Segment, chain_of
from ctxengine.providers.strict_local.signatures import digest
from ctxengine.providers.strict_local.speaking import Limits, Spoken, refuse_by_script, speak
from ctxengine.providers.strict_local.state import State

_FIELDS = frozenset(
    {
        "messages", "model", "audio", "frequency_penalty", "function_call", "functions",
        "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "metadata", "modalities",
        "moderation", "n", "parallel_tool_calls", "prediction", "presence_penalty",
        "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning_effort",
        "response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream",
        "stream_options", "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user",
        "verbosity", "web_search_options",
    }
)  # fmt: skip
_STOPS = {
    "stop": "stop", "calls": "tool_calls", "length": "length", "window": "length",
    "refusal": "stop",
}  # fmt: skip
_IMPLICIT_ROLES = frozenset({"user", "tool", "developer", "system"})
_PRIMING_TOKENS = 3


def create_completion(call: Call, state: State) -> Answer:
    """`POST /v1/chat/completions`.

    Raises:
        Refusal: anything that the API refuses.
    """
    request = read(call, state.windows, _FIELDS)
    _check(request)
    refuse_breaches(WireApi.OPENAI_CHAT, request.body, CHAT)
    chain = _prompt(request, state.counter)
    _refuse_overflow(request, chain.tokens)
    view = _view(request, chain.tokens, digest(call.body))
    reply = state.script.next(view)
    refuse_by_script(reply, "openai", request.model)
    cache = serve_cache(request, chain, _implicit(chain), state)
    limits = Limits(_asked(request), request.window.total - chain.tokens)
    spoken = speak(reply, view, limits, state.counter, state.ids, "call")
    completion = _completion(request, spoken, _usage(chain.tokens, cache, spoken), state)
    answer = json_answer(completion)
    if request.body.get("stream"):
        answer = Answer(content_type="text/event-stream", events=_stream(request, completion))
    return replace(
        answer, stall_seconds=reply.stall_seconds, cut_after_events=reply.cut_after_events
    )


def _check(request: Request) -> None:
    body = request.body
    if not isinstance(body.get("messages"), list):
        raise missing("messages")
    if not body["messages"]:
        raise Refusal(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an "
            "empty array instead.",
            param="messages",
            code="empty_array",
        )
    if "max_tokens" in body and reasons(request.model):
        raise unsupported("max_tokens", " Use 'max_completion_tokens' instead.")
    if body.get("n", 1) != 1:
        raise Refusal("Invalid 'n': this stand-in gives one choice.", param="n")
    for name in ("tool_choice", "parallel_tool_calls"):
        if body.get(name) is not None and not body.get("tools"):
            raise Refusal(
                f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified.",
                param=name,
            )
    choice = object_of(object_of(body.get("tool_choice")).get("function")).get("name")
    declared = {object_of(tool.get("function")).get("name") for tool in request.tools}
    if choice is not None and choice not in declared:
        raise Refusal(
            f"Tool choice 'function' not found in 'tools' parameter: {choice}.", param="tool_choice"
        )


def _asked(request: Request) -> int:
    asked = request.body.get("max_completion_tokens", request.body.get("max_tokens"))
    if asked is None:
        return request.window.output
    if not isinstance(asked, int) or asked < 1:
        raise Refusal(
            "Invalid 'max_completion_tokens': integer below minimum value. Expected a value >= 1, "
            f"but got {asked} instead.",
            param="max_completion_tokens",
            code="integer_below_min_value",
        )
    if asked > request.window.output:
        raise Refusal(
            f"max_tokens is too large: {asked}. This model supports at most {request.window.output} "
            f"completion tokens, whereas you provided {asked}.",
            param="max_completion_tokens",
            code="invalid_value",
        )
    return asked


def _refuse_overflow(request: Request, tokens: int) -> None:
    if tokens > request.window.total:
        raise Refusal(
            f"This model's maximum context length is {request.window.total} tokens. However, your "
            f"messages resulted in {tokens} tokens. Please reduce the length of the messages.",
            param="messages",
            code="context_length_exceeded",
        )


# --- prompt -----------------------------------------------------------------------------------------------------------


def _prompt(request: Request, counter: Counter) -> Chain:
    body, model = request.body, request.model
    settings = [
        model, body.get("parallel_tool_calls"), body.get("response_format"),
        body.get("reasoning_effort"), body.get("verbosity"), body.get("service_tier"),
    ]  # fmt: skip
    segments: list[Segment] = []
    once = counter.tools_once(model)
    for number, tool in enumerate(request.tools):
        text = dump(tool).decode()
        tokens = counter.tool(text, model) + (0 if number else once)
        segments.append(Segment("tools", text, tokens, f"tools[{number}]"))
    for number, message in enumerate(objects(body["messages"])):
        segments += _message_segments(number, message, model, counter)
    segments[0] = replace(segments[0], tokens=segments[0].tokens + _PRIMING_TOKENS)
    return chain_of(segments, (("tools", seed_of(settings)), ("messages", "")))


def _message_segments(number: int, message: Json, model: str, counter: Counter) -> list[Segment]:
    role = text_of(message.get("role"))
    path = f"messages[{number}]"
    rest = {k: v for k, v in message.items() if k not in {"role", "content", "tool_calls"}}
    head = f"{role}{dump(rest).decode() if rest else ''}:"
    made: list[Segment] = []
    for part in _parts(message):
        tokens = _part_tokens(part, model, counter)
        marker = "30m" if has_breakpoint(part) else None
        data = head + dump(bare(part)).decode()
        made.append(Segment("messages", data, tokens, path, marker=marker))
    for call in objects(message.get("tool_calls")):
        function = object_of(call.get("function")) or object_of(call.get("custom"))
        arguments = text_of(function.get("arguments")) or text_of(function.get("input"))
        tokens = counter.call(text_of(function.get("name")), arguments, model)
        made.append(Segment("messages", head + dump(call).decode(), tokens, path))
    if not made:
        made.append(Segment("messages", head, 0, path))
    first, last = made[0], len(made) - 1
    made[0] = replace(first, tokens=first.tokens + counter.message(model))
    made[last] = replace(made[last], ends_message=True)
    return made


def _parts(message: Json) -> list[Json]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return objects(content)


def _part_tokens(part: Json, model: str, counter: Counter) -> int:
    if part.get("type") == "image_url":
        _, data = inline_data(object_of(part.get("image_url")).get("url"))
        return counter.image(data, "openai", model)
    if part.get("type") == "file":
        media_type, data = inline_data(object_of(part.get("file")).get("file_data"))
        return counter.file(data, media_type, "openai", model)
    return counter.text(text_of(part.get("text")) or text_of(part.get("refusal")), model)


def _implicit(chain: Chain) -> int | None:
    for index in range(len(chain.segments) - 1, -1, -1):
        segment = chain.segments[index]
        role = segment.data.split(":", 1)[0].split("{", 1)[0]
        if segment.ends_message and role in _IMPLICIT_ROLES:
            return index
    return None


# --- answer -----------------------------------------------------------------------------------------------------------


def _usage(tokens: int, cache: CacheUsage, spoken: Spoken) -> Json:
    return {
        "prompt_tokens": tokens,
        "completion_tokens": spoken.tokens,
        "total_tokens": tokens + spoken.tokens,
        "prompt_tokens_details": {
            "cached_tokens": cache.read,
            "cache_write_tokens": cache.written,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": spoken.thinking_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _completion(request: Request, spoken: Spoken, usage: Json, state: State) -> Json:
    refused = spoken.stop == "refusal"
    message: Json = {
        "role": "assistant",
        "content": None if refused or not spoken.text else spoken.text,
        "refusal": spoken.text if refused else None,
        "annotations": [],
    }
    if spoken.calls:
        message["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in spoken.calls
        ]
    elif message["content"] is None and not refused:
        message["content"] = ""
    finish = _STOPS[spoken.stop]
    return {
        "id": state.ids.next("chatcmpl").replace("_", "-"),
        "object": "chat.completion",
        "created": int(state.clock.now()),
        "model": scripted_name(request.model),
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": usage,
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    }


def _stream(request: Request, completion: Json) -> tuple[bytes, ...]:
    choice = completion["choices"][0]
    message = choice["message"]
    head = {k: v for k, v in completion.items() if k not in {"choices", "usage"}}
    head["object"] = "chat.completion.chunk"
    with_usage = bool(object_of(request.body.get("stream_options")).get("include_usage"))
    tail: Json = {"usage": None} if with_usage else {}

    def chunk(delta: Json, finish: str | None = None) -> Json:
        made = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return head | {"choices": [made]} | tail

    chunks = [chunk({"role": "assistant", "content": None if message["content"] is None else ""})]
    for name in ("content", "refusal"):
        if message[name]:
            chunks += [chunk({name: piece}) for piece in pieces(message[name])]
    for index, call in enumerate(message.get("tool_calls", [])):
        named = {"name": call["function"]["name"], "arguments": ""}
        chunks.append(chunk({"tool_calls": [call | {"index": index, "function": named}]}))
        for piece in pieces(call["function"]["arguments"]):
            part = {"index": index, "function": {"arguments": piece}}
            chunks.append(chunk({"tool_calls": [part]}))
    chunks.append(chunk({}, choice["finish_reason"]))
    if with_usage:
        chunks.append(head | {"choices": [], "usage": completion["usage"]})
    return (*(plain_event(one) for one in chunks), b"data: [DONE]\n\n")


# --- what the rules see -----------------------------------------------------------------------------------------------


def _view(request: Request, tokens: int, body: str) -> View:
    choice = request.body.get("tool_choice", "auto")
    named = object_of(object_of(choice).get("function")).get("name")
    kind = {"required": "any"}.get(str(choice), str(choice)) if named is None else str(named)
    form = object_of(request.body.get("response_format"))
    schema = object_of(object_of(form.get("json_schema")).get("schema")) if form else None
    functions = [object_of(tool.get("function")) for tool in request.tools]
    return View(
        api="openai",
        model=request.model,
        tokens=tokens,
        turns=tuple(_turn(message) for message in objects(request.body["messages"])),
        offers=tuple(
            Offer(text_of(f.get("name")), object_of(f.get("parameters"))) for f in functions
        ),
        choice=kind,
        answer_schema=None if form.get("type") == "text" else schema,
        body_digest=body,
    )


def _turn(message: Json) -> Turn:
    role = text_of(message.get("role"))
    texts = tuple(text_of(part.get("text")) for part in _parts(message) if part.get("text"))
    if role == "tool":
        return Turn("tool", results=("\n".join(texts),))
    calls = [object_of(call.get("function")) for call in objects(message.get("tool_calls"))]
    return Turn(role, texts, calls=tuple(text_of(call.get("name")) for call in calls))
