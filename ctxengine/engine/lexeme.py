"""Reading foreign JSON without ever writing it again (design 4: received text stays text).

A `Node` is a place in a text. Its `raw` is the exact slice that stood there, so key order, `1.0`,
duplicate keys, big integers and odd escapes survive. The whole text is read once; slices are
located only when asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import accumulate
from typing import Any

from ctxengine.engine.errors import EngineError

MAX_DEPTH = 400
"""Deepest nesting that is read; it leaves stack for the callers of the interpreter's own reader."""

_CHUNK_DIGITS = 600
_DEPTH_WINDOW = 1_000_000
"""Characters whose nesting is looked at in one go: copies of a whole large text would be many times its size."""
_LARGE = 1 << 20
"""Characters from which a text is decoded piece by piece."""
_PIECE_LEVELS = 2
"""Levels of a large text whose values are pieces: the document, and a list in it."""
_SMALL_PIECE, _FEW_PIECES = 64, 1_000
"""Mean characters of a piece below which it is not worth a node of its own, once there are more than a few of them."""
_BLANKS = frozenset(" \t\n\r")
_SPACE = re.compile(r"[ \t\n\r]*")
_BRACKET_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NOT_BRACKETS = bytes(sorted(set(range(256)) - set(_BRACKET_STEP)))


class LexemeError(EngineError, ValueError):
    """A text is not JSON that can be read here."""

    code = "invalid_json"

    def __init__(self, problem: str, position: int) -> None:
        """Keep the position beside the message: characters from the start (bytes for `text_of`)."""
        super().__init__(f"{problem} (at position {position}).", position=position)
        self.position = position


class NodeKind(StrEnum):
    """What a JSON text can be."""

    OBJECT = "object"
    ARRAY = "array"
    STRING = "string"
    NUMBER = "number"
    """Includes `NaN` and `Infinity`, which some producers write though JSON has no such numbers."""
    TRUE = "true"
    FALSE = "false"
    NULL = "null"


_KIND_OF_TYPE = {
    dict: NodeKind.OBJECT,
    list: NodeKind.ARRAY,
    str: NodeKind.STRING,
    int: NodeKind.NUMBER,
    float: NodeKind.NUMBER,
    bool: NodeKind.FALSE,
    type(None): NodeKind.NULL,
}


