"""Rules of the OpenAI Chat Completions API (providers.md 2.3), each with a body that breaks it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ctxengine.engine.lexeme import is_json_object
from ctxengine.engine.wire.base import WireApi
from ctxengine.engine.wire.markers import MAX_MARKERS
from ctxengine.engine.wire.rule import (
    Found,
    body_of,
    byte_rules,
    objects,
    repeated,
    rule_maker,
    unlike,
)

_API = WireApi.OPENAI_CHAT
_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MAX_TOOLS = 128
_RESPONSES_ONLY = re.compile(r"(?:.*/)?gpt-6(?:-astra|\.1-sol)\b")
_ROLES = ("system", "developer", "user", "assistant", "tool")


_Batch: TypeAlias = tuple[list[str], list[tuple[str, str]], str]
"""Ids asked for, the tool messages at once behind as (id, path), path of the asker."""


@dataclass(slots=True)
class Request:
    """A body read once for all rules."""

    body: dict[str, Any]
    messages: list[dict[str, Any]]
    _calls: list[tuple[dict[str, Any], str]] | None = None
    _batches: list[_Batch] | None = None

    def calls(self) -> Sequence[tuple[dict[str, Any], str]]:
        """Each call with its JSON path."""
        if self._calls is None:
            self._calls = [
                (call, f"$.messages[{number}].tool_calls[{index}]")
                for number, message in enumerate(self.messages)
                for index, call in enumerate(objects(message.get("tool_calls")))
            ]
        return self._calls

    def batches(self) -> Sequence[_Batch]:
        """Runs of calls with the tool messages at once behind them."""
        if self._batches is None:
            self._batches = list(_batches(self.messages))
        return self._batches

    def functions(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Each declared function with its JSON path."""
        for index, tool in enumerate(objects(self.body.get("tools"))):
            function = tool.get("function")
            if isinstance(function, dict):
                yield function, f"$.tools[{index}].function"


def read(body: dict[str, Any]) -> Request:
    """Index the messages."""
    return Request(body, objects(body.get("messages")))


def _batches(messages: Sequence[dict[str, Any]]) -> Iterator[_Batch]:
    asked: list[str] = []
    answers: list[tuple[str, str]] = []
    path = "$.messages"
    for number, message in enumerate(messages):
        if message.get("role") == "tool":
            answers.append((str(message.get("tool_call_id")), f"$.messages[{number}]"))
            continue
        yield asked, answers, path
        asked = [str(call.get("id")) for call in objects(message.get("tool_calls"))]
        answers, path = [], f"$.messages[{number}]"
    yield asked, answers, path


def _answered_next(request: Request) -> Iterator[Found]:
    for asked, answers, path in request.batches():
        ids = {call_id for call_id, _ in answers}
        for call_id in asked:
            if call_id not in ids:
                yield Found(path, f"Call {call_id!r} has no tool message at once behind it.")


def _results_asked_for(request: Request) -> Iterator[Found]:
    for asked, answers, _ in request.batches():
        for call_id, path in answers:
            if call_id not in asked:
                yield Found(path, f"Tool message {call_id!r} answers no call right before it.")


def _one_result(request: Request) -> Iterator[Found]:
    for _, answers, _ in request.batches():
        yield from repeated(answers, "The tool message of call")


def _unique_ids(request: Request) -> Iterator[Found]:
    return repeated(((str(c.get("id")), path) for c, path in request.calls()), "The call id")


def _id_pattern(request: Request) -> Iterator[Found]:
    return unlike(((c.get("id"), f"{path}.id") for c, path in request.calls()), _ID, "The call id")


def _tool_names(request: Request) -> Iterator[Found]:
    declared = ((f.get("name"), f"{path}.name") for f, path in request.functions())
    yield from unlike(declared, _NAME, "The tool name")
    called = ((_function(c).get("name"), f"{path}.function") for c, path in request.calls())
    yield from unlike(called, _NAME, "The called name")


def _tools_unique(request: Request) -> Iterator[Found]:
    return repeated(
        ((str(f.get("name")), path) for f, path in request.functions()), "The tool name"
    )


def _tool_count(request: Request) -> Iterator[Found]:
    count = len(objects(request.body.get("tools")))
    if count > _MAX_TOOLS:
        yield Found("$.tools", f"{count} tools are declared; the API takes {_MAX_TOOLS}.")


def _tools_served(request: Request) -> Iterator[Found]:
    if request.body.get("tools") and _RESPONSES_ONLY.match(str(request.body.get("model"))):
        yield Found("$.tools", "This model takes tools on the Responses API only.")


def _tool_text(request: Request) -> Iterator[Found]:
    for number, message in enumerate(request.messages):
        if message.get("role") != "tool":
            continue
        content = message.get("content")
        parts = objects(content)
        if not isinstance(content, str) and not parts:
            yield Found(f"$.messages[{number}].content", "A tool message needs text.")
        for index, part in enumerate(parts):
            if part.get("type") != "text":
                yield Found(
                    f"$.messages[{number}].content[{index}]", "A tool message holds text only."
                )


def _no_empty_text(request: Request) -> Iterator[Found]:
    for number, message in enumerate(request.messages):
        content = message.get("content")
        path = f"$.messages[{number}].content"
        if isinstance(content, str) and not content.strip():
            yield Found(path, "The text is empty.")
        for index, part in enumerate(objects(content)):
            if part.get("type") == "text" and not str(part.get("text") or "").strip():
                yield Found(f"{path}[{index}]", "The text part is empty.")


def _says_or_calls(request: Request) -> Iterator[Found]:
    for number, message in enumerate(request.messages):
        content = message.get("content")
        empty = content is None or content == []
        other = message.get("role") == "assistant" and any(
            message.get(key) for key in ("tool_calls", "function_call", "audio", "refusal")
        )
        if empty and not other and message.get("role") != "tool":
            yield Found(f"$.messages[{number}]", "The message neither says nor calls anything.")


