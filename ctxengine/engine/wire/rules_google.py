"""Rules of Gemini's generateContent (providers.md 2.3), each with a body that breaks it."""

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

_API = WireApi.GOOGLE
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_SIGNED_MODELS = re.compile(r"gemini-(?:[3-9]|\d\d)")
_ROLES = ("user", "model")


@dataclass(slots=True)
class Request:
    """A body read once for all rules."""

    body: dict[str, Any]
    contents: list[dict[str, Any]]

    def parts(self, member: str) -> Iterator[tuple[dict[str, Any], int, str]]:
        """The value of each part's `member`, with the number of its content and its JSON path."""
        for number, content in enumerate(self.contents):
            for index, part in enumerate(objects(content.get("parts"))):
                value = part.get(member)
                if isinstance(value, dict):
                    yield value, number, f"$.contents[{number}].parts[{index}].{member}"

    def declared(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Each declared function with its JSON path."""
        for group, tool in enumerate(objects(self.body.get("tools"))):
            for index, one in enumerate(objects(tool.get("functionDeclarations"))):
                yield one, f"$.tools[{group}].functionDeclarations[{index}]"

    def of(self, member: str, number: int) -> list[dict[str, Any]]:
        """Values of `member` in one content; none for a number without a content."""
        if not 0 <= number < len(self.contents):
            return []
        parts = objects(self.contents[number].get("parts"))
        return [part[member] for part in parts if isinstance(part.get(member), dict)]


def read(body: dict[str, Any]) -> Request:
    """Index the contents."""
    return Request(body, objects(body.get("contents")))


def _has_contents(request: Request) -> Iterator[Found]:
    if not request.contents:
        yield Found("$.contents", "The request has no content.")


def _roles(request: Request) -> Iterator[Found]:
    for number, content in enumerate(request.contents):
        if content.get("role") not in _ROLES:
            yield Found(f"$.contents[{number}].role", f"Unknown role {content.get('role')!r}.")


def _ends_with_user(request: Request) -> Iterator[Found]:
    if request.contents and request.contents[-1].get("role") == "model":
        yield Found(f"$.contents[{len(request.contents) - 1}]", "The last turn is the model's.")


def _call_follows(request: Request) -> Iterator[Found]:
    for number, content in enumerate(request.contents):
        before = request.contents[number - 1].get("role") if number else None
        if (
            content.get("role") == "model"
            and request.of("functionCall", number)
            and before != "user"
        ):
            yield Found(f"$.contents[{number}]", "A call stands behind no turn of the user's.")


def _answered_next(request: Request) -> Iterator[Found]:
    for number, _ in enumerate(request.contents):
        calls = request.of("functionCall", number)
        answers = request.of("functionResponse", number + 1)
        if calls and len(calls) != len(answers):
            yield Found(
                f"$.contents[{number}]",
                f"{len(calls)} calls are followed by {len(answers)} responses.",
            )


def _responses_asked_for(request: Request) -> Iterator[Found]:
    for number, _ in enumerate(request.contents):
        answers = request.of("functionResponse", number)
        calls = request.of("functionCall", number - 1)
        if answers and not calls:
            yield Found(f"$.contents[{number}]", "A response stands behind no call.")
        asked = [(call.get("id"), call.get("name")) for call in calls]
        for answer in answers if len(answers) == len(calls) else ():
            if (answer.get("id"), answer.get("name")) not in asked:
                yield Found(
                    f"$.contents[{number}]",
                    f"The response to {answer.get('name')!r} matches no call before it.",
                )


def _unique_ids(request: Request) -> Iterator[Found]:
    calls = request.parts("functionCall")
    return repeated(
        ((str(call["id"]), path) for call, _, path in calls if call.get("id")), "The call id"
    )


def _names(request: Request) -> Iterator[Found]:
    yield from unlike(
        ((one.get("name"), f"{path}.name") for one, path in request.declared()),
        _NAME,
        "The function name",
    )
    for member in ("functionCall", "functionResponse"):
        found = request.parts(member)
        yield from unlike(
            ((one.get("name"), f"{path}.name") for one, _, path in found), _NAME, "The name"
        )


def _tools_unique(request: Request) -> Iterator[Found]:
    return repeated(
        ((str(one.get("name")), path) for one, path in request.declared()), "The function name"
    )


def _one_schema(request: Request) -> Iterator[Found]:
    for one, path in request.declared():
        if "parameters" in one and "parametersJsonSchema" in one:
            yield Found(path, "A function has its parameters in both forms.")


def _arguments_object(request: Request) -> Iterator[Found]:
    for number, content in enumerate(request.contents):
        for index, part in enumerate(objects(content.get("parts"))):
            call, answer = part.get("functionCall"), part.get("functionResponse")
            path = f"$.contents[{number}].parts[{index}]"
            if isinstance(call, dict) and not isinstance(call.get("args", {}), dict):
                yield Found(path, "The arguments of a call are no object.")
            if isinstance(answer, dict) and not isinstance(answer.get("response"), dict):
                yield Found(path, "A function response is no object.")


def _signed(request: Request) -> Iterator[Found]:
    if not _SIGNED_MODELS.search(str(request.body.get("model"))):
        return
    for number, content in enumerate(request.contents):
        parts = [
            p for p in objects(content.get("parts")) if isinstance(p.get("functionCall"), dict)
        ]
        if parts and not parts[0].get("thoughtSignature"):
            yield Found(f"$.contents[{number}]", "The first call of a step has no signature.")


def _says_something(request: Request) -> Iterator[Found]:
    for number, content in enumerate(request.contents):
        parts = objects(content.get("parts"))
        if not parts:
            yield Found(f"$.contents[{number}].parts", "The content has no part.")
        for index, part in enumerate(parts):
            blank = isinstance(part.get("text"), str) and not part["text"].strip()
            if blank and not part.get("thoughtSignature"):
                yield Found(f"$.contents[{number}].parts[{index}]", "The text is empty.")


def _one_thinking_setting(request: Request) -> Iterator[Found]:
    config = request.body.get("generationConfig")
    thinking = config.get("thinkingConfig") if isinstance(config, dict) else None
    if isinstance(thinking, dict) and {"thinkingLevel", "thinkingBudget"} <= set(thinking):
        yield Found("$.generationConfig.thinkingConfig", "Level and budget exclude each other.")


_HELLO = {"role": "user", "parts": [{"text": "Hello"}]}


def _call(name: str = "look", args: Any = None, signature: str = "c2lnbmVk") -> dict[str, Any]:
    part: dict[str, Any] = {"functionCall": {"name": name, "args": {} if args is None else args}}
    return part | ({"thoughtSignature": signature} if signature else {})


def _model(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def _answer(*names: str, response: Any = None) -> dict[str, Any]:
    given = {"output": "fine"} if response is None else response
    return {
        "role": "user",
        "parts": [{"functionResponse": {"name": name, "response": given}} for name in names],
    }


def _identified(call_id: str) -> list[dict[str, Any]]:
    call = {"functionCall": {"id": call_id, "name": "look", "args": {}}, "thoughtSignature": "cw=="}
    answer = {"id": call_id, "name": "look", "response": {"output": "fine"}}
    return [_model(call), {"role": "user", "parts": [{"functionResponse": answer}]}]


def _tools(*names: str, **extra: Any) -> list[dict[str, Any]]:
    schema = {"parametersJsonSchema": {"type": "object"}}
    declared = [{"name": name, "description": "Looks."} | schema | extra for name in names]
    return [{"functionDeclarations": declared}]


def _body(*contents: Any, **extra: Any) -> bytes:
    return body_of({"model": "gemini-3.1-pro"} | extra | {"contents": list(contents)})


_rule = rule_maker(_API, "google", _body)

RULES = (
    *byte_rules(_API, "google", lambda: _body(_HELLO)),
    _rule("contents.present", "A request has content.", "providers 2.3 G", _has_contents),
    _rule(
        "contents.role",
        "Roles are user and model.",
        "providers 2.3 Gk",
        _roles,
        *(_HELLO, {"role": "system", "parts": [{"text": "Be brief."}]}),
    ),
    _rule(
        "contents.last",
        "The last turn is not the model's.",
        "providers 2.3 G",
        _ends_with_user,
        *(_HELLO, _model({"text": "Hello."})),
    ),
    _rule(
        "calls.place",
        "A turn with calls follows a turn of the user or of responses.",
        "providers 2.3 G",
        _call_follows,
        *(_model(_call()), _answer("look")),
    ),
    _rule(
        "pairs.count",
        "A turn with calls is followed at once by as many responses.",
        "providers 2.3 G",
        _answered_next,
        *(_HELLO, _model(_call(), _call("find", signature="")), _answer("look")),
    ),
    _rule(
        "pairs.orphan",
        "A response answers a call of the turn right before it, by the same name and id.",
        "providers 2.3 G",
        _responses_asked_for,
        *(_HELLO, _model({"text": "Hello."}), _answer("look")),
    ),
    _rule(
        "ids.unique",
        "Call ids are unique in the request.",
        "design 5",
        _unique_ids,
        *(_HELLO, *_identified("a"), *_identified("a")),
    ),
    _rule(
        "tools.name",
        "Function names begin with a letter or _ and have at most 128 letters, digits, _, ., : and -.",
        "providers 2.3 Gk",
        _names,
        _HELLO,
        tools=_tools("1st"),
    ),
    _rule(
        "tools.unique",
        "No function name occurs twice.",
        "design 11",
        _tools_unique,
        _HELLO,
        tools=_tools("look", "look"),
    ),
    _rule(
        "tools.schema",
        "A function states its parameters in one form.",
        "providers 2.3 Gk",
        _one_schema,
        _HELLO,
        tools=_tools("look", parameters={"type": "OBJECT"}),
    ),
    _rule(
        "arguments.object",
        "Arguments and responses are objects.",
        "providers 2.3 Gk",
        _arguments_object,
        *(_HELLO, _model(_call(args="{}")), _answer("look")),
    ),
    _rule(
        "thoughts.signed",
        "From Gemini 3 on, the first call of each step carries a thought signature.",
        "providers 2.3 G",
        _signed,
        *(_HELLO, _model(_call(signature="")), _answer("look")),
    ),
    _rule(
        "text.empty",
        "No content and no text is empty.",
        "field 20",
        _says_something,
        *(_HELLO, _model({"text": " "}), _HELLO),
    ),
    _rule(
        "thinking.setting",
        "A thinking level and a thinking budget exclude each other.",
        "providers 2.3 G",
        _one_thinking_setting,
        _HELLO,
        generationConfig={"thinkingConfig": {"thinkingLevel": "low", "thinkingBudget": 512}},
    ),
)
"""Every rule of this API."""
