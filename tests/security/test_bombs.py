"""Small bodies that would become large ones, and large ones: each is refused with a clear 4xx, and nothing stays of it."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from ctxengine.engine.lexeme import MAX_DEPTH
from ctxengine.ledger.models import Event, ImportRow, Job, SessionRow
from ctxengine.service.imports.source import MAX_FILE_BYTES
from tests.api.door import Answer, Door

CHAT = [{"role": "user", "content": "Which port?"}, {"role": "assistant", "content": "22."}]
FILE = json.dumps(CHAT).encode()


def zipped(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("chat.json", data)
    return out.getvalue()


def tarred(data: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        member = tarfile.TarInfo("chat.json")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def aliases(levels: int) -> bytes:
    """YAML whose every line says the one before ten times."""
    lines = ["version: 1", "interactions: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, levels):
        named = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"k{level}: &a{level} [{named}]")
    return "\n".join(lines).encode()


BOMBS: dict[str, Callable[[], bytes]] = {
    "gzip that unpacks to more than a file may have": lambda: gzip.compress(
        b" " * (MAX_FILE_BYTES + 1), 1
    ),
    "gzip in gzip": lambda: gzip.compress(gzip.compress(FILE)),
    "gzip of nothing but ends": lambda: gzip.compress(b"") * 50_000,
    "gzip that ends early": lambda: gzip.compress(FILE)[:-9],
    "gzip and something behind it": lambda: gzip.compress(b"") + b"\0" * 50,
    "zip": lambda: zipped(b" " * 3_000_000),
    "tar.gz": lambda: tarred(FILE),
    "bzip2": lambda: bz2.compress(b" " * 3_000_000),
    "xz": lambda: lzma.compress(b" " * 3_000_000),
    "yaml aliases": lambda: aliases(9),
    "yaml nested": lambda: b"interactions: " + b"[" * 20_000 + b"]" * 20_000,
    "yaml mappings nested": lambda: b"interactions:\n"
    + b"".join(b" " * n + b"a:\n" for n in range(1, 3_000)),
    "arrays nested": lambda: b"[" * 100_000 + b"]" * 100_000,
    "objects nested": lambda: b'{"messages":' * 50_000 + b"1" + b"}" * 50_000,
    "lines nested": lambda: (b"[" * 5_000 + b"]" * 5_000 + b"\n") * 20,
    "a number of a million digits": lambda: b'[{"role": "user", "content": 1' + b"0" * 1_000_000 + b"}]",
    "a name of a million letters": lambda: b'[{"' + b"a" * 1_000_000 + b'": 1}]',
    "a hundred thousand names": lambda: json.dumps([{f"k{n}": n for n in range(100_000)}]).encode(),
    "a million empty lines": lambda: b"\n" * 1_000_000,
    "nothing but brackets in lines": lambda: b"{}\n" * 200_000,
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_over_rest_and_leaves_nothing(
    door: Door, tenant: UUID, name: str
) -> None:
    answer = door.send(
        "POST", "imports", raw=BOMBS[name](), content_type="application/octet-stream"
    )
    assert answer.status == 422, answer.raw[:300]
    assert answer.code == "import_refused"
    assert answer.json["detail"]
    for model in (SessionRow, ImportRow, Job, Event):
        assert not model._default_manager.filter(tenant_id=tenant).exists()
    # The door still serves.
    good = door.send("POST", "imports", raw=FILE, content_type="application/json")
    assert good.status == 201


DEEP: dict[str, Callable[[int], bytes]] = {
    "arrays": lambda n: b'{"message":' + b"[" * n + b"]" * n + b"}",
    "objects": lambda n: b'{"message":' + b'{"a":' * n + b"1" + b"}" * n + b"}",
    "unended": lambda n: b'{"message":' + b"[" * n,
}


@pytest.mark.parametrize("kind", DEEP)
@pytest.mark.parametrize("depth", [MAX_DEPTH, 10_000, 1_000_000])
def test_a_body_nested_too_deeply_is_a_400_that_says_so(door: Door, kind: str, depth: int) -> None:
    answer = door.send("POST", "sessions", raw=DEEP[kind](depth), content_type="application/json")
    assert answer.status == 400
    assert answer.code in {"too_deep", "invalid_json"}
    if depth > MAX_DEPTH:
        assert answer.code == "too_deep" and str(MAX_DEPTH) in answer.json["detail"]


def announced(door: Door, path: str, length: int, **headers: str) -> Answer:
    """A body of two bytes that claims to be of another size: it is judged before it is read."""
    response = Client().generic(
        "POST", f"/api/v1/{path}", b"{}", content_type="application/json",
        headers={"authorization": f"Bearer {door.key}", **headers}, CONTENT_LENGTH=str(length),
    )  # fmt: skip
    return Answer(response.status_code, response.content, dict(response.headers))


def test_a_body_beyond_the_limit_is_a_413_before_it_is_read(door: Door) -> None:
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    for path in ("sessions", "imports"):
        for length in (max(limit, MAX_FILE_BYTES) + 10_000_000, 10**17, 10**30):
            answer = announced(door, path, length)
            assert (answer.status, answer.code) == (413, "too_large"), (path, length)
            assert "at most" in answer.json["detail"]


def test_a_packed_body_is_a_415_and_is_not_unpacked(door: Door) -> None:
    for packing in ("gzip", "deflate", "br", "zstd", "gzip, gzip"):
        answer = announced(door, "sessions", 2, **{"content-encoding": packing})
        assert (answer.status, answer.code) == (415, "unsupported_media_type"), packing


@pytest.mark.parametrize("count", [2_000, 20_000])
def test_a_form_of_many_parts_is_refused(door: Door, count: int) -> None:
    fields: dict[str, Any] = {f"f{n}": "x" for n in range(count)}
    response = Client().post(
        "/api/v1/imports",
        {"file": SimpleUploadedFile("chat.json", FILE), **fields},
        headers={"authorization": f"Bearer {door.key}"},
    )
    assert 400 <= response.status_code < 500
    assert json.loads(response.content)["code"]
    assert not ImportRow.objects.exists()


def test_parameters_without_number_or_end_are_refused(door: Door) -> None:
    for query in (
        "&".join(f"p{n}=1" for n in range(5_000)),
        "q=" + "a" * 100_000,
        "q=" + "(a%2B)%2B" * 2_000,
        "q=" + "(" * 2_000,
        "cursor=" + "A" * 50_000,
        "limit=" + "9" * 5_000,
    ):
        answer = door.get(f"sessions?{query}")
        assert answer.status in {200, 400}, (query[:30], answer.status)
