"""Files through the lab with a progress bar, their results kept in a file where that is asked for."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from ctxengine.engine.fidelity.view import Fidelity
from ctxengine.service.replay.figures import CellTotals
from ctxengine.service.replay.many import FileReplayed, Matrix, replay_files

_BAR = 30


def replayed(
    title: str, files: Sequence[Path], matrix: Matrix, *, processes: int, keep: Path | None
) -> tuple[list[CellTotals], int]:
    """Cells of all files, and how many files were no transcripts.

    Args:
        keep: a file of earlier results, which are not replayed again; new ones are added to it.
    """
    wanted = f"{title} {matrix.engines} {[str(model) for model in matrix.models]} {matrix.settings}"
    known = _known(keep, wanted)
    names = {path: _digest(path) for path in files}
    found = [known[name] for name in names.values() if name in known]
    left = [path for path, name in names.items() if name not in known]
    began = time.monotonic()
    _show(title, len(found), len(files), began)
    for file in replay_files(left, matrix, processes=processes):
        found.append(file)
        if keep is not None:
            _keep(keep, wanted, names[file.path], file)
        _show(title, len(found), len(files), began)
    print(file=sys.stderr)
    cells = [cell for file in found for _, cells in file.sessions for cell in cells]
    return cells, sum(bool(file.refused) for file in found)


def _known(keep: Path | None, wanted: str) -> dict[str, FileReplayed]:
    if keep is None or not keep.exists():
        return {}
    lines = [json.loads(line) for line in keep.read_text(encoding="utf-8").splitlines()]
    return {line["sha256"]: _read(line) for line in lines if line["wanted"] == wanted}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _keep(keep: Path, wanted: str, sha256: str, file: FileReplayed) -> None:
    sessions = [[name, [_fields(cell) for cell in cells]] for name, cells in file.sessions]
    line = {
        "wanted": wanted,
        "sha256": sha256,
        "path": str(file.path),
        "refused": file.refused,
        "sessions": sessions,
    }
    with keep.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(line) + "\n")


def _fields(cell: CellTotals) -> dict[str, Any]:
    # `asdict` of the whole would make pairs of what a Counter counts.
    found = {entry.name: getattr(cell, entry.name) for entry in fields(cell)}
    return {**found, "fidelity": asdict(cell.fidelity)}


def _read(line: dict[str, Any]) -> FileReplayed:
    sessions = [(name, [_totals(cell) for cell in cells]) for name, cells in line["sessions"]]
    return FileReplayed(Path(line["path"]), sessions, line["refused"])


def _totals(found: dict[str, Any]) -> CellTotals:
    fidelity = found["fidelity"]
    kinds = {kind: tuple(counts) for kind, counts in fidelity["by_kind"].items()}
    counted: dict[str, Counter[str]] = {
        entry.name: Counter(found.get(entry.name))
        for entry in fields(CellTotals)
        if entry.default_factory is Counter
    }
    return CellTotals(
        **{**found, **counted, "fidelity": Fidelity(**{**fidelity, "by_kind": kinds})}
    )


def _show(title: str, done: int, total: int, began: float) -> None:
    """The bar, on standard error."""
    filled = _BAR * done // max(1, total)
    bar = "#" * filled + "-" * (_BAR - filled)
    seconds = time.monotonic() - began
    print(
        f"\r{title} [{bar}] {done}/{total} files, {seconds:,.0f} s",
        end="",
        file=sys.stderr,
        flush=True,
    )
