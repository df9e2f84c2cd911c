"""Rules of Ollama's chat API (providers.md 0, 2.3), each with a body that breaks it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ctxengine.engine.wire.base import WireApi
from ctxengine.engine.wire.rule import (
    Found,
    body_of,
    byte_rules,
    objects,
    repeated,
    rule_maker,
    unlike,
)

_API = WireApi.OLLAMA
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_ROLES = ("system", "user", "assistant", "tool")


@dataclass(slots=True)
class Request:
    """A body read once for all rules."""

    body: dict[str, Any]
    messages: list[dict[str, Any]]

    def calls(self) -> Iterator[tuple[dict[str, Any], dict[str, Any], str]]:
        """Each call and its function with its JSON path."""
        for number, message in enumerate(self.messages):
            for index, call in enumerate(objects(message.get("tool_calls"))):
                function = call.get("function")
                holder = function if isinstance(function, dict) else {}
                yield call, holder, f"$.messages[{number}].tool_calls[{index}]"

    def declared(self) -> Iterator[tuple[object, str]]:
        """Each declared name with its JSON path."""
        for index, tool in enumerate(objects(self.body.get("tools"))):
            function = tool.get("function")
            if isinstance(function, dict):
                yield function.get("name"), f"$.tools[{index}].function.name"


def read(body: dict[str, Any]) -> Request:
    """Index the messages."""
    return Request(body, objects(body.get("messages")))


def _keeps_all(request: Request) -> Iterator[Found]:
    for member in ("truncate", "shift"):
        if request.body.get(member) is not False:
            yield Found(f"$.{member}", f"{member} is not off: messages would be lost in silence.")


def _roles(request: Request) -> Iterator[Found]:
    for number, message in enumerate(request.messages):
        if message.get("role") not in _ROLES:
            yield Found(f"$.messages[{number}].role", f"Unknown role {message.get('role')!r}.")


def _system_first(request: Request) -> Iterator[Found]:
    for number, message in enumerate(request.messages):
        if number and message.get("role") == "system":
            yield Found(f"$.messages[{number}]", "A system message stands behind the first place.")


def _user_present(request: Request) -> Iterator[Found]:
    if not any(message.get("role") == "user" for message in request.messages):
        yield Found("$.messages", "No message is the user's.")


def _batches(request: Request) -> Iterator[tuple[list[str], list[tuple[str, str]], str]]:
    """Runs of (names asked for, tool messages at once behind as (name, path), path of the asker)."""
    asked: list[str] = []
    answers: list[tuple[str, str]] = []
    path = "$.messages"
    for number, message in enumerate(request.messages):
        if message.get("role") == "tool":
            answers.append((str(message.get("tool_name")), f"$.messages[{number}]"))
            continue
        yield asked, answers, path
        calls = objects(message.get("tool_calls"))
        functions = [call.get("function") for call in calls]
        asked = [str(f.get("name")) for f in functions if isinstance(f, dict)]
        answers, path = [], f"$.messages[{number}]"
    yield asked, answers, path


def _answered_next(request: Request) -> Iterator[Found]:
    for asked, answers, path in _batches(request):
        if len(answers) < len(asked):
            yield Found(path, f"{len(asked)} calls are followed by {len(answers)} tool messages.")


def _results_asked_for(request: Request) -> Iterator[Found]:
    for asked, answers, _ in _batches(request):
        for place, (name, path) in enumerate(answers):
            if place >= len(asked):
                yield Found(path, f"The tool message of {name!r} answers no call before it.")


def _named_results(request: Request) -> Iterator[Found]:
    for number, message in enumerate(request.messages):
        if message.get("role") == "tool" and not message.get("tool_name"):
            yield Found(f"$.messages[{number}]", "A tool message does not name its tool.")


def _unique_ids(request: Request) -> Iterator[Found]:
    calls = request.calls()
    return repeated(((str(c["id"]), path) for c, _, path in calls if c.get("id")), "The call id")


def _arguments_object(request: Request) -> Iterator[Found]:
    for _, function, path in request.calls():
        if not isinstance(function.get("arguments"), dict):
            yield Found(f"{path}.function.arguments", "The arguments are no object.")


def _names(request: Request) -> Iterator[Found]:
    yield from unlike(request.declared(), _NAME, "The tool name")
    called = ((f.get("name"), f"{path}.function.name") for _, f, path in request.calls())
    yield from unlike(called, _NAME, "The called name")


def _tools_unique(request: Request) -> Iterator[Found]:
    return repeated(((str(name), path) for name, path in request.declared()), "The tool name")


def _images(request: Request) -> Iterator[Found]:
    for number, message in enumerate(request.messages):
        images = message.get("images") or []
        for index, image in enumerate(images if isinstance(images, list) else [images]):
            if not isinstance(image, str) or not _BASE64.fullmatch(image):
                yield Found(f"$.messages[{number}].images[{index}]", "The image is no base64 text.")


def _says_something(request: Request) -> Iterator[Found]:
    for number, message in enumerate(request.messages):
        content = message.get("content")
        spoken = isinstance(content, str) and bool(content.strip())
        if not (spoken or message.get("tool_calls") or message.get("images")):
            yield Found(f"$.messages[{number}]", "The message says nothing.")


def _call(name: str = "look", arguments: Any = None, **extra: Any) -> dict[str, Any]:
    given = {} if arguments is None else arguments
    return {"function": {"name": name, "arguments": given}} | extra


def _calls(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": list(calls)}


def _tool(**extra: Any) -> dict[str, Any]:
    return {"role": "tool", "content": "fine", "tool_name": "look"} | extra


def _declared(*names: str) -> list[dict[str, Any]]:
    return [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
        for name in names
    ]


_HELLO = {"role": "user", "content": "Hello"}
_KEPT = {"truncate": False, "shift": False}


def _body(*messages: Any, **extra: Any) -> bytes:
    return body_of({"model": "gemma-4-31b"} | _KEPT | extra | {"messages": list(messages)})


_rule = rule_maker(_API, "ollama", _body)

RULES = (
    *byte_rules(_API, "ollama", lambda: _body(_HELLO)),
    _rule(
        "messages.kept",
        "Truncation and shifting are off, so that too long a prompt is refused.",
        "providers 0 OL",
        _keeps_all,
        _HELLO,
        truncate=True,
    ),
    _rule(
        "message.role",
        "Roles are system, user, assistant and tool.",
        "providers 2.3 OL",
        _roles,
        *(_HELLO, {"role": "developer", "content": "Be brief."}),
    ),
    _rule(
        "system.first",
        "A system message stands first.",
        "providers 2.3",
        _system_first,
        *(_HELLO, {"role": "system", "content": "Be brief."}, _HELLO),
    ),
    _rule(
        "user.present",
        "At least one message is the user's.",
        "field 22",
        _user_present,
        {"role": "system", "content": "Hello"},
    ),
    _rule(
        "pairs.next",
        "A message with calls is followed at once by a tool message for each.",
        "design 11",
        _answered_next,
        *(_HELLO, _calls(_call(), _call("find")), _tool()),
    ),
    _rule(
        "pairs.orphan",
        "A tool message answers a call of the assistant message right before it.",
        "design 11",
        _results_asked_for,
        *(_HELLO, _tool()),
    ),
    _rule(
        "results.name",
        "A tool message names its tool.",
        "providers 2.3 OL",
        _named_results,
        *(_HELLO, _calls(_call()), {"role": "tool", "content": "fine"}),
    ),
    _rule(
        "ids.unique",
        "Call ids are unique in the request.",
        "design 5",
        _unique_ids,
        *(_HELLO, _calls(_call(id="a")), _tool(), _calls(_call(id="a")), _tool()),
    ),
    _rule(
        "arguments.object",
        "Call arguments are an object.",
        "providers 2.3 OL",
        _arguments_object,
        *(_HELLO, _calls(_call(arguments="{}")), _tool()),
    ),
    _rule(
        "tools.name",
        "Tool names begin with a letter or _ and have at most 64 letters, digits, _ and -.",
        "design 5",
        _names,
        _HELLO,
        tools=_declared("web.fetch"),
    ),
    _rule(
        "tools.unique",
        "No tool name occurs twice.",
        "design 11",
        _tools_unique,
        _HELLO,
        tools=_declared("look", "look"),
    ),
    _rule(
        "images.base64",
        "Images are base64 texts.",
        "providers 2.3 OL",
        _images,
        {"role": "user", "content": "See.", "images": ["https://example.org/a.png"]},
    ),
    _rule(
        "message.empty",
        "A message says something, shows an image or calls a tool.",
        "field 20",
        _says_something,
        *(_HELLO, {"role": "assistant", "content": " "}, _HELLO),
    ),
)
"""Every rule of this API."""
