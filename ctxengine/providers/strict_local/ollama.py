"""Ollama's `/api/chat` and the few calls that tell about its models (providers.md 0, 2.3, 3)."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import replace
from datetime import UTC, datetime

from ctxengine.engine.wire.rule import loads
from ctxengine.providers.strict_local.exchange import (
    Answer,
    Call,
    Json,
    dump,
    json_answer,
    object_of,
    objects,
    pieces,
    text_of,
)
from ctxengine.providers.strict_local.models import Window, scripted_name, window_of
from ctxengine.providers.strict_local.refusal import Refusal
from ctxengine.providers.strict_local.script import Offer, Turn, View
from ctxengine.providers.strict_local.signatures import digest
from ctxengine.providers.strict_local.speaking import Limits, Spoken, refuse_by_script, speak
from ctxengine.providers.strict_local.state import State

_ROLES = frozenset({"system", "user", "assistant", "tool"})
_TOO_LONG = "the prompt is longer than the context length currently available to the model"
_LISTED = ("strict/horizon-4k", "strict/horizon-16k")
_NANOSECONDS = 1_000_000


def chat(call: Call, state: State) -> Answer:
    """`POST /api/chat`.

    Raises:
        Refusal: anything that the API refuses.
    """
    body = _read(call)
    model = text_of(body.get("model"))
    window = _window(body, model, state)
    messages = objects(body.get("messages"))
    for number, message in enumerate(messages):
        _check(number, message)
    kept = _fitted(body, messages, window, model, state)
    if not messages:
        return json_answer(_frame(model, state) | {"done": True, "done_reason": "load"})
    tokens = _tokens(body, kept, model, state)
    view = _view(body, kept, model, tokens, digest(call.body))
    reply = state.script.next(view)
    refuse_by_script(reply, "ollama", model)
    asked = object_of(body.get("options")).get("num_predict", window.total)
    limits = Limits(asked if isinstance(asked, int) and asked > 0 else window.total, window.total)
    spoken = speak(reply, view, limits, state.counter, state.ids, "call")
    lines = _lines(spoken, model, tokens, state)
    if body.get("stream", True):
        answer = Answer(content_type="application/x-ndjson", events=tuple(_ndjson(lines)))
    else:
        answer = json_answer(_joined(lines))
    return replace(
        answer, stall_seconds=reply.stall_seconds, cut_after_events=reply.cut_after_events
    )


def tags(state: State) -> Answer:
    """`GET /api/tags`."""
    models = [
        {"name": name, "model": name, "modified_at": _now(state), "size": 0, "digest": digest(name)}
        for name in _LISTED
    ]
    return json_answer({"models": models})


def show(call: Call, state: State) -> Answer:
    """`POST /api/show`: where a model's window is read.

    Raises:
        Refusal: no model is named.
    """
    body = _read(call)
    model = text_of(body.get("model"))
    window = window_of("ollama", model, state.windows)
    return json_answer(
        {
            "details": {"family": "strict", "format": "scripted"},
            "model_info": {
                "general.architecture": "strict",
                "strict.context_length": window.total,
            },
            "capabilities": ["completion", "tools"],
        }
    )


def _read(call: Call) -> Json:
    try:
        body = loads(call.body)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"invalid JSON: {error}") from error
    if not isinstance(body, dict) or not text_of(body.get("model")):
        raise Refusal("model is required")
    return body


def _window(body: Json, model: str, state: State) -> Window:
    asked = object_of(body.get("options")).get("num_ctx")
    if isinstance(asked, int) and asked > 0:
        return Window(asked, asked)
    return window_of("ollama", model, state.windows)


def _check(number: int, message: Json) -> None:
    role = message.get("role")
    if role not in _ROLES:
        raise Refusal(f"invalid role '{role}' in message {number}")
    if role == "tool" and not (message.get("tool_name") or message.get("tool_call_id")):
        raise Refusal(f"message {number}: a tool message needs tool_name")
    for image in message.get("images") or []:
        try:
            base64.b64decode(text_of(image), validate=True)
        except (binascii.Error, ValueError) as error:
            raise Refusal(f"illegal base64 data in message {number}") from error
    for call in objects(message.get("tool_calls")):
        if not isinstance(object_of(call.get("function")).get("arguments"), dict):
            raise Refusal(
                "json: cannot unmarshal string into Go struct field "
                "ChatRequest.messages.tool_calls.function.arguments"
            )


def _fitted(
    body: Json, messages: list[Json], window: Window, model: str, state: State
) -> list[Json]:
    """The messages that the model reads: without `truncate: false` the oldest are dropped in silence.

    Raises:
        Refusal: they are too long, and truncation is off.
    """
    kept = list(messages)
    while _tokens(body, kept, model, state) > window.total:
        if body.get("truncate", True) is False:
            raise Refusal(_TOO_LONG)
        oldest = next(
            (n for n, message in enumerate(kept[:-1]) if message.get("role") != "system"), None
        )
        if oldest is None:
            return kept
        del kept[oldest]
    return kept


def _tokens(body: Json, messages: list[Json], model: str, state: State) -> int:
    counter = state.counter
    tools = sum(counter.tool(dump(tool).decode(), model) for tool in objects(body.get("tools")))
    total = tools
    for message in messages:
        total += counter.message(model) + counter.text(text_of(message.get("content")), model)
        total += 768 * len(message.get("images") or [])
        for call in objects(message.get("tool_calls")):
            total += counter.text(dump(call).decode(), model)
    return total


def _now(state: State) -> str:
    return datetime.fromtimestamp(state.clock.now(), UTC).isoformat().replace("+00:00", "Z")


def _frame(model: str, state: State) -> Json:
    return {
        "model": scripted_name(model),
        "created_at": _now(state),
        "message": {"role": "assistant", "content": ""},
        "done": False,
    }


def _lines(spoken: Spoken, model: str, tokens: int, state: State) -> list[Json]:
    frame = _frame(model, state)

    def line(**message: object) -> Json:
        return frame | {"message": {"role": "assistant", "content": "", **message}}

    lines: list[Json] = []
    if spoken.thinking:
        lines.append(line(thinking=spoken.thinking))
    if spoken.text:
        lines += [line(content=piece) for piece in pieces(spoken.text)]
    if spoken.calls:
        calls = [
            {"function": {"name": call.name, "arguments": json.loads(call.arguments)}}
            for call in spoken.calls
        ]
        lines.append(line(tool_calls=calls))
    done = {
        "done": True,
        "done_reason": "length" if spoken.stop in {"length", "window"} else "stop",
        "total_duration": _NANOSECONDS,
        "load_duration": 0,
        "prompt_eval_count": tokens,
        "prompt_eval_duration": _NANOSECONDS,
        "eval_count": spoken.tokens,
        "eval_duration": _NANOSECONDS,
    }
    return [*lines, frame | done]


def _joined(lines: list[Json]) -> Json:
    message: Json = {"role": "assistant", "content": ""}
    for line in lines:
        part = line["message"]
        message["content"] += part["content"]
        message |= {key: part[key] for key in ("thinking", "tool_calls") if key in part}
    return lines[-1] | {"message": message}


def _ndjson(lines: list[Json]) -> list[bytes]:
    return [dump(line) + b"\n" for line in lines]


# --- what the rules see -----------------------------------------------------------------------------------------------


def _view(body: Json, messages: list[Json], model: str, tokens: int, digest_of_body: str) -> View:
    form = body.get("format")
    functions = [object_of(tool.get("function")) for tool in objects(body.get("tools"))]
    return View(
        api="ollama",
        model=model,
        tokens=tokens,
        turns=tuple(_turn(message) for message in messages),
        offers=tuple(
            Offer(text_of(f.get("name")), object_of(f.get("parameters"))) for f in functions
        ),
        answer_schema=form if isinstance(form, dict) else ({} if form == "json" else None),
        thinks=bool(body.get("think")),
        body_digest=digest_of_body,
    )


def _turn(message: Json) -> Turn:
    role, content = text_of(message.get("role")), text_of(message.get("content"))
    if role == "tool":
        return Turn("tool", results=(content,))
    calls = [object_of(call.get("function")) for call in objects(message.get("tool_calls"))]
    texts = (content,) if content else ()
    return Turn(role, texts, calls=tuple(text_of(call.get("name")) for call in calls))
