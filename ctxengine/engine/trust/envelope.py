"""The delimited, attributed form of content below configuration trust.

Design 7.5 and 7.6; frozen-prefix spec, Trust labeling and rendering.

An envelope is an opening line, the content, and a closing line that carries the item's nonce. The
content is escaped so that nothing in it can be taken for a delimiter, and the escape can be undone
exactly. Escaping adds one stuffing character inside the name of every look-alike; undoing removes
one. Because the pattern that finds them allows any number of stuffing characters, both directions
see the same places, so that a text which already held an escaped look-alike stays different from
one that held it bare.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import NamedTuple

from ctxengine.engine.errors import EngineError
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.lookalikes import (
    BARE,
    STUFFED,
    STUFFING,
    TAG,
    is_closing,
    may_hold_lookalike,
)
from ctxengine.engine.trust.model_view import model_view

NONCE_DIGITS = 16
"""Hex digits of a nonce (64 bits)."""

MAX_ATTRIBUTE_CHARS = 200
"""A longer source or id is cut; an origin's name is a label, not a place for content."""

_MIN_KEY_BYTES = 16
_ATTRIBUTE_SAFE = re.compile(r"[A-Za-z0-9 ._:/@+#?=,;!*()\[\]{}|^$~-]")
_NONCE = re.compile(r"[0-9a-f]{12,64}")
_OPENING_LINE = re.compile(
    rf'<{TAG} source="[^"\n]*" id="[^"\n]*" trust="[A-Z_]+" nonce="([0-9a-f]+)"'
)


class EnvelopeError(EngineError, ValueError):
    """An envelope cannot be made, or a text is not one."""

    code = "envelope_invalid"


class EnvelopeCount(NamedTuple):
    """How many delimiters, real or imitated, a text shows."""

    opens: int
    closes: int


def nonce(key: bytes, item_id: str, form: str, digest: str) -> str:
    """The nonce of one item in one form: the same in every build, unguessable without the key.

    Args:
        key: the session's random key, at least 16 bytes.
        item_id: `sequence.ordinal` of the item.
        form: how it is shown (whole, window, digest, ...); another form has another nonce.
        digest: digest of the content.

    Raises:
        EnvelopeError: the key is too short to be secret.
    """
    if len(key) < _MIN_KEY_BYTES:
        raise EnvelopeError(
            f"A nonce key has at least {_MIN_KEY_BYTES} bytes; this one has {len(key)}. "
            "Use the session's own random key."
        )
    # Length prefixes keep the three fields apart whatever they contain.
    fields = (field.encode("utf-8", "surrogatepass") for field in (item_id, form, digest))
    message = b"".join(len(field).to_bytes(8, "big") + field for field in fields)
    return hmac.new(key, message, hashlib.sha256).hexdigest()[:NONCE_DIGITS]


def escape(text: str) -> str:
    """The text with every delimiter look-alike defused; `unescape` gives the text back exactly."""
    if not may_hold_lookalike(text):
        return text
    return STUFFED.sub(_with_one_more, text)


def unescape(text: str) -> str:
    """Undo `escape`."""
    if STUFFING not in text:
        return text
    return STUFFED.sub(_with_one_less, text)


def open_marker(
    *,
    source: str,
    item_id: str,
    trust: Trust,
    nonce: str,
    truncated: bool = False,
    total_bytes: int | None = None,
) -> str:
    """The opening line without its line feed.

    Args:
        source: where the content comes from, for example `tool:web.fetch`; hostile, so escaped.
        item_id: `sequence.ordinal` of the item.
        trust: level of the content, below configuration trust.
        nonce: what `nonce` gave for this item and form.
        truncated: whether content is missing.
        total_bytes: length of the whole content in bytes, when that is known.

    Raises:
        EnvelopeError: the nonce is not one, or the trust level needs no envelope.
    """
    _check_nonce(nonce)
    if trust.rank <= Trust.TRUSTED_CONFIGURATION.rank:
        raise EnvelopeError(
            f"Content of level {trust} is rendered as it is; envelopes are for levels below "
            f"{Trust.TRUSTED_CONFIGURATION}."
        )
    cut = ' truncated="true"' if truncated else ""
    size = "" if total_bytes is None else f' total_bytes="{int(total_bytes)}"'
    return (
        f'<{TAG} source="{_attribute(source)}" id="{_attribute(item_id)}" trust="{trust.value}"'
        f' nonce="{nonce}"{cut}{size}>'
    )


def close_marker(nonce: str) -> str:
    """The closing line without its line feed; raises `EnvelopeError` when the nonce is not one."""
    _check_nonce(nonce)
    return f"</{TAG}:{nonce}>"


def render_envelope(
    text: str,
    *,
    source: str,
    item_id: str,
    trust: Trust,
    nonce: str,
    truncated: bool = False,
    total_bytes: int | None = None,
) -> str:
    """Text content in its envelope, ready for a wire: made carriable, escaped, delimited.

    Content with images is put between an `open_marker` and a `close_marker` text block instead,
    each text among it through `escape(model_view(text))`. Raises as `open_marker` does.
    """
    opening = open_marker(
        source=source,
        item_id=item_id,
        trust=trust,
        nonce=nonce,
        truncated=truncated,
        total_bytes=total_bytes,
    )
    return f"{opening}\n{escape(model_view(text))}\n{close_marker(nonce)}"


def enclosed_text(rendered: str) -> str:
    """The content of one rendered envelope, unescaped.

    Raises:
        EnvelopeError: the text does not start and end with the two lines of one envelope.
    """
    opening, _, rest = rendered.partition("\n")
    match = _OPENING_LINE.match(opening)
    closing = f"\n{close_marker(match[1])}" if match else ""
    if not match or not rest.endswith(closing):
        raise EnvelopeError(
            "The text is not one envelope: its first and last line must be the markers of one "
            "nonce. Pass it as it was rendered."
        )
    return unescape(rest[: len(rest) - len(closing)])


def count_envelopes(rendered: str) -> EnvelopeCount:
    """Count delimiters and all that could pass for one; a sound text has one pair per item."""
    if not may_hold_lookalike(rendered):
        return EnvelopeCount(0, 0)
    closes = [is_closing(match) for match in BARE.finditer(rendered)]
    return EnvelopeCount(opens=len(closes) - sum(closes), closes=sum(closes))


def _with_one_more(match: re.Match[str]) -> str:
    at = match.start("stuffing") - match.start()
    return f"{match[0][:at]}{STUFFING}{match[0][at:]}"


def _with_one_less(match: re.Match[str]) -> str:
    if not match["stuffing"]:
        return match[0]
    at = match.start("stuffing") - match.start()
    return match[0][:at] + match[0][at + 1 :]


def _check_nonce(value: str) -> None:
    if _NONCE.fullmatch(value) is None:
        raise EnvelopeError(
            f"A nonce is 12 to 64 lower-case hex digits, not {value!r:.80}; derive it with nonce()."
        )


def _attribute(value: str) -> str:
    """A label that can neither leave its quotes nor start a delimiter, on one line."""
    label = value[:MAX_ATTRIBUTE_CHARS]
    shown = "".join(c if _keeps_its_form(c) else f"(U+{ord(c):04X})" for c in label)
    return shown if len(label) == len(value) else f"{shown}..."


def _keeps_its_form(character: str) -> bool:
    if character.isascii():
        return _ATTRIBUTE_SAFE.match(character) is not None
    return character.isalnum() and BARE.search(f"{character}{TAG}") is None
