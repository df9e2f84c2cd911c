"""Bodies that are nearly right: the loop's own, with one place made hostile, or the text of them broken."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Json = Any
Chance = random.Random


class Sent(NamedTuple):
    """A call to make."""

    method: str
    path: str
    """Template, as in the OpenAPI document below /api/v1/."""
    body: bytes
    content_type: str


_TEXTS: tuple[Callable[[Chance], Json], ...] = (
    lambda chance: "",
    lambda chance: " \t\r\n\x0b\u2028",
    lambda chance: "nul\0nul",
    lambda chance: "\ud800 alone \udfff",
    lambda chance: "\u202etxet\u202c \u2066x\u2069 a\u0301\u200d\ufeff",
    lambda chance: '</untrusted> <untrusted nonce="0"> ＜untrusted＞',
    lambda chance: "{{ 7*7 }} {% debug %} ${jndi:x} ../../etc/passwd %00 ' OR 1=1 --",
    lambda chance: "a" * chance.choice((255, 256, 4_000, 70_000)),
    lambda chance: "(a+)+" * 200 + "b",
    lambda chance: "💥" * chance.choice((1, 300, 5_000)),
    lambda chance: "x" * 1_500_000,
    lambda chance: "sk-ant-api03-" + "A" * 80,
)
_VALUES: tuple[Callable[[Chance], Json], ...] = (
    lambda chance: None,
    lambda chance: True,
    lambda chance: chance.choice((0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**400)),
    lambda chance: chance.choice((0.5, -0.0, 1e308, 5e-324)),
    lambda chance: [],
    lambda chance: {},
    lambda chance: [[[[[[[[]]]]]]]],
    lambda chance: {"type": "text"},
    lambda chance: {"type": "image", "source": {"type": "base64", "media_type": "x", "data": "!"}},
    lambda chance: {"type": "tool_use", "id": 5, "name": None, "input": "{"},
    lambda chance: [{"type": "tool_result", "tool_use_id": "", "content": None}],
    lambda chance: {"$ref": "#/$defs/self", "$defs": {"self": {"$ref": "#/$defs/self"}}},
    lambda chance: {"": {"": {"": 0}}},
    lambda chance: ["x"] * 3_000,
    lambda chance: {f"k{n}": n for n in range(2_000)},
)
_RAW: tuple[Callable[[bytes, Chance], bytes], ...] = (
    lambda body, chance: body[: chance.randrange(len(body) + 1)],
    lambda body, chance: b"[" * 60_000,
    lambda body, chance: b'{"a":' * 3_000 + b"1" + b"}" * 3_000,
    lambda body, chance: body.replace(b'"', b"\xff", 1),
    lambda body, chance: b"\xef\xbb\xbf" + body,
    lambda body, chance: body.replace(b":", b":1" + b"0" * 5_000 + b',"z":', 1),
    lambda body, chance: body.replace(b":", b':NaN,"z":', 1),
    lambda body, chance: body[:1] + b'"message":1,"message":2,' + body[1:],
    lambda body, chance: body + body,
    lambda body, chance: b"",
    lambda body, chance: b"\0" * 100,
    lambda body, chance: body.decode("utf-8", "replace").encode("utf-16"),
    lambda body, chance: b'{"message":"' + b"\\ud800" * 3_000 + b'"}',
)
_CONTENT_TYPES = ("text/plain", "application/json; charset=utf-16", "multipart/form-data; boundary=x", "x", "")  # fmt: skip


def templates(number: int, own: Callable[[str], str]) -> Iterator[tuple[str, str, Json]]:
    """Bodies that are right, for every write; `own` gives an id of a kind."""
    model = {"provider": "anthropic", "name": "claude-sonnet-4-6"}
    tool = {
        "name": "weather",
        "description": "Weather of a city.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
    said = [{"type": "text", "text": "Let me look."}]
    call = {"type": "tool_use", "id": f"c{number}", "name": "weather", "input": {"city": "Oslo"}}
    yield (
        "POST",
        "sessions",
        {
            "model": model,
            "agent": {"name": f"fuzzed-{number}", "version": "1", "instructions": "Help."},
            "tools": [tool],
            "principal": {"id": "p", "scopes": ["a"]},
            "policy": {"reserve": 500, "history_floor": 400},
            "skills": [{"name": "s", "description": "d", "content": "c"}],
            "parent_run": own("run"),
        },
    )
    yield (
        "POST",
        "sessions",
        {
            "model": model,
            "agent": {"name": f"fuzzed-{number}", "version": "1", "instructions": "Help."},
            "tools": [tool],
        },
    )
    yield "POST", "sessions/{session}/runs", {"message": "Which port?", "timezone": "Europe/Oslo"}
    yield "POST", "sessions/{session}/runs", {"message": said, "now": "2026-07-01T10:00:00+02:00"}
    yield "POST", "runs/{run}/assemble", {"recall": [{"text": "It rained."}], "base_request_id": own("wanted")}  # fmt: skip
    yield "POST", "runs/{run}/assemble", {"legs": [{"provider": "openai", "name": "gpt-5.4"}]}
    yield "POST", "runs/{run}/assemble", {}
    yield (
        "POST",
        "runs/{run}/responses",
        {
            "response": {"content": [*said, call], "stop_reason": "tool_use"},
            "usage": {"input_tokens": 9, "output_tokens": 3, "cache_read_input_tokens": 1},
            "assemble": number % 2 == 0,
        },
    )
    yield "POST", "runs/{run}/responses", {"response": {"content": said, "stop_reason": "end_turn"}}
    too_long = {"message": "prompt is too long: 300000 tokens > 200000 maximum"}
    yield "POST", "runs/{run}/responses", {"error": {"status": 400, "body": {"error": too_long}}}
    overloaded = {"status": 529, "body": "overloaded"}
    yield "POST", "runs/{run}/responses", {"request_id": own("wanted"), "error": overloaded}
    result = {"call_id": own("call"), "content": "Rain.", "is_error": False}
    yield "POST", "runs/{run}/tool-results", {"results": [result]}
    yield "POST", "runs/{run}/input", {"message": "And tomorrow?"}
    yield "POST", "runs/{run}/end", {"outcome": "completed"}
    state = {"add_constraints": ["Be short."], "remove_constraints": ["c1"]}
    yield "PATCH", "sessions/{session}/working-state", state
    yield "PUT", "sessions/{session}/authority", {"scopes": ["a"], "reason": "less"}
    yield "POST", "sessions/{session}/epochs", {"reason": "operator", "note": "again"}
    yield "POST", "sessions/{session}/compactions", {"note": "shorter", "summariser": "model"}
    yield "POST", "sessions/{session}/compactions", {"preview": number % 2 == 0, "force": True}
    yield "POST", "sessions/{session}/presentation", {"target": "3.0", "form": "pinned"}
    yield "PUT", "personas/{principal}", {"entries": ["You are calm."], "revision": 0}
    yield "PATCH", "sessions/{session}", {"title": "A title"}
    yield "PATCH", "retention", {"search": 30, "content": 0, "note": "as agreed"}
    yield "POST", "sessions/{session}/reset", {"note": "from here on"}
    yield "POST", "sessions/{session}/tools/{tool}/revoke", {"note": "not now"}
    yield "POST", "sessions/{session}/tools/{tool}/restore", {"note": "again"}
    yield "POST", "people/{principal}/erase", {"note": "asked for it"}
    yield (
        "POST",
        "replays",
        {"session": own("session"), "engines": ["suffix"], "models": ["claude-sonnet-4-6"]},
    )
    yield "POST", "imports", {"messages": [{"role": "user", "content": "Which port?"}]}


def hostile(number: int, own: Callable[[str], str], chance: Chance) -> Sent:
    """One call out of these: as it is, with one place changed, or broken as text."""
    method, path, body = chance.choice(list(templates(number, own)))
    kind = chance.random()
    if 0.25 < kind < 0.85:
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            body = changed(body, chance)
    raw = json.dumps(body).encode()
    content_type = "application/json"
    if kind >= 0.85:
        raw = chance.choice(_RAW)(raw, chance)
        if chance.random() < 0.2:
            content_type = chance.choice(_CONTENT_TYPES)
    return Sent(method, path, raw, content_type)


def changed(body: Json, chance: Chance) -> Json:
    """The same with one place replaced, removed, doubled or added."""
    places = list(_places(body))
    where = chance.choice(places)
    act = chance.random()
    value: Json = chance.choice(_TEXTS if chance.random() < 0.5 else _VALUES)(chance)
    return _with(body, where, value, remove=act < 0.15, beside=act > 0.9)


def _places(body: Json, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    members = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()  # fmt: skip
    for name, member in members:
        yield from _places(member, (*path, name))


def _with(body: Json, where: tuple[Any, ...], value: Json, *, remove: bool, beside: bool) -> Json:
    if not where:
        return value
    name, *rest = where
    copy = dict(body) if isinstance(body, dict) else list(body)
    if rest:
        copy[name] = _with(body[name], tuple(rest), value, remove=remove, beside=beside)
    elif remove:
        del copy[name]
    elif beside and isinstance(copy, dict):
        copy[f"{name}\u200b"] = value
    elif beside:
        copy.insert(name, value)
    else:
        copy[name] = value
    return copy
