"""Compact JSON text for the wire: fixed key order, no spaces, UTF-8 without our escapes."""

from __future__ import annotations

from json.encoder import JSONEncoder
from typing import NoReturn

from ctxengine.engine.errors import WireInvalid
from ctxengine.engine.wire.base import WireFile, WireImage

_encoder = JSONEncoder(ensure_ascii=False)

IMAGE_LEFT_OUT = "[An image stood here; this API does not accept it in this place.]"
FILE_LEFT_OUT = "[A file stood here; this API does not accept it in this place.]"
IMAGE_FOLLOWS = (
    "[The output of this call is not text alone; it stands whole in the next user message.]"
)
CALL_FAILED = "[The call failed; its output follows.]\n"
"""Fixed platform words. They quote nothing of the content, whose file names may be hostile."""


def quoted(text: str) -> str:
    """The JSON string of a text."""
    return _encoder.encode(text)


def utf8(text: str, what: str) -> bytes:
    """Encode strictly.

    Raises:
        WireInvalid: the text holds half of a surrogate pair.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise WireInvalid(
            f"{what} holds half of a surrogate pair at character {error.start}, which UTF-8 cannot "
            "carry; replace it before rendering."
        ) from error


def says_something(text: str) -> bool:
    """Whether a text block may go out: APIs refuse empty ones and ones of white space alone."""
    return bool(text) and not text.isspace()


_HEADS = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
}
"""How images begin in base64, by their type."""
_OTHER_NAMES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}


def image_type(part: WireImage) -> str | None:
    """The registered name of an image's type: as it was stated, or by how its bytes begin; None where neither tells."""
    if part.media_type:
        stated = part.media_type.strip().lower()
        return _OTHER_NAMES.get(stated, stated)
    data = part.base64 or ""
    return next((kind for head, kind in _HEADS.items() if data.startswith(head)), None)


def web_address(url: str | None) -> str | None:
    """An address that a provider can fetch; None for any other."""
    return url if url is not None and url.lower().startswith(("https://", "http://")) else None


def address(part: WireImage | WireFile) -> str | None:
    """The attachment as one address, `data:` for inline bytes; None when it has no bytes and nobody could fetch them."""
    if part.base64 is None:
        return web_address(part.url)
    kind = part.media_type
    if not kind:
        kind = (
            (image_type(part) or "image/png") if isinstance(part, WireImage) else "application/pdf"
        )
    return f"data:{kind};base64,{part.base64}"


def refuse(problem: str) -> NoReturn:
    """Raise `WireInvalid` for something a caller must not hand to a renderer."""
    raise WireInvalid(problem)
