"""Rules of the OpenAI Responses API (providers.md 2.3), each with a body that breaks it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ctxengine.engine.lexeme import is_json_object
from ctxengine.engine.wire.base import WireApi
from ctxengine.engine.wire.markers import MAX_MARKERS
from ctxengine.engine.wire.rule import (
    Found,
    Rule,
    body_of,
    byte_rules,
    objects,
    repeated,
    rule_maker,
    unlike,
)

_API = WireApi.OPENAI_RESPONSES
_CALL_ID = re.compile(r".{1,64}", re.DOTALL)
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_MAX_OUTPUT = 10_485_760
_MAX_IMAGE_URL = 20_971_520
_MAX_FILE_DATA = 73_400_320
_CALL = "function_call"
_OUTPUT = "function_call_output"
_REASONING = "reasoning"
_OF_THE_MODEL = (_CALL, "message", "tool_search_call")
_ROLES = ("user", "assistant", "developer", "system")


@dataclass(slots=True)
class Request:
    """A body read once for all rules."""

    body: dict[str, Any]
    items: list[dict[str, Any]]

    def of(self, kind: str) -> Iterator[tuple[dict[str, Any], str]]:
        """Items of one type with their JSON paths."""
        for number, item in enumerate(self.items):
            if kind_of(item) == kind:
                yield item, f"$.input[{number}]"

    def parts(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Content parts of all messages and outputs with their JSON paths."""
        for number, item in enumerate(self.items):
            for key in ("content", "output"):
                for index, part in enumerate(objects(item.get(key))):
                    yield part, f"$.input[{number}].{key}[{index}]"


def kind_of(item: dict[str, Any]) -> str:
    """Type of an item; a message may leave its own out."""
    return str(item.get("type") or ("message" if "role" in item else ""))


def read(body: dict[str, Any]) -> Request:
    """Index the items; an input that is one text is one user message."""
    items = body.get("input")
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    return Request(body, objects(items))


def _answered(request: Request) -> Iterator[Found]:
    answered: set[str] = set()
    for item, path in reversed([*_pairs(request)]):
        call_id = str(item.get("call_id"))
        if kind_of(item) == _OUTPUT:
            answered.add(call_id)
        elif call_id not in answered:
            yield Found(path, f"Call {call_id!r} has no output behind it.")


def _asked_for(request: Request) -> Iterator[Found]:
    asked: set[str] = set()
    for item, path in _pairs(request):
        call_id = str(item.get("call_id"))
        if kind_of(item) == _CALL:
            asked.add(call_id)
        elif call_id not in asked:
            yield Found(path, f"Output {call_id!r} has no call in front of it.")


def _pairs(request: Request) -> Iterator[tuple[dict[str, Any], str]]:
    for number, item in enumerate(request.items):
        if kind_of(item) in (_CALL, _OUTPUT):
            yield item, f"$.input[{number}]"


def _one_output(request: Request) -> Iterator[Found]:
    outputs = ((str(item.get("call_id")), path) for item, path in request.of(_OUTPUT))
    return repeated(outputs, "The output of call")


def _unique_ids(request: Request) -> Iterator[Found]:
    calls = ((str(item.get("call_id")), path) for item, path in request.of(_CALL))
    return repeated(calls, "The call id")


def _id_length(request: Request) -> Iterator[Found]:
    ids = ((item.get("call_id"), f"{path}.call_id") for item, path in request.of(_CALL))
    return unlike(ids, _CALL_ID, "The call id")


def _tool_names(request: Request) -> Iterator[Found]:
    declared = (
        (tool.get("name"), f"$.tools[{index}].name")
        for index, tool in enumerate(objects(request.body.get("tools")))
        if tool.get("type") == "function"
    )
    yield from unlike(declared, _NAME, "The function name")
    called = ((item.get("name"), f"{path}.name") for item, path in request.of(_CALL))
    yield from unlike(called, _NAME, "The called name")


def _tools_unique(request: Request) -> Iterator[Found]:
    tools = enumerate(objects(request.body.get("tools")))
    named = ((str(t["name"]), f"$.tools[{i}]") for i, t in tools if "name" in t)
    return repeated(named, "The function name")


def _search_declared(request: Request) -> Iterator[Found]:
    tools = objects(request.body.get("tools"))
    if any(tool.get("type") == "tool_search" for tool in tools):
        return
    for index, tool in enumerate(tools):
        if any(one.get("defer_loading") for one in (tool, *objects(tool.get("tools")))):
            yield Found(f"$.tools[{index}]", "A function is kept aside and nothing searches.")


