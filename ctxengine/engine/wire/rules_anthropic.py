"""Rules of the Anthropic Messages API (providers.md 2.1, 2.2), each with a body that breaks it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ctxengine.engine.wire.anthropic_turns import Request, Turn
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

_API = WireApi.ANTHROPIC
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_PREFILL_ALLOWED = re.compile(
    r"claude-(?:[123]\b|(?:opus|sonnet|haiku)-(?:3|4-[0-5](?!\d)|4-\d{8}))"
)
_REASONING = ("thinking", "redacted_thinking")
_SERVER = "srvtoolu_"
_SERVER_CALLS = ("server_tool_use", "mcp_tool_use")


def _answered_next(request: Request) -> Iterator[Found]:
    for turn, following in request.steps():
        answers = following.of("tool_result") if following and following.role == "user" else []
        ids = {block.text("tool_use_id") for block in answers}
        for block in turn.of("tool_use"):
            if block.text("id") not in ids:
                yield Found(
                    block.path, f"Call {block.text('id')!r} has no result in the next user message."
                )


def _results_asked_for(request: Request) -> Iterator[Found]:
    asked: set[str] = set()
    for turn in request.turns:
        for block in turn.of("tool_result"):
            call_id = block.text("tool_use_id")
            if call_id not in asked and not call_id.startswith(_SERVER):
                yield Found(block.path, f"Result {call_id!r} has no call in the message before.")
        asked = {block.text("id") for block in turn.of("tool_use")}


def _one_result(request: Request) -> Iterator[Found]:
    for turn in request.turns:
        results = ((b.text("tool_use_id"), b.path) for b in turn.of("tool_result"))
        yield from repeated(results, "The result of call")


def _unique_ids(request: Request) -> Iterator[Found]:
    calls = ((b.text("id"), b.path) for b in request.blocks("tool_use", "server_tool_use"))
    return repeated(calls, "The call id")


def _id_pattern(request: Request) -> Iterator[Found]:
    calls = ((b.data.get("id"), f"{b.path}.id") for b in request.blocks("tool_use"))
    yield from unlike(calls, _ID, "The call id")
    server = ((b.data.get("id"), f"{b.path}.id") for b in request.blocks("server_tool_use"))
    yield from unlike(server, _SERVER_ID, "The server call id")


def _server_answered(request: Request) -> Iterator[Found]:
    for block in request.blocks("tool_result"):
        if block.text("tool_use_id").startswith(_SERVER):
            yield Found(block.path, "A client must not answer a server tool's call.")


def _server_resolved(turn: Turn) -> bool:
    done = {block.text("tool_use_id") for block in turn.blocks}
    return all(block.text("id") in done for block in turn.of("server_tool_use"))


def _open_server_turn(request: Request) -> Iterator[Found]:
    for turn, following in request.steps():
        if following is None or _server_resolved(turn):
            continue
        for block in following.blocks:
            if block.type != "tool_result":
                yield Found(
                    block.path,
                    "While a server tool is open, the next user turn holds results only.",
                )


def _server_results_called(request: Request) -> Iterator[Found]:
    called: set[str] = set()
    for turn in request.turns:
        called |= {block.text("id") for kind in _SERVER_CALLS for block in turn.of(kind)}
        for block in turn.blocks:
            if not block.type.endswith("_tool_result"):
                continue
            if block.text("tool_use_id") not in called:
                yield Found(
                    block.path, f"No call {block.text('tool_use_id')!r} stands before its result."
                )


def _tool_names(request: Request) -> Iterator[Found]:
    tools = enumerate(objects(request.body.get("tools")))
    yield from unlike(
        ((tool.get("name"), f"$.tools[{i}].name") for i, tool in tools), _NAME, "The tool name"
    )
    calls = ((b.data.get("name"), f"{b.path}.name") for b in request.blocks("tool_use"))
    yield from unlike(calls, _NAME, "The called name")


def _tools_unique(request: Request) -> Iterator[Found]:
    tools = enumerate(objects(request.body.get("tools")))
    return repeated(((str(t.get("name")), f"$.tools[{i}]") for i, t in tools), "The tool name")


def _tools_in_prompt(request: Request) -> Iterator[Found]:
    tools = objects(request.body.get("tools"))
    if tools and all(tool.get("defer_loading") for tool in tools):
        yield Found("$.tools", "Every tool is kept aside; one at least must stand in the prompt.")


def _references(request: Request) -> Iterator[Found]:
    declared = {tool.get("name") for tool in objects(request.body.get("tools"))}
    for block in request.blocks("tool_search_tool_result", "tool_result"):
        content = block.data.get("content")
        found = content.get("tool_references") if isinstance(content, dict) else content
        for entry in objects(found):
            if entry.get("type") == "tool_reference" and entry.get("tool_name") not in declared:
                yield Found(block.path, f"There is no tool {entry.get('tool_name')!r} to refer to.")


def _no_empty_text(request: Request) -> Iterator[Found]:
    system = request.body.get("system")
    texts = [(text, f"$.system[{i}]") for i, text in enumerate(objects(system))]
    for block in request.blocks("text", "tool_result"):
        if block.type == "text":
            texts.append((block.data, block.path))
        else:
            nested = enumerate(objects(block.data.get("content")))
            texts += [(data, f"{block.path}.content[{i}]") for i, data in nested]
    for data, path in texts:
        if data.get("type") == "text" and not str(data.get("text") or "").strip():
            yield Found(path, "The text block is empty.")


def _no_empty_message(request: Request) -> Iterator[Found]:
    for number in request.empty:
        yield Found(f"$.messages[{number}]", "The message has no content.")


def _user_first(request: Request) -> Iterator[Found]:
    opened = request.turns[0].blocks[:1] if request.turns else []
    if any(block.type == "compaction" for block in opened):
        # A compaction block stands first, in the role that gave it.
        return
    if not request.turns or request.turns[0].role != "user":
        yield Found("$.messages[0]", "The first message must be the user's.")


def _user_last(request: Request) -> Iterator[Found]:
    if not request.turns or request.turns[-1].role != "assistant":
        return
    last = request.turns[-1]
    if not _server_resolved(last):
        return
    path = f"$.messages[{last.message}]"
    if _PREFILL_ALLOWED.match(str(request.body.get("model"))) is None:
        yield Found(path, "This model takes no prefill; the conversation must end with the user.")
    elif last.blocks and last.blocks[-1].text("text").endswith((" ", "\n", "\t")):
        yield Found(path, "A prefill must not end with white space.")


def _results_first(request: Request) -> Iterator[Found]:
    for turn in request.turns:
        other = False
        for block in turn.blocks:
            if block.type == "tool_result" and other:
                yield Found(block.path, "A result stands behind other content of its turn.")
            other = other or block.type != "tool_result"


def _marker_count(request: Request) -> Iterator[Found]:
    for _, path in request.marked[MAX_MARKERS:]:
        yield Found(path, f"The request has more than {MAX_MARKERS} cache markers.")


def _marker_lives(request: Request) -> Iterator[Found]:
    short = False
    for data, path in request.marked:
        control = data["cache_control"]
        long = isinstance(control, dict) and control.get("ttl") == "1h"
        if long and short:
            yield Found(path, "A marker of 1h stands behind one of 5m.")
        short = short or not long


def _marker_places(request: Request) -> Iterator[Found]:
    for data, path in request.marked:
        if data.get("type") in _REASONING:
            yield Found(path, "A reasoning block cannot carry a cache marker.")
        if data.get("defer_loading"):
            yield Found(path, "A deferred tool cannot carry a cache marker.")


def _arguments_object(request: Request) -> Iterator[Found]:
    for block in request.blocks("tool_use", "server_tool_use"):
        if not isinstance(block.data.get("input"), dict):
            yield Found(f"{block.path}.input", "The arguments are not an object.")


def _signed(request: Request) -> Iterator[Found]:
    for block in request.blocks("thinking"):
        if not block.text("signature"):
            yield Found(block.path, "A thinking block goes back with its signature or not at all.")


def _user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def _assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _use(call_id: str, **change: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": {}} | change


def _result(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": [_text("fine")]}


_HELLO = _user(_text("Hello"))
_SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
_FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
_TOOL = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}
_REFERENCE = {"type": "tool_reference", "tool_name": "gone"}
_SHORT = {"cache_control": {"type": "ephemeral"}}
_LONG = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def _body(*messages: dict[str, Any], **extra: Any) -> bytes:
    base = {"model": "claude-sonnet-4-6", "max_tokens": 64}
    return body_of(base | extra | {"messages": list(messages)})


_rule = rule_maker(_API, "anthropic", _body)

RULES = (
    *byte_rules(_API, "anthropic", lambda: _body(_HELLO)),
    _rule(
        "pairs.next",
        "Every call is answered in the user message right after it.",
        "providers 2.1 A",
        _answered_next,
        *(_HELLO, _assistant(_use("a"), _use("b")), _user(_result("a"))),
    ),
    _rule(
        "pairs.orphan",
        "Every result answers a call of the message right before it.",
        "providers 2.1 A",
        _results_asked_for,
        *(_HELLO, _assistant(_use("a")), _user(_result("a"), _result("b"))),
    ),
    _rule(
        "pairs.single",
        "A call has one result.",
        "providers 2.1 A",
        _one_result,
        *(_HELLO, _assistant(_use("a")), _user(_result("a"), _result("a"))),
    ),
    _rule(
        "ids.unique",
        "Call ids are unique in the request.",
        "providers 2.1 A",
        _unique_ids,
        *(_HELLO, _assistant(_use("a")), _user(_result("a"))),
        *(_assistant(_use("a")), _user(_result("a"))),
    ),
    _rule(
        "ids.pattern",
        "Call ids hold letters, digits, _ and - only; server ids begin with srvtoolu_.",
        "providers 2.1 A",
        _id_pattern,
        *(_HELLO, _assistant(_use("look:0")), _user(_result("look:0"))),
    ),
    _rule(
        "server.answered",
        "The client never answers the call of a server tool.",
        "providers 2.1 A",
        _server_answered,
        *(_HELLO, _assistant(_SEARCH, _use("a")), _user(_result("a"), _result("srvtoolu_1"))),
    ),
    _rule(
        "server.open_turn",
        "While a server tool is open, the next user message holds results only.",
        "providers 2.1 A",
        _open_server_turn,
        *(_HELLO, _assistant(_SEARCH, _use("a")), _user(_result("a"), _text("And?"))),
    ),
    _rule(
        "server.lone_result",
        "The result of a server tool stands behind its call.",
        "providers 2.1 A",
        _server_results_called,
        *(_HELLO, _assistant(_FOUND, _text("Here it is.")), _HELLO),
    ),
    _rule(
        "tools.name",
        "Tool names are 1 to 64 letters, digits, _ and -.",
        "providers 2.1 A",
        _tool_names,
        _HELLO,
        tools=[_TOOL | {"name": "web.fetch"}],
    ),
    _rule(
        "tools.unique",
        "No tool name occurs twice.",
        "providers 2.1 Ak",
        _tools_unique,
        _HELLO,
        tools=[_TOOL, _TOOL],
    ),
    _rule(
        "tools.prompt",
        "At least one tool is not kept aside for the search.",
        "providers 6 A",
        _tools_in_prompt,
        _HELLO,
        tools=[_TOOL | {"defer_loading": True}],
    ),
    _rule(
        "tools.references",
        "What a search found is among the tools.",
        "providers 6 A",
        _references,
        *(_HELLO, _assistant(_use("a")), _user(_result("a") | {"content": [_REFERENCE]})),
        tools=[_TOOL],
    ),
    _rule(
        "text.empty",
        "No text block is empty or white space alone.",
        "providers 2.1 A",
        _no_empty_text,
        *(_HELLO, _assistant(_text("Yes?"), _text("")), _HELLO),
    ),
    _rule(
        "message.empty",
        "No message is empty, but for a final assistant one.",
        "providers 2.1 A",
        _no_empty_message,
        *(_HELLO, _assistant(), _HELLO),
    ),
    _rule(
        "first.user",
        "The first message is the user's.",
        "providers 2.1 A",
        _user_first,
        *(_assistant(_text("Welcome.")), _HELLO),
    ),
    _rule(
        "last.user",
        "The last message is the user's where the model refuses prefill.",
        "providers 2.1 A",
        _user_last,
        *(_HELLO, _assistant(_text("The answer is"))),
    ),
    _rule(
        "results.first",
        "Results stand before anything else in their message.",
        "providers 2.1 A",
        _results_first,
        *(_HELLO, _assistant(_use("a")), _user(_text("Here:"), _result("a"))),
    ),
    _rule(
        "markers.count",
        "A request has at most four cache markers.",
        "providers 1.1 A",
        _marker_count,
        _user(*(_text(f"Part {number}") | _SHORT for number in range(MAX_MARKERS + 1))),
    ),
    _rule(
        "markers.lives",
        "Markers of 1h stand before markers of 5m.",
        "providers 1.2 A",
        _marker_lives,
        _user(_text("Hello") | _LONG),
        tools=[_TOOL | _SHORT],
    ),
    _rule(
        "markers.place",
        "Reasoning blocks and deferred tools carry no marker.",
        "providers 1.2 A",
        _marker_places,
        _HELLO,
        _assistant(
            {"type": "thinking", "thinking": "Hm.", "signature": "s"} | _SHORT, _text("Yes.")
        ),
        _HELLO,
    ),
    _rule(
        "arguments.object",
        "Call arguments are an object.",
        "field dev-18",
        _arguments_object,
        *(_HELLO, _assistant(_use("a", input=[1, 2])), _user(_result("a"))),
    ),
    _rule(
        "thinking.signed",
        "Thinking goes back with its signature or not at all.",
        "providers 2.2 A",
        _signed,
        *(_HELLO, _assistant({"type": "thinking", "thinking": "Hm."}, _text("Yes.")), _HELLO),
    ),
)
"""Every rule of this API."""
