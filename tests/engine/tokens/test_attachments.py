"""Images and files cost by formula, never by the length of their base64."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.items import FilePart, ForeignPart, ImagePart, TextPart
from ctxengine.engine.tokens.attachments import (
    REQUEST_ATTACHMENT_CAP,
    Size,
    file_tokens,
    image_size,
    image_tokens,
)
from ctxengine.engine.tokens.estimator import (
    attachment_tokens,
    estimate_call,
    estimate_message,
    estimate_parts,
    estimate_result,
    estimate_tool,
)
from ctxengine.engine.tokens.families import (
    CLAUDE_NEW,
    CLAUDE_OLD,
    FAMILIES,
    O200K,
    UNKNOWN,
    Family,
)
from ctxengine.engine.tokens.text import count_text


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height) + b"\x08\x06"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x00"


def jpeg(width: int, height: int) -> bytes:
    comment = b"\xff\xfe" + struct.pack(">H", 5000) + b"x" * 4998
    frame = b"\xff\xc2\x00\x11\x08" + struct.pack(">HH", height, width) + b"\x03" * 10
    return b"\xff\xd8\xff\xe0\x00\x10" + b"J" * 14 + comment + b"\xff" + frame


def webp(width: int, height: int) -> bytes:
    extended = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00" + extended


def webp_lossless(width: int, height: int) -> bytes:
    bits = (width - 1) | (height - 1) << 14
    return b"RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00\x2f" + struct.pack("<I", bits)


def webp_lossy(width: int, height: int) -> bytes:
    start = b"RIFF\x00\x00\x00\x00WEBPVP8 " + b"\x00" * 7 + b"\x9d\x01\x2a"
    return start + struct.pack("<HH", width, height)


@pytest.mark.parametrize("make", [png, gif, jpeg, webp, webp_lossless, webp_lossy])
def test_the_size_is_read_from_the_head_of_the_file(make: object) -> None:
    assert callable(make)
    data = base64.b64encode(make(640, 360) + b"\x00" * 100_000).decode()
    assert image_size(data) == Size(640, 360)


@given(st.binary(max_size=60), st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8"]))
def test_a_damaged_head_gives_no_size_or_a_possible_one(tail: bytes, head: bytes) -> None:
    found = image_size(base64.b64encode(head + tail).decode())
    assert found is None or min(found) > 0


@given(st.text(max_size=80))
def test_a_text_that_is_no_base64_is_no_error(text: str) -> None:
    found = image_size(text)
    assert found is None or min(found) > 0


@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [
        ("claude-sonnet-4-6", 280, 280, 100),
        ("claude-sonnet-4-6", 4000, 4000, 1568),
        ("claude-opus-4-8", 4000, 4000, 4784),
        ("claude-opus-4-8", None, None, 4784),
        ("gpt-4o", 512, 512, 255),
        ("gpt-4o", 1024, 1024, 765),
        ("gpt-4o", 4096, 2048, 1105),
        ("gpt-5-mini", 1024, 1024, 1659),
        ("gpt-5.4", 1024, 1024, 1024),
        ("gemini-3-pro", 4000, 3000, 1120),
        ("gemini-2.5-flash", 768, 768, 258),
        ("test-200k", 100, 100, 4784),
    ],
)
def test_an_image_costs_what_the_provider_charges(
    model: str, width: int | None, height: int | None, tokens: int
) -> None:
    assert image_tokens("", model, width, height) == tokens


@given(st.integers(-5, 10**10), st.integers(-5, 10**10), st.sampled_from(sorted(FAMILIES)))
def test_every_image_costs_something_and_none_costs_a_window(w: int, h: int, family: str) -> None:
    model = {"o200k": "gpt-5.4", "cl100k": "gpt-4", "claude-old": "claude-sonnet-4-6"}.get(
        family, family
    )
    assert 1 <= image_tokens("", model, w, h) <= 40_000


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_large_image_block_is_not_counted_as_text(family: Family) -> None:
    part = ImagePart(media_type="image/png", base64="iVBORw0KGgoAAAANSUhEUgAA" * 60_000)
    for estimate in (estimate_message((part,), family), estimate_result((part,), family)):
        assert 1 <= estimate <= (10_000 if family is UNKNOWN else 10_100)


def test_a_known_size_makes_an_image_cheaper_than_the_upper_bound() -> None:
    data = base64.b64encode(png(280, 280)).decode()
    sized = ImagePart(media_type="image/png", base64=data)
    assert attachment_tokens(sized, "anthropic", "claude-opus-4-8") == 100
    assert (
        attachment_tokens(ImagePart(url="https://e.example/a.png"), "", "claude-opus-4-8") == 4784
    )


def test_files_cost_by_their_pages_and_texts_by_their_bytes() -> None:
    assert file_tokens("", "claude-sonnet-4-6", "text/plain", "a" * 400) == 300
    one = file_tokens("", "claude-sonnet-4-6", "application/pdf", None, page_count=1)
    assert 3_000 < one <= 3_000 + 1_568
    assert file_tokens("", "claude-sonnet-4-6", "application/pdf", None, page_count=2) == 2 * one
    assert file_tokens("", "x", "application/pdf", "a" * 9_000_000) == REQUEST_ATTACHMENT_CAP
    assert file_tokens("", "x", None, None) > 0
    assert 0 < estimate_parts((FilePart(media_type="image/png"),), CLAUDE_OLD) <= 1_568


def test_a_block_only_one_provider_knows_costs_its_text() -> None:
    part = ForeignPart(kind="server_tool_use", raw='{"a": "some text"}', api="anthropic")
    assert estimate_parts((part, TextPart("hello")), O200K) == count_text(part.raw, O200K) + 1


def test_calls_results_and_tools_carry_their_frames() -> None:
    assert estimate_call("web.fetch", '{"url": 1}', CLAUDE_NEW) > 45
    assert estimate_call("web.fetch", None, O200K) >= 16
    assert estimate_result((), O200K) == O200K.per_result
    schema = '{"type":"object","properties":{"url":{"type":"string"}},"required":["url"]}'
    bare = count_text(f"fetch\nGets a page.\n{schema}", O200K)
    assert estimate_tool("fetch", "Gets a page.", schema, CLAUDE_OLD) == -(-bare * 260 // 100)
    assert estimate_tool("fetch", "Gets a page.", schema, CLAUDE_NEW) == -(-bare * 320 // 100)
    for family in FAMILIES.values():
        assert estimate_tool("fetch", "Gets a page.", schema, family) >= bare