def _sizes(request: Request) -> Iterator[Found]:
    for item, path in request.of(_OUTPUT):
        output = item.get("output")
        if isinstance(output, str) and len(output) > _MAX_OUTPUT:
            yield Found(path, f"The output has {len(output):,} characters, over {_MAX_OUTPUT:,}.")
    for part, path in request.parts():
        for key, limit in (("image_url", _MAX_IMAGE_URL), ("file_data", _MAX_FILE_DATA)):
            value = part.get(key)
            if isinstance(value, str) and len(value) > limit:
                yield Found(path, f"{key} has {len(value):,} characters, over {limit:,}.")


def _followed(request: Request) -> Iterator[Found]:
    for number, item in enumerate(request.items):
        following = request.items[number + 1] if number + 1 < len(request.items) else {}
        if kind_of(item) == _REASONING and not _produced(following, after_reasoning=True):
            yield Found(f"$.input[{number}]", "Reasoning stands without the item it produced.")


def _partnered(request: Request) -> Iterator[Found]:
    reasoned = False
    for number, item in enumerate(request.items):
        if kind_of(item) == _REASONING:
            reasoned = True
        elif not _produced(item):
            reasoned = False
        elif item.get("id") and not reasoned and kind_of(item) in _OF_THE_MODEL:
            yield Found(
                f"$.input[{number}].id", "An item with an id of its own may demand its reasoning."
            )


def _produced(item: dict[str, Any], *, after_reasoning: bool = False) -> bool:
    """Whether the model made this item (as opposed to a user, a tool or nobody)."""
    kind = kind_of(item)
    if kind == "message":
        return item.get("role") == "assistant"
    if kind == _REASONING:
        return after_reasoning
    return bool(kind) and not kind.endswith("_output")


def _summary_kept(request: Request) -> Iterator[Found]:
    for item, path in request.of(_REASONING):
        if not isinstance(item.get("summary"), list):
            yield Found(path, "Reasoning goes back with its summary, be it empty.")


def _no_empty_text(request: Request) -> Iterator[Found]:
    for item, path in request.of("message"):
        content = item.get("content")
        if isinstance(content, str) and not content.strip():
            yield Found(f"{path}.content", "The text is empty.")
    for item, path in request.of(_OUTPUT):
        output = item.get("output")
        if isinstance(output, str) and not output.strip():
            yield Found(f"{path}.output", "The output is empty.")
    for part, path in request.parts():
        if "text" in part and not str(part["text"] or "").strip():
            yield Found(path, "The text part is empty.")


def _no_empty_message(request: Request) -> Iterator[Found]:
    for item, path in request.of("message"):
        if item.get("content") in (None, []):
            yield Found(path, "The message has no content.")


def _arguments_object(request: Request) -> Iterator[Found]:
    for item, path in request.of(_CALL):
        arguments = item.get("arguments")
        if not isinstance(arguments, str) or not is_json_object(arguments):
            yield Found(f"{path}.arguments", "The arguments do not parse to an object.")


def _roles(request: Request) -> Iterator[Found]:
    for item, path in request.of("message"):
        if item.get("role") not in _ROLES:
            yield Found(f"{path}.role", f"Unknown role {item.get('role')!r}.")


def _marker_count(request: Request) -> Iterator[Found]:
    marked = [path for part, path in request.parts() if part.get("prompt_cache_breakpoint")]
    for path in marked[MAX_MARKERS:]:
        yield Found(path, f"The request has more than {MAX_MARKERS} cache breakpoints.")


def _state_once(request: Request) -> Iterator[Found]:
    if request.body.get("previous_response_id") and request.body.get("conversation"):
        yield Found("$.conversation", "previous_response_id and conversation exclude each other.")


def _says(role: str, text: str, **extra: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text} | extra


def _call(call_id: str, **change: Any) -> dict[str, Any]:
    return {"type": _CALL, "call_id": call_id, "name": "look", "arguments": "{}"} | change


def _output(call_id: str, output: str = "fine") -> dict[str, Any]:
    return {"type": _OUTPUT, "call_id": call_id, "output": output}


def _reasoning(**change: Any) -> dict[str, Any]:
    return {"type": _REASONING, "id": "rs_1", "summary": [], "encrypted_content": "e"} | change