def _arguments_object(request: Request) -> Iterator[Found]:
    for call, path in request.calls():
        arguments = _function(call).get("arguments")
        if call.get("type", "function") == "function" and not (
            isinstance(arguments, str) and is_json_object(arguments)
        ):
            yield Found(f"{path}.function.arguments", "The arguments do not parse to an object.")


def _roles(request: Request) -> Iterator[Found]:
    for number, message in enumerate(request.messages):
        if message.get("role") not in _ROLES:
            yield Found(f"$.messages[{number}].role", f"Unknown role {message.get('role')!r}.")


def _user_present(request: Request) -> Iterator[Found]:
    if not any(message.get("role") == "user" for message in request.messages):
        yield Found("$.messages", "No message is the user's.")


def _marker_count(request: Request) -> Iterator[Found]:
    marked = [
        f"$.messages[{number}].content[{index}]"
        for number, message in enumerate(request.messages)
        for index, part in enumerate(objects(message.get("content")))
        if part.get("prompt_cache_breakpoint")
    ]
    for path in marked[MAX_MARKERS:]:
        yield Found(path, f"The request has more than {MAX_MARKERS} cache breakpoints.")


def _function(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function", call.get("custom"))
    return function if isinstance(function, dict) else {}


def _call(call_id: str, name: str = "look", arguments: str = "{}") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def _calls(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def _tool(call_id: str, content: Any = "fine") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _declared(name: str) -> dict[str, Any]:
    function = {"name": name, "description": "Looks.", "parameters": {"type": "object"}}
    return {"type": "function", "function": function}


_HELLO = {"role": "user", "content": "Hello"}
_MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}
_LINK = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


def _body(*messages: dict[str, Any], **extra: Any) -> bytes:
    return body_of({"model": "gpt-5.6-sol"} | extra | {"messages": list(messages)})


_rule = rule_maker(_API, "openai", _body)

RULES = (
    *byte_rules(_API, "openai", lambda: _body(_HELLO)),
    _rule(
        "pairs.next",
        "An assistant message with calls is followed at once by a tool message for each.",
        "providers 2.3 Os",
        _answered_next,
        *(_HELLO, _calls(_call("a"), _call("b")), _tool("a"), _HELLO),
    ),
    _rule(
        "pairs.orphan",
        "A tool message answers a call of the assistant message right before it.",
        "providers 2.3 Os",
        _results_asked_for,
        *(_HELLO, _tool("a")),
    ),
    _rule(
        "pairs.single",
        "A call has one tool message.",
        "providers 2.3 Os",
        _one_result,
        *(_HELLO, _calls(_call("a")), _tool("a"), _tool("a")),
    ),
    _rule(
        "ids.unique",
        "Call ids are unique in the request.",
        "design 5",
        _unique_ids,
        *(_HELLO, _calls(_call("a")), _tool("a"), _calls(_call("a")), _tool("a")),
    ),
    _rule(
        "ids.pattern",
        "Call ids are 1 to 40 letters, digits, _ and -.",
        "design 5",
        _id_pattern,
        *(_HELLO, _calls(_call("look:0")), _tool("look:0")),
    ),
    _rule(
        "tools.name",
        "Function names are 1 to 64 letters, digits, _ and -.",
        "providers 2.3 Os",
        _tool_names,
        _HELLO,
        tools=[_declared("web.fetch")],
    ),
    _rule(
        "tools.unique",
        "No function name occurs twice.",
        "design 11",
        _tools_unique,
        _HELLO,
        tools=[_declared("look"), _declared("look")],
    ),
    _rule(
        "tools.count",
        "At most 128 tools are declared.",
        "providers 2.3 Os",
        _tool_count,
        _HELLO,
        tools=[_declared(f"look_{number}") for number in range(_MAX_TOOLS + 1)],
    ),
    _rule(
        "tools.served",
        "Some models take tools on the Responses API only.",
        "providers 2.3 P",
        _tools_served,
        _HELLO,
        model="gpt-6-astra",
        tools=[_declared("look")],
    ),
    _rule(
        "results.text",
        "A tool message holds text only.",
        "providers 2.3 Os",
        _tool_text,
        *(_HELLO, _calls(_call("a")), _tool("a", [_LINK])),
    ),
    _rule(
        "text.empty",
        "No text is empty or white space alone.",
        "field 20",
        _no_empty_text,
        *(_HELLO, {"role": "assistant", "content": " "}, _HELLO),
    ),
    _rule(
        "message.empty",
        "A message says something or calls a tool.",
        "providers 2.3 Os",
        _says_or_calls,
        *(_HELLO, {"role": "assistant", "content": None}, _HELLO),
    ),
    _rule(
        "arguments.object",
        "Call arguments are a string that parses to an object.",
        "field dev-18",
        _arguments_object,
        *(_HELLO, _calls(_call("a", arguments='{"path":"no')), _tool("a")),
    ),
    _rule(
        "message.role",
        "Roles are system, developer, user, assistant and tool.",
        "providers 2.3 Ok",
        _roles,
        *(_HELLO, {"role": "summary", "content": "Earlier they met."}),
    ),
    _rule(
        "user.present",
        "At least one message is the user's.",
        "field 22",
        _user_present,
        {"role": "system", "content": "Hello"},
    ),
    _rule(
        "markers.count",
        "A request has at most four cache breakpoints.",
        "providers 1.3 Og",
        _marker_count,
        {
            "role": "user",
            "content": [
                {"type": "text", "text": f"Part {number}"} | _MARK
                for number in range(MAX_MARKERS + 1)
            ],
        },
    ),
)
"""Every rule of this API."""