class Node:
    """One JSON value in a text that has been checked.

    Its decoded value is kept from the first reading; where it stands in the text is looked up when somebody asks for it.
    """

    __slots__ = (
        "_elements", "_end", "_members", "_named", "_place", "_start", "_text", "_value", "kind",
    )  # fmt: skip

    def __init__(
        self,
        text: str,
        start: int,
        end: int,
        value: Any,
        place: tuple[Node, str | int] | None = None,
    ) -> None:
        """Use `parse`; a node built by hand over unchecked text may fail later.

        Args:
            start: where the value starts; below 0 where only its `place` in another node is known.
        """
        self._text = text
        self._start = start
        self._end = end
        self._value = value
        self._place = place
        self._members: tuple[tuple[str, Node], ...] | None = None
        self._elements: tuple[Node, ...] | None = None
        self._named: dict[str, Node] | None = None
        """Members by name where each was decoded by itself."""
        self.kind: NodeKind = _KIND_OF_TYPE[type(value)] if value is not True else NodeKind.TRUE

    def __repr__(self) -> str:
        """Name kind and length only: content is hostile and may be large."""
        start, end = self._span()
        return f"<Node {self.kind} of {end - start} characters>"

    @property
    def raw(self) -> str:
        """The exact text of this value, without the blanks around it."""
        start, end = self._span()
        return self._text[start:end]

    @property
    def position(self) -> int:
        """Where the value starts in the text it was parsed from, in characters."""
        return self._span()[0]

    def value(self) -> Any:
        """The decoded value: dict, list, str, int (exact), float, bool or None.

        Strings may hold lone surrogates. Duplicate keys collapse to the last one here; `raw` and
        `items` keep them all. A dict or a list is the caller's own.
        """
        if self.kind in (NodeKind.OBJECT, NodeKind.ARRAY):
            return _scan(self._text, self.position)[0]
        return self._value

    def peek(self) -> Any:
        """What `value` gives, without a copy: a dict or a list that belongs to this node and must not be changed."""
        return self._value

    def text(self) -> str | None:
        """The decoded string when this is one, else None."""
        return self._value if self.kind is NodeKind.STRING else None

    def get(self, key: str) -> Node | None:
        """The value of the last member named `key`; None when absent or when this is no object."""
        if self.kind is not NodeKind.OBJECT or key not in self._value:
            return None
        if self._named is not None:
            return self._named[key]
        return Node(self._text, -1, -1, self._value[key], (self, key))

    def items(self) -> tuple[tuple[str, Node], ...]:
        """Members as written, in order, duplicates included; empty when this is no object."""
        if self._members is None:
            self._members = self._find_members() if self.kind is NodeKind.OBJECT else ()
        return self._members

    def __iter__(self) -> Iterator[Node]:
        """Elements of an array in order; nothing for any other kind."""
        return iter(self._array())

    def __len__(self) -> int:
        """Number of array elements or of object members as written; 0 for scalars."""
        return len(self._array()) or len(self.items())

    def __bool__(self) -> bool:
        """A node is always true, so that `get(...) or ...` asks about presence, not content."""
        return True

    def _array(self) -> tuple[Node, ...]:
        if self._elements is None:
            values = self._value if self.kind is NodeKind.ARRAY else ()
            self._elements = tuple(
                Node(self._text, -1, -1, value, (self, index)) for index, value in enumerate(values)
            )
        return self._elements

    def _span(self) -> tuple[int, int]:
        # From the outermost node inwards, so that deep nesting costs no frames.
        unplaced: list[Node] = []
        node = self
        while node._start < 0 and node._place is not None:
            unplaced.append(node)
            node = node._place[0]
        for node in reversed(unplaced):
            node._find_start()
        return self._start, self._end

    def _find_start(self) -> None:
        """Find where this node stands in a parent whose own place is known."""
        if self._place is None:
            return
        parent, place = self._place
        if isinstance(place, int):
            parent._locate_elements()
        else:
            found = next(node for name, node in reversed(parent.items()) if name == place)
            self._start, self._end = found._start, found._end

    def _locate_elements(self) -> None:
        text = self._text
        at = _skip_blanks(text, self.position + 1)
        for element in self._array():
            if text[at] == ",":
                at = _skip_blanks(text, at + 1)
            element._start, element._end, element._place = at, _scan(text, at)[1], None
            at = _skip_blanks(text, element._end)

    def _find_members(self) -> tuple[tuple[str, Node], ...]:
        text = self._text
        found: list[tuple[str, int, int]] = []
        at = _skip_blanks(text, self.position + 1)
        while text[at] != "}":
            if text[at] == ",":
                at = _skip_blanks(text, at + 1)
            key, at = _PLAIN.raw_decode(text, at)
            start = _skip_blanks(text, _skip_blanks(text, at) + 1)
            end = _scan(text, start)[1]
            found.append((key, start, end))
            at = _skip_blanks(text, end)
        # Of repeated keys only the last one's value is at hand; the others are decoded once more.
        last = {key: start for key, start, _ in found}
        return tuple(
            (
                key,
                Node(
                    text,
                    start,
                    end,
                    self._value[key] if last[key] == start else _scan(text, start)[0],
                ),
            )
            for key, start, end in found
        )


def parse(text: str) -> Node:
    """Check a JSON text and give its top value.

    Raises:
        LexemeError: the text is not JSON, is nested deeper than `MAX_DEPTH`, or has something
            after its value.
    """
    if text.startswith("\ufeff"):
        raise LexemeError("The text starts with a byte order mark; remove it", 0)
    found = _in_pieces(text) if len(text) >= _LARGE else None
    if found is not None:
        return found
    _check_depth(text)
    start = _skip_blanks(text, 0)
    value, end = _scan(text, start)
    after = _skip_blanks(text, end)
    if after != len(text):
        raise LexemeError("The JSON value is followed by something else; send one value", after)
    return Node(text, start, end, value)


def _in_pieces(text: str) -> Node | None:
    """A large text, read once: its outer values are decoded one by one, so that their places need no second look.

    None where it is not worth it, or where anything is wrong: whoever reads it as a whole then says what.
    """
    try:
        node = _piece(text, _skip_blanks(text, 0), 0)
    except (LexemeError, IndexError, _NoPieces):
        return None
    return node if _skip_blanks(text, node._end) == len(text) else None


class _NoPieces(Exception):
    """The text is not what pieces are for."""


def _piece(text: str, start: int, above: int) -> Node:
    """The value at a place below so many others.

    Raises:
        LexemeError: it is no JSON, or nested too deep.
        IndexError: the text ends inside it.
        _NoPieces: it is read as part of a whole.
    """
    opens = text[start]
    if above < _PIECE_LEVELS and opens in "[{":
        return _opened(text, start, above, named=opens == "{")
    value, end = _scan(text, start)
    if text.count("[", start, end) + text.count("{", start, end) > MAX_DEPTH - above:
        _check_depth(text[start:end], above)
    return Node(text, start, end, value)


