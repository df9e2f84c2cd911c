"""What images and files cost: by the provider's formula, never by the length of their base64.

Frozen-prefix spec, The token estimator (attachments); design 7.4. Where a size is not known the
figure is an upper bound of what the provider charges for any size.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from typing import NamedTuple

from ctxengine.engine.tokens.families import family_of

REQUEST_ATTACHMENT_CAP = 100_000
"""Most tokens that all attachments of one request are estimated at."""

UNKNOWN_IMAGE_TOKENS = 4_784
"""Upper bound for an image on a model whose rules are not known."""

PDF_PAGE_TEXT_TOKENS = 3_000
"""Most text tokens a provider extracts from one page; the page's image comes on top."""

_LARGEST_ORIGINAL = 8_300
"""Patches of an image sent unresized whose size is not known: about 3,400 pixels by 2,500."""

_LONGEST_EDGE = 30_000
"""Pixels; a header that claims more is damaged or lies, and no provider takes such an image."""

_HEAD_CHARS = 64 * 1024
_SMALLEST_PDF_PAGE_BYTES = 2_000
_MAX_PDF_PAGES = 600
_AUDIO_BYTES_PER_TOKEN = 100
"""Bytes of a recording that make a token at most: 32 tokens a second at 3 KB a second, which is little for speech."""
_FLAT_FILE_TOKENS = 20_000
"""For a file known only by its address."""


