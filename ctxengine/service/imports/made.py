"""What rebuilding a foreign session makes, ready to be written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ctxengine.engine.importers.transcript import Repair, RepairAction
from ctxengine.ledger.models import PlanRow, RequestRow, RunRow, SessionRow
from ctxengine.service.imports.import_log import ImportLog, Lines
from ctxengine.service.imports.outline import OutlinedRow
from ctxengine.service.renderings import Key


class Part(NamedTuple):
    """Rows of a session ready to be written before the rest is made."""

    lines: list[Lines]
    """Of the log."""
    requests: list[RequestRow | OutlinedRow]


@dataclass(slots=True)
class Reconstructed:
    """Rows ready to be written; those of log and requests that nobody took over."""

    session: SessionRow
    plan: PlanRow
    log: ImportLog
    runs: list[RunRow] = field(default_factory=list)
    requests: list[RequestRow | OutlinedRow] = field(default_factory=list)
    """Those that nobody took over yet, as of the log."""
    outlined: int = 0
    """Requests that are not rebuilt yet."""
    run_places: list[int] = field(default_factory=list)
    """Index of the entry that opened each run."""
    digests: dict[Key, str] = field(default_factory=dict)
    """Segment digests of the units that the requests hold."""
    kept_items: int = 0
    """Ledger items that came from the file."""
    unfit: list[int] = field(default_factory=list)
    """Indices of the answers without a request, since what never yields does not fit by our count."""

    def repairs(self) -> list[Repair]:
        """What the report has to say beside what the reader found."""
        if not self.unfit:
            return []
        first, last = self.unfit[0] + 1, self.unfit[-1] + 1
        where = f"entry {first}" if first == last else f"entry {first} to entry {last}"
        detail = (
            "Answers whose requests do not fit the model by our count, which is careful; the answers are kept, without a "
            f"request ({len(self.unfit)} of them)."
        )
        return [Repair(RepairAction.WARNED, "request_does_not_fit", where, detail)]
