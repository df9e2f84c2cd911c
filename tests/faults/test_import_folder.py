"""A folder as people have it: transcripts among everything else. What can be read goes in, the rest is named."""

from __future__ import annotations

import errno
import gzip
import json
import os
import tempfile
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from pytest_django import Settings

from ctxengine.ledger.bulk import write_lines
from ctxengine.ledger.models import Body, Event, ImportRow, ItemRow, PlanRow, RequestRow, SessionRow
from ctxengine.service import import_transcript
from ctxengine.service.imports import source
from tests.factories import make_tenant
from tests.faults.page import Check, fault

pytestmark = [pytest.mark.faults, pytest.mark.django_db]

CHAT = json.dumps(
    {
        "messages": [
            {"role": "user", "content": "Which port?"},
            {"role": "assistant", "content": "5432."},
        ]
    }
)
ROWS = (SessionRow, Event, Body, ItemRow, PlanRow, RequestRow, ImportRow)
SPARSE_BYTES = 200 * 1024 * 1024


def sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


def _outside(link: Path) -> Path:
    """A good transcript beside the folder that the link lies in."""
    beside = link.parent.parent / f"beside {link.parent.name}.json"
    beside.write_text(CHAT.replace("5432", "5999"))
    return beside


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "binary.jsonl": (lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), "zero bytes"),
    "latin.json": (lambda path: path.write_bytes(b'{"messages":["caf\xe9"]}'), "not UTF-8"),
    "empty.json": (lambda path: path.touch(), "empty"),
    "blank.json": (lambda path: path.write_text(" \n\t\n"), "empty"),
    "sparse.json": (lambda path: sparse(path, SPARSE_BYTES), "zero bytes"),
    "vast.json": (lambda path: sparse(path, 3 * SPARSE_BYTES), "at most"),
    "cut.json.gz": (
        lambda path: path.write_bytes(gzip.compress(CHAT.encode())[:-12]),
        "gzip data is truncated",
    ),
    "damaged.json.gz": (lambda path: path.write_bytes(b"\x1f\x8b\x08nothing"), "gzip data"),
    "cut.json": (lambda path: path.write_text(CHAT[: len(CHAT) // 2]), "no JSON"),
    "package.json": (
        lambda path: path.write_text('{"name":"x","version":"1","dependencies":{}}'),
        "no known transcript",
    ),
    "number.json": (lambda path: path.write_text("42"), "no transcript"),
    "null.json": (lambda path: path.write_text("null"), "no transcript"),
    "text.json": (lambda path: path.write_text('"str"'), "no transcript"),
    "nan.json": (lambda path: path.write_text('{"loss": NaN}'), "no known transcript"),
    "deep.json": (lambda path: path.write_text("[" * 100_000 + "]" * 100_000), "nested deeper"),
    "notes.md": (lambda path: path.write_text("# Notes\n"), "no transcript"),
    "loop": (lambda path: path.symlink_to(path.name), "cannot be read"),
    "gone.json": (lambda path: path.symlink_to("nowhere"), "cannot be read"),
    "out.json": (lambda path: path.symlink_to(_outside(path)), "outside the folder"),
    "up": (lambda path: path.symlink_to(path.parent), "link to a folder"),
    "pipe.json": (os.mkfifo, "no regular file"),
}
"""How each file is made, and words of the reason it is refused for."""
GOOD: dict[str, bytes] = {
    "chat.json": CHAT.encode(),
    "packed.bin": gzip.compress(CHAT.replace("5432", "5433").encode()),
    "wrong_extension.png": CHAT.replace("5432", "5434").encode(),
    "nested/with_nan.json": CHAT.replace('"5432."', '"5435.", "score": NaN').encode(),
    "nested/marked.json": b"\xef\xbb\xbf" + CHAT.replace("5432", "5436").encode(),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, (make, _) in BAD.items():
        make(tmp_path / name)
    for name, data in GOOD.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    return tmp_path


@pytest.fixture
def tenant() -> str:
    return str(make_tenant().slug)


def run_import(folder: Path, tenant: str, *options: str) -> tuple[int, list[dict[str, Any]]]:
    out = StringIO()
    code = 0
    try:
        call_command(
            "import_transcripts", str(folder), "--tenant", tenant, "--json", *options, stdout=out
        )
    except SystemExit as ended:
        code = int(str(ended.code))
    return code, [json.loads(line) for line in out.getvalue().splitlines()]


def counts() -> list[int]:
    return [model.objects.count() for model in ROWS]


@fault(
    "files that are binary, cut, damaged, vast, too deep, links to nowhere or no files at all",
    "in a folder that is imported", Check.SERVES, Check.NOTHING,
)  # fmt: skip
def test_what_can_be_read_goes_in_and_the_rest_is_named(folder: Path, tenant: str) -> None:
    code, lines = run_import(folder, tenant)
    assert code == 1
    by_name = {str(Path(line["path"]).relative_to(folder)): line for line in lines}
    assert set(by_name) == set(BAD) | set(GOOD)
    assert len(lines) == len(by_name)
    for name, (_, words) in BAD.items():
        line = by_name[name]
        assert (line["status"], line["sessions"]) == ("refused", []), name
        assert words in line["reason"], (name, line["reason"])
    for name in GOOD:
        assert by_name[name]["status"] == "imported", by_name[name]
        assert by_name[name]["items_in"] == by_name[name]["items_kept"] == 2
    assert ImportRow.objects.count() == SessionRow.objects.count() == len(GOOD)
    written = counts()
    code, again = run_import(folder, tenant)
    assert code == 1
    assert {line["status"] for line in again} == {"refused", "unchanged"}
    Check.SERVES.passed()
    assert counts() == written
    Check.NOTHING.passed()


def test_a_dry_run_says_the_same_and_writes_nothing(folder: Path, tenant: str) -> None:
    before = counts()
    code, lines = run_import(folder, tenant, "--dry-run")
    assert code == 1
    assert counts() == before
    told = {line["name"]: (line["status"], line["reason"], line["items_in"]) for line in lines}
    assert all(line["dry_run"] for line in lines)
    _, real = run_import(folder, tenant)
    assert {
        line["name"]: (line["status"], line["reason"], line["items_in"]) for line in real
    } == told


def test_a_folder_of_good_files_ends_with_zero(tmp_path: Path, tenant: str) -> None:
    (tmp_path / "chat.json").write_text(CHAT)
    code, (line,) = run_import(tmp_path, tenant)
    assert (code, line["status"]) == (0, "imported")


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path, tenant: str) -> None:
    if os.geteuid() == 0:
        pytest.skip("permissions: root may read everything")
    (tmp_path / "closed.json").write_text(CHAT)
    (tmp_path / "closed.json").chmod(0)
    (tmp_path / "shut").mkdir(mode=0)
    code, lines = run_import(tmp_path, tenant)
    (tmp_path / "shut").chmod(0o700)
    assert code == 1
    assert all("cannot be read" in line["reason"] for line in lines)
    assert len(lines) == 2


@fault("a small file that unpacks to a large one", "in an import", Check.NOTHING)
def test_a_small_file_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "MAX_FILE_BYTES", 5_000)
    (tmp_path / "bomb.json.gz").write_bytes(gzip.compress(b" " * 1_000_000))
    code, (line,) = run_import(tmp_path, tenant)
    assert code == 1
    assert "has more than 0.0 MB" in line["reason"]
    assert not ImportRow.objects.exists()
    Check.NOTHING.passed()


@fault("no space is left", "when the last of an import's sessions is written", Check.NOTHING)
def test_a_failure_half_way_leaves_nothing_behind(
    tmp_path: Path, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    episodes = [
        {"traj": [{"role": "user", "content": f"task {n}"}], "task_id": n} for n in range(3)
    ]
    (tmp_path / "episodes.json").write_text(json.dumps(episodes))
    written = 0

    def write(*args: Any, **options: Any) -> None:
        nonlocal written
        written += 1
        if written == 3:
            raise OSError("No space left on device")
        write_lines(*args, **options)

    before = counts()
    monkeypatch.setattr(import_transcript, "write_lines", write)
    with pytest.raises(OSError, match="No space"):
        run_import(tmp_path, tenant)
    assert counts() == before
    Check.NOTHING.passed()


def test_a_link_that_stays_inside_is_followed_and_one_that_is_named_too(
    tmp_path: Path, tenant: str
) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "a.json").write_text(CHAT)
    (folder / "same.json").symlink_to("a.json")
    (tmp_path / "link to given").symlink_to("given")
    (tmp_path / "named.json").symlink_to(_outside(folder / "x"))
    status, lines = run_import(tmp_path / "link to given", tenant)
    assert [line["status"] for line in lines] == ["imported", "unchanged"]
    assert status == 0
    status, lines = run_import(tmp_path / "named.json", tenant)
    assert [line["status"] for line in lines] == ["imported"]


def _full(monkeypatch: pytest.MonkeyPatch, settings: Settings, folder: Path) -> None:
    full = os.fdopen(os.open("/dev/full", os.O_RDWR), "r+b", buffering=0)
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full)