class Size(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int


class _Tiles(NamedTuple):
    base: int
    per_tile: int


class _Patches(NamedTuple):
    hundredths: int
    budget: int


_OPENAI_RULES: tuple[tuple[re.Pattern[str], _Tiles | _Patches], ...] = (
    (re.compile(r"4o-mini"), _Tiles(2833, 5667)),
    (re.compile(r"o4-mini"), _Patches(172, 1_536)),
    (re.compile(r"nano"), _Patches(246, 1_536)),
    (re.compile(r"(?:gpt-5|5\.4|4\.1)-mini"), _Patches(162, 1_536)),
    (re.compile(r"4o|4\.1|4\.5|gpt-4"), _Tiles(85, 170)),
    (re.compile(r"\bo[13]\b"), _Tiles(75, 150)),
    (re.compile(r"gpt-5\.[23]"), _Patches(100, 1_536)),
    (re.compile(r"gpt-5\.[45]"), _Patches(100, 10_000)),
    (re.compile(r"gpt-5\.|gpt-[6-9]"), _Patches(120, 30_000)),
    (re.compile(r"gpt-5"), _Tiles(70, 140)),
)
_OPENAI_OTHER = _Patches(120, 10_000)


def image_tokens(provider: str, model: str, width: int | None, height: int | None) -> int:
    """Tokens one image costs on a model; an upper bound when its size is not known.

    Args:
        provider: name of the provider, used where the model's name does not tell its rules.
        model: name of the model.
        width: pixels, or None.
        height: pixels, or None.
    """
    size = Size(width, height) if width and height and width > 0 and height > 0 else None
    family = family_of(provider, model).name
    name = model.lower()
    if family.startswith("claude"):
        return _anthropic_image(size, newer=family == "claude-new")
    if family in ("o200k", "cl100k", "gpt-6"):
        rule = next((rule for pattern, rule in _OPENAI_RULES if pattern.search(name)), None)
        return _openai_image(size, rule or _OPENAI_OTHER)
    if family == "gemini":
        return _gemini_image(size, tiled="2.5" in name or "2.0" in name)
    return UNKNOWN_IMAGE_TOKENS


def file_tokens(
    provider: str, model: str, media_type: str | None, base64_text: str | None, page_count: int = 0
) -> int:
    """Upper bound for a file: a PDF by its pages, text by its decoded length, a recording by its bytes, else a flat figure.

    Args:
        provider: name of the provider.
        model: name of the model.
        media_type: as received, or None.
        base64_text: the inline content, or None when only an address is known.
        page_count: pages of a PDF when they are known, else 0.
    """
    size = 3 * len(base64_text) // 4 if base64_text else 0
    if media_type and media_type.startswith("text/") and size:
        return size
    if media_type and media_type.startswith("image/"):
        return image_tokens(provider, model, None, None)
    if media_type and media_type.startswith("audio/") and size:
        return min(1 + size // _AUDIO_BYTES_PER_TOKEN, REQUEST_ATTACHMENT_CAP)
    if page_count <= 0 and size == 0:
        return _FLAT_FILE_TOKENS
    pages = page_count if page_count > 0 else 1 + size // _SMALLEST_PDF_PAGE_BYTES
    per_page = PDF_PAGE_TEXT_TOKENS + image_tokens(provider, model, 1_240, 1_754)
    return min(min(pages, _MAX_PDF_PAGES) * per_page, REQUEST_ATTACHMENT_CAP)


def image_size(base64_text: str) -> Size | None:
    """Pixel size from the head of a PNG, JPEG, GIF or WebP in base64; None when it does not tell.

    Only the first 48 KiB are decoded.
    """
    head = base64_text[:_HEAD_CHARS]
    try:
        data = base64.b64decode(head[: len(head) // 4 * 4], validate=False)
    except (binascii.Error, ValueError):
        return None
    try:
        return _size_of(data)
    except (struct.error, IndexError):
        return None


def _size_of(data: bytes) -> Size | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR":
        return _plausible(*struct.unpack_from(">II", data, 16))
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return _plausible(*struct.unpack_from("<HH", data, 6))
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp_size(data)
    if data.startswith(b"\xff\xd8"):
        return _jpeg_size(data)
    return None


def _webp_size(data: bytes) -> Size | None:
    kind = data[12:16]
    if kind == b"VP8X":
        width = int.from_bytes(data[24:27], "little") + 1
        height = int.from_bytes(data[27:30], "little") + 1
        return _plausible(width, height) if len(data) >= 30 else None
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return Size((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return _plausible(width & 0x3FFF, height & 0x3FFF)
    return None


def _jpeg_size(data: bytes) -> Size | None:
    at = 2
    while at + 9 <= len(data):
        if data[at] != 0xFF:
            return None
        kind = data[at + 1]
        if kind == 0xFF:
            at += 1
        elif 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return _plausible(width, height)
        elif kind == 0x01 or 0xD0 <= kind <= 0xD8:
            at += 2
        else:
            at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
    return None


def _plausible(width: int, height: int) -> Size | None:
    in_range = 0 < width <= _LONGEST_EDGE and 0 < height <= _LONGEST_EDGE
    return Size(width, height) if in_range else None


def _parts(length: int, step: int) -> int:
    return -(-length // step)


def _shrunk(size: Size, longest: int) -> Size:
    edge = max(size)
    if edge <= longest:
        return size
    return Size(_parts(size.width * longest, edge), _parts(size.height * longest, edge))


def _anthropic_image(size: Size | None, *, newer: bool) -> int:
    cap, longest = (4_784, 2_576) if newer else (1_568, 1_568)
    if size is None:
        return cap
    fitted = _shrunk(size, longest)
    return min(cap, _parts(fitted.width, 28) * _parts(fitted.height, 28))


def _openai_image(size: Size | None, rule: _Tiles | _Patches) -> int:
    if isinstance(rule, _Patches):
        patches = rule.budget
        if size is not None:
            patches = min(patches, _parts(size.width, 32) * _parts(size.height, 32))
        elif patches > _LARGEST_ORIGINAL:
            patches = _LARGEST_ORIGINAL
        return _parts(patches * rule.hundredths, 100)
    if size is None:
        return rule.base + 8 * rule.per_tile
    fitted = _shrunk(size, 2_048)
    short = min(fitted)
    if short > 768:
        fitted = Size(_parts(fitted.width * 768, short), _parts(fitted.height * 768, short))
    return rule.base + rule.per_tile * _parts(fitted.width, 512) * _parts(fitted.height, 512)


def _gemini_image(size: Size | None, *, tiled: bool) -> int:
    if not tiled:
        return 1_120
    if size is None:
        return 258 * 12
    return 258 * min(16, _parts(size.width, 768) * _parts(size.height, 768))
