"""Whole files and folders of transcripts through the lab, on as many processes as there are."""

from __future__ import annotations

import gzip
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from ctxengine.engine.errors import EngineError
from ctxengine.engine.importers.errors import NotATranscript
from ctxengine.engine.importers.registry import read
from ctxengine.service.imports.source import MAX_FILE_BYTES
from ctxengine.service.replay.cell import replay_cell
from ctxengine.service.replay.figures import CellTotals
from ctxengine.service.replay.from_transcript import source_of_transcript
from ctxengine.service.replay.models import LabModel
from ctxengine.service.replay.reading import Reading, reading_of
from ctxengine.service.replay.wanted import ReplaySettings

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Matrix:
    """Which cells are wanted."""

    engines: tuple[str, ...]
    models: tuple[LabModel, ...]
    settings: tuple[ReplaySettings, ...]
    at: datetime
    """The day whose prices apply."""

    def __len__(self) -> int:
        return len(self.engines) * len(self.models) * len(self.settings)

    def cells(self, reading: Reading) -> Iterator[CellTotals]:
        """Every cell over one transcript."""
        for settings in self.settings:
            for model in self.models:
                for engine in self.engines:
                    cell = replay_cell(
                        reading, engine, model, settings, at=self.at, keep_steps=False
                    )
                    yield cell.totals


@dataclass(slots=True)
class FileReplayed:
    """What one file gave."""

    path: Path
    sessions: list[tuple[str, list[CellTotals]]] = field(default_factory=list)
    """(name, its cells) of each conversation."""
    refused: str = ""
    """Why it could not be read."""


def readings_of_file(path: Path) -> list[Reading]:
    """Every conversation of a transcript file in which a model was asked.

    Raises:
        NotATranscript: the file is no transcript that is known, or too large for one.
        OSError: it cannot be read.
        UnicodeDecodeError: it is no UTF-8.
    """
    found = read(_text_of(path), name=path.name)
    sources = [
        source_of_transcript(session, name=f"{path.name}#{session.key}")
        for session in found.sessions
    ]
    return [reading_of(source) for source in sources if source.steps]


def _text_of(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if data.startswith(_GZIP):
        with gzip.open(path) as packed:
            data = packed.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise NotATranscript(f"{path.name} is larger than {MAX_FILE_BYTES:,} bytes.")
    return data.decode("utf-8", "surrogatepass")


def replay_file(path: Path, matrix: Matrix) -> FileReplayed:
    """Every cell over every conversation of one file."""
    try:
        readings = readings_of_file(path)
    except (EngineError, OSError, ValueError) as error:
        return FileReplayed(path, refused=str(error))
    done = FileReplayed(path)
    for reading in readings:
        done.sessions.append((reading.source.name, list(matrix.cells(reading))))
    return done


def replay_files(
    paths: Sequence[Path], matrix: Matrix, *, processes: int
) -> Iterator[FileReplayed]:
    """Every file in turn, as they finish: the largest first, so that none of them is waited for at the end."""
    ordered = sorted(paths, key=lambda path: path.stat().st_size, reverse=True)
    if processes < 2 or len(ordered) < 2:
        yield from (replay_file(path, matrix) for path in ordered)
        return
    # Forked before anything is connected: the children share no socket and start at once.
    forked = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(min(processes, len(ordered)), mp_context=forked) as pool:
        waiting = {pool.submit(replay_file, path, matrix) for path in ordered}
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