def _no_folder(monkeypatch: pytest.MonkeyPatch, settings: Settings, folder: Path) -> None:
    (folder / "file").touch()
    settings.CTX_DATA_DIR = folder / "file"


def _damaged(monkeypatch: pytest.MonkeyPatch, settings: Settings, folder: Path) -> None:
    def fails(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "pread", fails)


def _short(monkeypatch: pytest.MonkeyPatch, settings: Settings, folder: Path) -> None:
    monkeypatch.setattr(os, "pread", lambda *_: b"")


@pytest.mark.parametrize(
    ("breaks", "words"),
    [
        (_full, "There is no room for the texts of this file"),
        (_no_folder, "cannot be put aside in the data folder while it is read: Not a directory"),
        (_damaged, "cannot be read again: Input/output error"),
        (_short, "cannot be read again: the file ends"),
    ],
    ids=["full", "no folder", "damaged", "short"],
)
@fault(
    "the disk is full or damaged", "under the texts that a long file puts aside",
    Check.SERVES, Check.NOTHING,
)  # fmt: skip
def test_a_file_whose_texts_cannot_be_put_aside_is_named_and_the_next_goes_in(
    tmp_path: Path,
    tenant: str,
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    breaks: Callable[[pytest.MonkeyPatch, Settings, Path], None],
    words: str,
) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    said = [{"role": "user", "content": "why " * 400}, {"role": "assistant", "content": "So."}]
    lines = "".join(json.dumps(message) + "\n" for message in said).encode()
    (folder / "a long one.gz").write_bytes(gzip.compress(lines))
    (folder / "chat.json").write_text(CHAT)
    breaks(monkeypatch, settings, tmp_path)
    code, (refused, taken) = run_import(folder, tenant)
    assert (code, refused["status"], words in refused["reason"]) == (1, "refused", True), refused
    assert taken["status"] == "imported"
    Check.SERVES.passed()
    assert SessionRow.objects.count() == ImportRow.objects.count() == 1
    Check.NOTHING.passed()


