"""P8: what stands for history: compactions, their spans, coverage, refusals and what is marked by hand."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from ctxengine.engine.compaction.acts import HandForm, Marks
from ctxengine.engine.compaction.packet import PACKET_REASON, CompactionResult
from ctxengine.engine.events import EventType
from ctxengine.engine.standing import history_acts
from ctxengine.ledger.models import Job
from ctxengine.ledger.queries.events import event_page
from ctxengine.ledger.queries.jobs import JobFilter, JobQuery, list_jobs
from ctxengine.ledger.queries.session import SessionHead
from ctxengine.service.access import session_of
from ctxengine.service.compactions import CompactionLine, Compactions, compactions_of
from ctxengine.service.summaries.wanted import KIND
from ctxengine.service.wiring import log_of
from ctxengine.service.working_set.wanted_packet import KIND as PACKET_KIND
from inspector.access import Viewer, member
from inspector.act_contexts import (
    CompactionDetail,
    CompactionsPage,
    CompactionView,
    MarkLine,
    SpanLine,
    TileLine,
    WriterView,
)
from inspector.filters import free, one_of, page_size, size_of, whole_number
from inspector.pages.numbers import whole
from inspector.pages.session_frame import frame_of, head_or_404, shell_of
from inspector.render import Twin, csv_stream, json_stream, show
from inspector.windows import window

MOST_SPANS = 200
_WRITING = (KIND, PACKET_KIND)
"""Kinds of the jobs by which a model writes."""
CSV_HEADER = (
    "event", "at", "state", "first", "through", "tokens_before", "tokens_after", "turns", "units",
    "depth", "merges", "reason", "forced_by", "pays", "saved_tokens", "recached_tokens", "spans",
    "compactor", "detector", "masked", "source_sha256", "calls", "fragments", "usd",
)  # fmt: skip
_DONE = {
    "compacted": "The summary is installed; the next step shows it.",
    "merged": "The summaries are merged; the next step shows the merged one.",
    "unchanged": "There was nothing new to compact; nothing was written.",
    "skipped": "It would not have paid, so nothing was written.",
    "queued": "A job lets a model write the summary; it stands here once it is installed.",
    "undone": "The compaction is undone; what it replaced is history again.",
    "pinned": "Pinned: it stays whole from the next step on.",
    "folded": "Folded: it stands as pointers from the next step on.",
    "excluded": "Excluded: a notice stands in its place from the next step on.",
    "automatic": "Released: the policy decides again.",
}
ASKS = {"at": whole_number, "done": one_of(*_DONE), "size": page_size, "after": free}


@require_safe
@member(asks=ASKS)
def session_compactions(
    request: HttpRequest, viewer: Viewer, session_id: UUID, twin: Twin
) -> HttpResponseBase:
    """All compactions, newest first; `?at=` opens one, by default the newest that stands."""
    head = head_or_404(viewer, session_id)
    found = compactions_of(actor=viewer.actor, session_id=head.id)
    if twin is Twin.CSV:
        return csv_stream("compactions", CSV_HEADER, (_csv(_view(line)) for line in found.lines))
    if twin is Twin.JSON:
        return json_stream(line.as_json() for line in found.lines)
    page = CompactionsPage(
        shell=shell_of(viewer, head, "Compactions"),
        frame=frame_of(viewer, head, "session-compactions"),
        page=window(
            tuple(_view(line) for line in found.lines),
            request.GET.get("after", ""),
            lambda view: view.event,
            size_of(request),
        ),
        detail=_detail(found, whole(request, "at")),
        tiles=tuple(TileLine(*tile) for tile in found.tiles),
        refusals=event_page(
            viewer.tenant_id, head.id, kind=EventType.COMPACTION_REFUSED.value, size=10
        ).events,
        marks=mark_lines(viewer, head),
        jobs=_at_work(viewer, head),
        may_act=viewer.is_operator and head.state == "open",
        done=_DONE.get(request.GET.get("done", ""), ""),
    )
    return show(request, "session_compactions.html", page)


def line_or_404(viewer: Viewer, head: SessionHead, event: int) -> CompactionLine:
    """One compaction of a session.

    Raises:
        Http404: that event is none.
    """
    found = compactions_of(actor=viewer.actor, session_id=head.id)
    for line in found.lines:
        if line.event.sequence == event:
            return line
    raise Http404("No such compaction.")


def mark_lines(viewer: Viewer, head: SessionHead) -> tuple[MarkLine, ...]:
    """Everything that stands as an operator wants it."""
    log = log_of(session_of(viewer.actor, head.id))
    marks: Marks = history_acts(log).marks
    units = [
        MarkLine(str(sequence), form.value, f"{sequence}.0", "unit")
        for form, sequences in ((HandForm.PINNED, marks.pinned), (HandForm.FOLDED, marks.folded))
        for sequence in sequences
    ]
    items = [MarkLine(item, HandForm.EXCLUDED.value, item, "item") for item in marks.excluded]
    return (*units, *items)


def _detail(found: Compactions, asked: int | None) -> CompactionDetail | None:
    standing = [line for line in found.lines if line.state == "standing"]
    if asked is None:
        line = next(iter(standing or found.lines), None)
        return _opened(line, found.whole(line)) if line is not None else None
    for line in found.lines:
        if line.event.sequence == asked:
            return _opened(line, found.whole(line))
    raise Http404("No such compaction.")


def _opened(line: CompactionLine, result: CompactionResult | None) -> CompactionDetail:
    spans = result.elided if result else ()
    return CompactionDetail(
        line=_view(line),
        summary=result.summary if result else None,
        constraints=result.constraints if result else (),
        sources=len(result.source_event_ids) if result else 0,
        spans=tuple(
            SpanLine(
                span.item_id, span.kind, span.trust_level.value, span.byte_length, span.event_id
            )
            for span in spans[:MOST_SPANS]
        ),
        more_spans=max(0, len(spans) - MOST_SPANS),
    )


def _view(line: CompactionLine) -> CompactionView:
    payload = line.event.payload
    return CompactionView(
        event=line.event.sequence,
        at=line.event.recorded_at,
        state=line.state,
        first=payload["first_sequence"],
        through=payload["replaced_through_sequence"],
        tokens_before=payload["tokens_before"],
        tokens_after=payload["tokens_after"],
        turns=payload["turns"],
        units=payload["units"],
        depth=payload["depth"],
        merges=tuple(payload["merges"]),
        reason=payload["reason"],
        forced_by=payload["forced_by"],
        verdict=payload["verdict"],
        reasoning_dropped=payload.get("reasoning_dropped", 0),
        kind=payload["kind"],
        compactor=payload["compactor"],
        detector=payload["detector"],
        masked=payload["masked"],
        source_sha256=payload["source_sha256"],
        spans=payload["elided"] if line.result else 0,
        writer=writer_view(payload.get("writer")),
        packet=payload["reason"] == PACKET_REASON,
        bar=line.bar,
    )


def _at_work(viewer: Viewer, head: SessionHead) -> tuple[Job, ...]:
    """Summaries and packets of the session that a model is to write."""
    wheres = (JobFilter(state="unfinished", kind=kind, session_id=head.id) for kind in _WRITING)
    return tuple(
        job for where in wheres for job in list_jobs(viewer.tenant_id, JobQuery(where)).rows
    )


def writer_view(facts: dict[str, Any] | None) -> WriterView | None:
    """Who wrote a summary, as its event keeps it."""
    if not facts:
        return None
    cost = facts["cost_microdollars"]
    return WriterView(
        model=facts["model"],
        chosen=facts["chosen"],
        prompt=facts["prompt"],
        window=facts["window"],
        session_window=facts["session_window"],
        fragments=facts["fragments"],
        job=UUID(facts["job"]),
        calls=facts["calls"],
        prompt_tokens=facts["prompt_tokens"],
        output_tokens=facts["output_tokens"],
        usd=None if cost is None else f"{cost / 1_000_000:f}",
    )


def _csv(view: CompactionView) -> tuple[object, ...]:
    verdict = view.verdict or {}
    return (
        view.event, view.at, view.state, view.first, view.through, view.tokens_before,
        view.tokens_after, view.turns, view.units, view.depth,
        " ".join(str(part) for part in view.merges), view.reason, view.forced_by,
        verdict.get("pays"), verdict.get("saved_tokens"), verdict.get("recached_tokens"),
        view.spans, view.compactor, view.detector, view.masked, view.source_sha256,
        view.writer and view.writer.calls, view.writer and view.writer.fragments,
        view.writer and view.writer.usd,
    )  # fmt: skip