def _opened(text: str, start: int, above: int, *, named: bool) -> Node:
    """The object or the array that begins at a place, with a node for each value in it; raises as `_piece` does."""
    names: list[str] = []
    found: list[Node] = []
    closes = "}" if named else "]"
    at = _skip_blanks(text, start + 1)
    while text[at] != closes:
        if found:
            at = _after(text, at, ",")
        if named:
            if text[at] != '"':
                raise _NoPieces
            name, at = _scan(text, at)
            names.append(name)
            at = _after(text, _skip_blanks(text, at), ":")
        found.append(_piece(text, at, above + 1))
        at = _skip_blanks(text, found[-1]._end)
        if len(found) > _FEW_PIECES and at - start < _SMALL_PIECE * len(found):
            raise _NoPieces
    values = [node._value for node in found]
    whole = Node(text, start, at + 1, dict(zip(names, values, strict=True)) if named else values)
    if named:
        whole._members = tuple(zip(names, found, strict=True))
        whole._named = dict(whole._members)
    else:
        whole._elements = tuple(found)
    return whole


def _after(text: str, at: int, mark: str) -> int:
    """Where the next value begins behind a comma or a colon; raises where there is none."""
    if text[at] != mark:
        raise _NoPieces
    return _skip_blanks(text, at + 1)


def text_of(body: bytes) -> str:
    """The text of a received body.

    Raises:
        LexemeError: the bytes are not UTF-8; the position is that of the first bad byte.
    """
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LexemeError(
            f"The body is not UTF-8: byte 0x{body[error.start]:02X}, {error.reason}; "
            "encode it as UTF-8",
            error.start,
        ) from None


def is_json_object(text: str) -> bool:
    """Whether a text is one RFC 8259 object that UTF-8 can carry, as call arguments must be.

    `NaN` and `Infinity` are refused, as is nesting beyond `MAX_DEPTH`. Duplicate keys are allowed,
    as in the RFC.
    """
    start = _skip_blanks(text, 0)
    if not text.startswith("{", start):
        return False
    try:
        text.encode()
        _check_depth(text)
        _, end = _STRICT.raw_decode(text, start)
    except (ValueError, RecursionError):
        return False
    return _skip_blanks(text, end) == len(text)


def _skip_blanks(text: str, at: int) -> int:
    if text[at : at + 1] not in _BLANKS:
        return at
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _scan(text: str, start: int) -> tuple[Any, int]:
    """Decode the value at `start`; the second figure is where it ends."""
    try:
        try:
            return _PLAIN.raw_decode(text, start)
        except json.JSONDecodeError:
            raise
        except ValueError:
            # The interpreter's limit on digits: read again with a reader that has none.
            return _EXACT.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise LexemeError(f"The text is not valid JSON: {error.msg}", error.pos) from None
    except RecursionError:
        raise _too_deep(start) from None


def _check_depth(text: str, above: int = 0) -> None:
    """Refuse a text that is nested too deep, itself below so many others."""
    opened = text.count("[") + text.count("{")
    if opened <= MAX_DEPTH - above:
        return
    depth, inside, start = above, 0, 0
    while start < len(text):
        end = start + _DEPTH_WINDOW
        while end < len(text) and text[end - 1] == "\\":
            end += 1
        # Without its escapes, every second piece between quotes of a JSON text lies outside strings.
        pieces = text[start:end].replace("\\\\", "").replace('\\"', "").split('"')
        outside = "".join(pieces[inside::2]).encode("utf-8", "surrogatepass")
        steps = [_BRACKET_STEP[byte] for byte in outside.translate(None, _NOT_BRACKETS)]
        if max(accumulate(steps, initial=depth)) > MAX_DEPTH:
            raise _too_deep(0)
        depth += sum(steps)
        inside ^= 1 - len(pieces) % 2
        start = end


def _too_deep(position: int) -> LexemeError:
    return LexemeError(
        f"The JSON is nested deeper than {MAX_DEPTH} levels; send it flatter, or as a string",
        position,
    )


def _exact_integer(text: str) -> int:
    digits = text.removeprefix("-")
    number = _number_of(digits)
    return -number if len(digits) < len(text) else number


def _number_of(digits: str) -> int:
    """Read digits in pieces that stay below every legal setting of the interpreter's limit."""
    if len(digits) <= _CHUNK_DIGITS:
        return int(digits)
    middle = len(digits) // 2
    low = digits[middle:]
    scale: int = 10 ** len(low)
    return _number_of(digits[:middle]) * scale + _number_of(low)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number.")


_PLAIN = json.JSONDecoder()
_EXACT = json.JSONDecoder(parse_int=_exact_integer)
_STRICT = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)