def held(what: str) -> int:
    """A figure of this process' memory (bytes)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{what}:"))


@fault("the last bytes of 200 MB of transcript are missing", "in a folder", Check.NOTHING)
def test_of_a_long_file_that_is_cut_nothing_goes_in_and_little_is_held(
    tmp_path: Path, tenant: str
) -> None:
    said = [
        {"role": "user", "content": "Read it." + " " * 400_000},
        {"role": "assistant", "content": "Done." + " " * 100_000},
    ]
    lines = "".join(json.dumps(message) + "\n" for message in said).encode()
    with gzip.open(tmp_path / "long.jsonl.gz", "wb", compresslevel=1) as file:
        for _ in range(SPARSE_BYTES // len(lines)):
            file.write(lines)
    packed = (tmp_path / "long.jsonl.gz").read_bytes()
    (tmp_path / "long.jsonl.gz").write_bytes(packed[:-4])
    (tmp_path / "chat.json").write_text(CHAT)
    Path("/proc/self/clear_refs").write_text("5")
    before = held("VmRSS")
    code, refused = run_import(tmp_path, tenant)
    assert held("VmHWM") - before < SPARSE_BYTES // 2
    by_status = {line["status"]: line for line in refused}
    assert (code, set(by_status)) == (1, {"imported", "refused"})
    assert "truncated" in by_status["refused"]["reason"]
    assert SessionRow.objects.count() == ImportRow.objects.count() == 1
    Check.NOTHING.passed()
