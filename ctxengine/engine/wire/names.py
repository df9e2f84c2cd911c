"""Names and ids that every API accepts, and arguments that are always an object (design 5)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256

from ctxengine.engine.errors import WireInvalid
from ctxengine.engine.lexeme import is_json_object
from ctxengine.engine.wire.encoding import quoted

UNPARSED = "_unparsed_arguments"
"""Member that carries arguments which are no JSON object, as the model wrote them."""

NAME_LIMIT = 64
"""Shortest name limit among the APIs with a renderer, in characters."""

CALL_ID_LIMIT = 40
"""Shortest call-id limit among the APIs, in characters."""

_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
_BAD_START = re.compile(r"[^a-zA-Z_]")
"""First characters that one of the APIs refuses."""
_WIRE_NAME = re.compile(rf"[a-zA-Z_][a-zA-Z0-9_-]{{0,{NAME_LIMIT - 1}}}")
_CALL_ID = re.compile(rf"[a-zA-Z0-9_-]{{1,{CALL_ID_LIMIT}}}")
_SERVER_ID = "srvtoolu_"
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
    r"|\\.",
    re.DOTALL,
)
_LONE = re.compile(r"[\ud800-\udfff]")
_SUFFIX = 8


def wire_names(names: Sequence[str], limit: int = NAME_LIMIT) -> dict[str, str]:
    """Map ledger names to distinct wire names; the outcome does not depend on the order of `names`.

    A name that fits as it is keeps its spelling. Any other has its forbidden characters replaced by
    `_`, gets one in front where it begins with a digit or a dash, and carries eight hex digits of
    its own hash when it was cut or when the plain form is not its alone. No name at all, which foreign logs
    hold, is `_`.
    """
    plain = {name: _plain(name) or "_" for name in sorted(set(names))}
    claims: dict[str, list[str]] = {}
    for name, form in plain.items():
        claims.setdefault(form, []).append(name)
    mapped: dict[str, str] = {}
    for name, form in plain.items():
        fits = len(form) <= limit
        if fits and (name == form or (len(claims[form]) == 1)):
            mapped[name] = form
    taken = set(mapped.values())
    for name, form in plain.items():
        if name not in mapped:
            mapped[name] = _suffixed(name, form, limit, taken)
            taken.add(mapped[name])
    return mapped


def called_name(name: str, pinned: Mapping[str, str]) -> str:
    """The name a call goes out under, whatever the model called.

    A pinned tool has its pinned name. Any other name is written as APIs accept it, and never as that of a pinned tool.

    Args:
        pinned: ledger name to wire name of the plan's tools.
    """
    known = pinned.get(name)
    if known is not None:
        return known
    form = _plain(name) or "_"
    taken = set(pinned.values())
    if len(form) <= NAME_LIMIT and form not in taken:
        return form
    return _suffixed(name, form, NAME_LIMIT, taken)


def wire_call_id(original: str | None, sequence: int, ordinal: int, taken: Collection[str]) -> str:
    """The id a call goes out under: its own where it fits every API and is free.

    Otherwise one made from its place in the ledger, the same on every rebuild.

    Args:
        original: The id as received.
        sequence: Sequence of the event that holds the call.
        ordinal: Ordinal of the call in it.
        taken: Wire ids already given in this session.
    """
    if original is not None and original not in taken and _acceptable(original):
        return original
    base = f"call_{sequence}_{ordinal}"
    candidate, again = base, 1
    while candidate in taken:
        again += 1
        candidate = f"{base}_{again}"
    return candidate


def arguments_view(raw: str) -> str:
    """Text of the JSON object to send for these arguments.

    An object stays as it was written, except that escapes of lone surrogates become U+FFFD. Nothing
    at all counts as an empty object. Anything else is carried visibly under `UNPARSED`, so that the
    model sees what it wrote.
    """
    if is_json_object(raw):
        return _without_lone_escapes(raw)
    if not raw.strip():
        return "{}"
    return f'{{"{UNPARSED}":{quoted(_LONE.sub(chr(0xFFFD), raw))}}}'


def carries(raw: str) -> bool:
    """Whether JSON that is sent as it came can stand in a request: none can that holds half of a surrogate pair."""
    return _LONE.search(raw) is None and lone_surrogate_escape(raw) is None


def lone_surrogate_escape(text: str) -> int | None:
    """Where JSON text escapes half of a surrogate pair, in characters; None when it does not."""
    if "\\ud" not in text and "\\uD" not in text:
        return None
    return next((m.start() for m in _ESCAPE.finditer(text) if _is_lone(m)), None)


def refuse_unlike(call_id: str | None, name: str | None) -> None:
    """Refuse an id or a tool name that some API would refuse.

    Raises:
        WireInvalid: one of them is too long or has a forbidden character.
    """
    for value, shape, what in (
        (call_id, _CALL_ID, "call id"),
        (name, _WIRE_NAME, "tool name"),
    ):
        if value is not None and shape.fullmatch(value) is None:
            raise WireInvalid(f"The {what} {value!r} does not match {shape.pattern}; map it.")


def _plain(name: str) -> str:
    form = _FORBIDDEN.sub("_", name)
    return f"_{form}" if _BAD_START.match(form) else form


def _acceptable(call_id: str) -> bool:
    return _CALL_ID.fullmatch(call_id) is not None and not call_id.startswith(_SERVER_ID)


def _suffixed(name: str, form: str, limit: int, taken: Collection[str]) -> str:
    salt = 0
    while True:
        seed = name if salt == 0 else f"{name}\n{salt}"
        digest = sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:_SUFFIX]
        candidate = f"{form[: limit - _SUFFIX - 1]}_{digest}"
        if candidate not in taken:
            return candidate
        salt += 1


def _without_lone_escapes(raw: str) -> str:
    return _ESCAPE.sub(_mend, raw) if lone_surrogate_escape(raw) is not None else raw


def _mend(match: re.Match[str]) -> str:
    return "\\ufffd" if _is_lone(match) else match.group()


def _is_lone(match: re.Match[str]) -> bool:
    return len(match.group()) == len("\\ud800")
