"""Packed files: every member of gzip data is taken, at every door, and nothing that follows it is passed over."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.ledger.models import Body, Event, ImportRow, SessionRow
from ctxengine.service.import_transcript import ImportOutcome, import_file, import_path
from ctxengine.service.imports import source
from ctxengine.service.imports.packed import unpacked
from tests.cast import new_actor
from tests.service.test_import_streamed import LINES

HALF = len(LINES) // 2
FIRST, SECOND = gzip.compress(LINES[:HALF]), gzip.compress(LINES[HALF:])
"""Two members; a line is begun in one and ended in the other."""
Door = Callable[[bytes], ImportOutcome]


@pytest.fixture(params=["at hand", "from disk"])
def door(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Door:
    monkeypatch.setattr(source, "_CHUNK", 99)
    path = tmp_path / "log.gz"

    def at_hand(data: bytes) -> ImportOutcome:
        return import_file(actor=new_actor(), name=path.name, data=data)

    def from_disk(data: bytes) -> ImportOutcome:
        path.write_bytes(data)
        return import_path(actor=new_actor(), path=path)

    return at_hand if request.param == "at hand" else from_disk


@pytest.mark.django_db
@pytest.mark.parametrize(
    "data",
    [FIRST + SECOND, FIRST + gzip.compress(b"") + SECOND, FIRST + bytes(700) + SECOND + bytes(512)],
    ids=["two members", "an empty one between", "padded with zeros"],
)
def test_a_file_of_several_members_goes_in_to_its_last_line(door: Door, data: bytes) -> None:
    outcome = door(data)
    assert (outcome.status, outcome.items_in, outcome.items_kept) == ("imported", 16, 16)


@pytest.mark.django_db
def test_an_archive_is_refused_with_the_way_to_have_it_read(door: Door) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("header.json", "{}")
    outcome = door(out.getvalue())
    assert outcome.status == "refused"
    assert "zip archive" in outcome.reason and "inspect log dump" in outcome.reason


@pytest.mark.django_db
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_text_of_another_encoding_is_named_as_such(door: Door, encoding: str) -> None:
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    outcome = door(mark + LINES.decode().encode(encoding))
    assert (outcome.status, "UTF-16" in outcome.reason) == ("refused", True)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (FIRST + SECOND[:-5], "truncated"),
        (FIRST + SECOND[:40] + b"broken" * 9, "damaged"),
        (FIRST + LINES[HALF:], "followed by bytes that are no gzip data"),
        (FIRST + bytes(700) + b"\x1f", "followed by bytes that are no gzip data (they begin with 1f)"),
    ],
    ids=["truncated", "damaged", "lines that are not packed", "one byte"],
)  # fmt: skip
def test_what_follows_a_member_and_cannot_be_read_refuses_the_file(
    door: Door, data: bytes, reason: str
) -> None:
    outcome = door(data)
    assert (outcome.status, reason in outcome.reason) == ("refused", True), outcome.reason
    for model in (SessionRow, Event, Body, ImportRow):
        assert not model.objects.exists()


@pytest.mark.django_db
def test_members_have_one_limit_together(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_FILE_BYTES", len(LINES) - 1)
    outcome = door(FIRST + SECOND)
    assert (outcome.status, "has more than" in outcome.reason) == ("refused", True)


@given(
    st.binary(max_size=60_000),
    st.lists(st.integers(0, 60_000), max_size=5),
    st.integers(1, 40_000),
    st.integers(0, 3),
)
def test_wherever_members_and_chunks_end_the_content_is_whole(
    data: bytes, ends: list[int], chunk: int, padding: int
) -> None:
    cuts = sorted({0, len(data), *(end for end in ends if end < len(data))})
    members = [gzip.compress(data[at:end], 1) for at, end in pairwise(cuts)] or [
        gzip.compress(data)
    ]
    packed = bytes(padding).join(members) + bytes(padding)
    chunks = (packed[at : at + chunk] for at in range(0, len(packed), chunk))
    assert b"".join(unpacked(chunks)) == data