_HELLO = _says("user", "Hello")
_TOOL = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}
_MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}


def _body(*items: dict[str, Any], **extra: Any) -> bytes:
    return body_of({"model": "gpt-5.6-sol", "store": False} | extra | {"input": list(items)})


_rule = rule_maker(_API, "openai-responses", _body)

RULES = (
    *byte_rules(_API, "openai-responses", lambda: _body(_HELLO)),
    _rule(
        "pairs.missing",
        "Every call has an output behind it.",
        "providers 2.3 Ok",
        _answered,
        *(_HELLO, _call("a"), _call("b"), _output("a")),
    ),
    _rule(
        "pairs.orphan",
        "Every output has its call in front of it.",
        "providers 2.3 Ok",
        _asked_for,
        *(_HELLO, _output("a")),
    ),
    _rule(
        "pairs.single",
        "A call has one output.",
        "providers 2.3 Ok",
        _one_output,
        *(_HELLO, _call("a"), _output("a"), _output("a")),
    ),
    _rule(
        "ids.unique",
        "Call ids are unique in the request.",
        "design 5",
        _unique_ids,
        *(_HELLO, _call("a"), _call("a"), _output("a")),
    ),
    _rule(
        "ids.length",
        "Call ids have 1 to 64 characters.",
        "providers 2.3 Ok",
        _id_length,
        *(_HELLO, _call("a" * 65), _output("a" * 65)),
    ),
    _rule(
        "tools.name",
        "Function names are 1 to 128 letters, digits, _ and -.",
        "providers 2.3 Ok",
        _tool_names,
        _HELLO,
        tools=[_TOOL | {"name": "web.fetch"}],
    ),
    _rule(
        "tools.unique",
        "No function name occurs twice.",
        "design 11",
        _tools_unique,
        _HELLO,
        tools=[_TOOL, _TOOL],
    ),
    _rule(
        "tools.search",
        "Functions kept aside need the tool search.",
        "providers 6 Og",
        _search_declared,
        _HELLO,
        tools=[_TOOL | {"defer_loading": True}],
    ),
    Rule(
        id="openai-responses.sizes",
        api=_API,
        text="Outputs, image addresses and file data keep to their lengths.",
        source="providers 2.3 Ok",
        check=_sizes,
        example=lambda: _body(_HELLO, _call("a"), _output("a", "x" * (_MAX_OUTPUT + 1))),
    ),
    _rule(
        "reasoning.followed",
        "Reasoning stands directly in front of the item it produced.",
        "providers 2.3 Ok",
        _followed,
        *(_HELLO, _reasoning(), _HELLO),
    ),
    _rule(
        "reasoning.summary",
        "Reasoning goes back with its summary, be it empty.",
        "field 16",
        _summary_kept,
        *(_HELLO, _reasoning(summary=None), _says("assistant", "Yes.")),
    ),
    _rule(
        "ids.partner",
        "An item with an id of its own stands behind its reasoning.",
        "providers 2.3 Ok",
        _partnered,
        *(_HELLO, _call("a", id="fc_1"), _output("a")),
    ),
    _rule(
        "text.empty",
        "No text is empty or white space alone.",
        "field 20",
        _no_empty_text,
        *(_HELLO, _call("a"), _output("a", "")),
    ),
    _rule(
        "message.empty",
        "No message is empty.",
        "field 20",
        _no_empty_message,
        *(_HELLO, {"type": "message", "role": "assistant", "content": []}),
    ),
    _rule(
        "arguments.object",
        "Call arguments are a string that parses to an object.",
        "field dev-18",
        _arguments_object,
        *(_HELLO, _call("a", arguments="[1,2]"), _output("a")),
    ),
    _rule(
        "message.role",
        "Roles are user, assistant, developer and system.",
        "providers 2.3 Ok",
        _roles,
        *(_HELLO, _says("tool", "fine")),
    ),
    _rule(
        "markers.count",
        "A request has at most four cache breakpoints.",
        "providers 1.3 Og",
        _marker_count,
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": f"Part {number}"} | _MARK
                for number in range(MAX_MARKERS + 1)
            ],
        },
    ),
    _rule(
        "state.once",
        "previous_response_id and conversation exclude each other.",
        "providers 2.3 Ok",
        _state_once,
        _HELLO,
        previous_response_id="resp_1",
        conversation="conv_1",
    ),
)
"""Every rule of this API."""
