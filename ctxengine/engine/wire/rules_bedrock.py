"""Rules of Bedrock Converse (providers.md 2.3), each with a body that breaks it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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

_API = WireApi.BEDROCK
_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_DOCUMENT_NAME = re.compile(r"[a-zA-Z0-9 ()\[\]-]{1,200}")
_MAX_IMAGES = 20
_MAX_IMAGE_BASE64 = 3_750_000 * 4 // 3
_IMAGE_FORMATS = ("png", "jpeg", "gif", "webp")


@dataclass(slots=True)
class Request:
    """A body read once for all rules."""

    body: dict[str, Any]
    messages: list[dict[str, Any]]

    def blocks(self, number: int) -> list[dict[str, Any]]:
        """Blocks of one message; none for a number without a message."""
        in_range = 0 <= number < len(self.messages)
        return objects(self.messages[number].get("content")) if in_range else []

    def of(self, member: str, number: int) -> list[dict[str, Any]]:
        """Values of `member` in one message's blocks."""
        return [b[member] for b in self.blocks(number) if isinstance(b.get(member), dict)]

    def every(self, member: str) -> Iterator[tuple[dict[str, Any], str]]:
        """Values of `member` in all messages, inside results too, with their JSON paths."""
        for number in range(len(self.messages)):
            for index, block in enumerate(self.blocks(number)):
                path = f"$.messages[{number}].content[{index}]"
                if isinstance(block.get(member), dict):
                    yield block[member], f"{path}.{member}"
                result = block.get("toolResult")
                inner = objects(result.get("content")) if isinstance(result, dict) else []
                for place, one in enumerate(inner):
                    if isinstance(one.get(member), dict):
                        yield one[member], f"{path}.toolResult.content[{place}].{member}"

    def tools(self) -> list[dict[str, Any]]:
        """Entries of the tool configuration, cache points included."""
        config = self.body.get("toolConfig")
        return objects(config.get("tools")) if isinstance(config, dict) else []

    def specs(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Each declared tool with its JSON path."""
        for index, tool in enumerate(self.tools()):
            if isinstance(tool.get("toolSpec"), dict):
                yield tool["toolSpec"], f"$.toolConfig.tools[{index}].toolSpec"


def read(body: dict[str, Any]) -> Request:
    """Index the messages."""
    return Request(body, objects(body.get("messages")))


def _starts_with_user(request: Request) -> Iterator[Found]:
    if not request.messages or request.messages[0].get("role") != "user":
        yield Found("$.messages", "The conversation does not start with the user.")


def _roles(request: Request) -> Iterator[Found]:
    for number, message in enumerate(request.messages):
        if message.get("role") not in ("user", "assistant"):
            yield Found(f"$.messages[{number}].role", f"Unknown role {message.get('role')!r}.")


def _alternates(request: Request) -> Iterator[Found]:
    roles = [message.get("role") for message in request.messages]
    for number in range(1, len(roles)):
        if roles[number] == roles[number - 1]:
            yield Found(f"$.messages[{number}]", "Two messages of one role follow each other.")


def _ids(values: list[dict[str, Any]]) -> list[str]:
    return [str(value.get("toolUseId")) for value in values]


def _answered_next(request: Request) -> Iterator[Found]:
    for number in range(len(request.messages)):
        answered = _ids(request.of("toolResult", number + 1))
        for call_id in _ids(request.of("toolUse", number)):
            if call_id not in answered:
                yield Found(
                    f"$.messages[{number}]", f"Call {call_id!r} has no result in the next message."
                )


def _results_asked_for(request: Request) -> Iterator[Found]:
    for number in range(len(request.messages)):
        asked = _ids(request.of("toolUse", number - 1))
        for call_id in _ids(request.of("toolResult", number)):
            if call_id not in asked:
                yield Found(f"$.messages[{number}]", f"Result {call_id!r} answers no call before.")


def _one_result(request: Request) -> Iterator[Found]:
    for number in range(len(request.messages)):
        results = _ids(request.of("toolResult", number))
        yield from repeated(((one, f"$.messages[{number}]") for one in results), "The result of")


def _unique_ids(request: Request) -> Iterator[Found]:
    calls = request.every("toolUse")
    return repeated(((str(call.get("toolUseId")), path) for call, path in calls), "The call id")


def _id_pattern(request: Request) -> Iterator[Found]:
    calls = request.every("toolUse")
    return unlike(((call.get("toolUseId"), path) for call, path in calls), _ID, "The call id")


def _tool_names(request: Request) -> Iterator[Found]:
    yield from unlike(
        ((spec.get("name"), f"{path}.name") for spec, path in request.specs()), _NAME, "The name"
    )
    calls = request.every("toolUse")
    yield from unlike(((call.get("name"), path) for call, path in calls), _NAME, "The called name")


def _tools_unique(request: Request) -> Iterator[Found]:
    return repeated(
        ((str(spec.get("name")), path) for spec, path in request.specs()), "The tool name"
    )


def _tools_declared(request: Request) -> Iterator[Found]:
    used = next((path for m in ("toolUse", "toolResult") for _, path in request.every(m)), None)
    if used is not None and not any(True for _ in request.specs()):
        yield Found(used, "The history holds tool blocks and no tool is declared.")


def _input_object(request: Request) -> Iterator[Found]:
    for call, path in request.every("toolUse"):
        if not isinstance(call.get("input"), dict):
            yield Found(path, "The input of a call is no object.")


def _blank(block: dict[str, Any]) -> bool:
    return isinstance(block.get("text"), str) and not block["text"].strip()


def _says_something(request: Request) -> Iterator[Found]:
    for index, block in enumerate(objects(request.body.get("system"))):
        if _blank(block):
            yield Found(f"$.system[{index}]", "The text is blank.")
    for number in range(len(request.messages)):
        blocks = request.blocks(number)
        if not blocks:
            yield Found(f"$.messages[{number}].content", "The message has no block.")
        for index, block in enumerate(blocks):
            path = f"$.messages[{number}].content[{index}]"
            if _blank(block):
                yield Found(path, "The text is blank.")
            result = block.get("toolResult")
            inner = objects(result.get("content")) if isinstance(result, dict) else None
            if inner == [] or any(_blank(one) for one in inner or ()):
                yield Found(path, "The result is empty or blank.")


def _document_with_text(request: Request) -> Iterator[Found]:
    for number in range(len(request.messages)):
        texts = [block for block in request.blocks(number) if "text" in block]
        if request.of("document", number) and not texts:
            yield Found(f"$.messages[{number}]", "A document stands without a text block.")


def _document_names(request: Request) -> Iterator[Found]:
    found = request.every("document")
    return unlike(((one.get("name"), path) for one, path in found), _DOCUMENT_NAME, "The name")


def _images(request: Request) -> Iterator[Found]:
    for number, (image, path) in enumerate(request.every("image")):
        source = image.get("source")
        data = source.get("bytes") if isinstance(source, dict) else None
        if number >= _MAX_IMAGES:
            yield Found(path, f"The request has more than {_MAX_IMAGES} images.")
        if image.get("format") not in _IMAGE_FORMATS:
            yield Found(path, f"Images of format {image.get('format')!r} are not taken.")
        if isinstance(data, str) and len(data) > _MAX_IMAGE_BASE64:
            yield Found(path, "The image has more than 3.75 MB.")


def _points(request: Request) -> list[tuple[str, str]]:
    """(Life, JSON path) of each cache point in the order tools, system, messages."""
    places = [("$.toolConfig.tools", request.tools())]
    places.append(("$.system", objects(request.body.get("system"))))
    places += [
        (f"$.messages[{number}].content", request.blocks(number))
        for number in range(len(request.messages))
    ]
    return [
        (str(block["cachePoint"].get("ttl", "5m")), f"{path}[{index}]")
        for path, blocks in places
        for index, block in enumerate(blocks)
        if isinstance(block.get("cachePoint"), dict)
    ]


def _marker_count(request: Request) -> Iterator[Found]:
    for _, path in _points(request)[MAX_MARKERS:]:
        yield Found(path, f"The request has more than {MAX_MARKERS} cache points.")


def _marker_lives(request: Request) -> Iterator[Found]:
    shorter = False
    for life, path in _points(request):
        if life == "1h" and shorter:
            yield Found(path, "A longer life stands behind a shorter one.")
        shorter |= life == "5m"


def _user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def _assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def _use(call_id: str, name: str = "look", given: Any = None) -> dict[str, Any]:
    value = {} if given is None else given
    return {"toolUse": {"toolUseId": call_id, "name": name, "input": value}}


def _result(call_id: str, text: str = "fine") -> dict[str, Any]:
    return {"toolResult": {"toolUseId": call_id, "content": [{"text": text}], "status": "success"}}


def _config(*names: str) -> dict[str, Any]:
    schema = {"inputSchema": {"json": {"type": "object"}}}
    return {"tools": [{"toolSpec": {"name": name} | schema} for name in names]}


_HELLO = _user({"text": "Hello"})
_SAID = _assistant({"text": "Hello."})
_LOOK = _config("look")
_POINT = {"cachePoint": {"type": "default"}}
_MARKED: list[dict[str, Any]] = [{"text": "Part"}, _POINT]
_LONG_POINT = {"cachePoint": {"type": "default", "ttl": "1h"}}
_IMAGE = {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}}


def _document(name: str) -> dict[str, Any]:
    return {"document": {"format": "pdf", "name": name, "source": {"bytes": "JVBERi0="}}}


def _body(*messages: Any, **extra: Any) -> bytes:
    return body_of({"modelId": "anthropic.claude-sonnet-4-6"} | extra | {"messages": [*messages]})


_rule = rule_maker(_API, "bedrock", _body)

RULES = (
    *byte_rules(_API, "bedrock", lambda: _body(_HELLO)),
    _rule(
        "messages.first",
        "The first message is the user's.",
        "providers 2.3 P",
        _starts_with_user,
        *(_SAID, _HELLO),
    ),
    _rule(
        "message.role",
        "Roles are user and assistant.",
        "providers 2.3 B",
        _roles,
        *(_HELLO, {"role": "system", "content": [{"text": "Be brief."}]}),
    ),
    _rule(
        "messages.alternate",
        "Roles alternate.",
        "providers 2.3 P",
        _alternates,
        *(_HELLO, _HELLO),
    ),
    _rule(
        "pairs.next",
        "Every call has its result in the next message.",
        "providers 2.3 B",
        _answered_next,
        *(_HELLO, _assistant(_use("a"), _use("b")), _user(_result("a"))),
        toolConfig=_LOOK,
    ),
    _rule(
        "pairs.orphan",
        "A result answers a call of the message right before it.",
        "providers 2.3 B",
        _results_asked_for,
        _user(_result("a")),
        toolConfig=_LOOK,
    ),
    _rule(
        "pairs.single",
        "A call has one result.",
        "providers 2.3 B",
        _one_result,
        *(_HELLO, _assistant(_use("a")), _user(_result("a"), _result("a"))),
        toolConfig=_LOOK,
    ),
    _rule(
        "ids.unique",
        "Call ids are unique in the request.",
        "design 5",
        _unique_ids,
        *(_HELLO, _assistant(_use("a")), _user(_result("a"))),
        *(_assistant(_use("a")), _user(_result("a"))),
        toolConfig=_LOOK,
    ),
    _rule(
        "ids.pattern",
        "Call ids are 1 to 64 letters, digits, _, ., : and -.",
        "providers 2.3 B",
        _id_pattern,
        *(_HELLO, _assistant(_use("look|0")), _user(_result("look|0"))),
        toolConfig=_LOOK,
    ),
    _rule(
        "tools.name",
        "Tool names are 1 to 64 letters, digits, _ and -.",
        "providers 2.3 B",
        _tool_names,
        _HELLO,
        toolConfig=_config("web.fetch"),
    ),
    _rule(
        "tools.unique",
        "No tool name occurs twice.",
        "design 11",
        _tools_unique,
        _HELLO,
        toolConfig=_config("look", "look"),
    ),
    _rule(
        "tools.declared",
        "Tool blocks in the history need a tool configuration.",
        "providers 2.3 B",
        _tools_declared,
        *(_HELLO, _assistant(_use("a")), _user(_result("a"))),
    ),
    _rule(
        "arguments.object",
        "The input of a call is an object.",
        "providers 2.3 B",
        _input_object,
        *(_HELLO, _assistant(_use("a", given="{}")), _user(_result("a"))),
        toolConfig=_LOOK,
    ),
    _rule(
        "text.blank",
        "No message, result or text is empty or blank.",
        "providers 2.3 B",
        _says_something,
        *(_HELLO, _assistant({"text": " "}), _HELLO),
    ),
    _rule(
        "documents.text",
        "A document stands beside a text block.",
        "providers 2.3 B",
        _document_with_text,
        _user(_document("attachment")),
    ),
    _rule(
        "documents.name",
        "A document's name has letters, digits, spaces, hyphens, parentheses and brackets.",
        "providers 2.3 B",
        _document_names,
        _user({"text": "Read it."}, _document("a/b.pdf")),
    ),
    _rule(
        "images.limits",
        "At most 20 images of 3.75 MB each: png, jpeg, gif or webp.",
        "providers 2.3 B",
        _images,
        _user({"text": "See."}, *[_IMAGE] * (_MAX_IMAGES + 1)),
    ),
    _rule(
        "markers.count",
        "A request has at most four cache points.",
        "providers 1.1 B",
        _marker_count,
        _user(*_MARKED * (MAX_MARKERS + 1)),
    ),
    _rule(
        "markers.lives",
        "A longer cache life stands before every shorter one, in the order tools, system, messages.",
        "providers 1.1 B",
        _marker_lives,
        _user({"text": "Hello"}, _POINT, {"text": "there"}, _LONG_POINT),
    ),
)
"""Every rule of this API."""
