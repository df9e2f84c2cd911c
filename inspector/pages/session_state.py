"""P3: the working state with provenance, carry rules and caps; lifting a constraint for the user."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_safe

from ctxengine.engine.events import EventType
from ctxengine.engine.working_state.carry import CARRY_RULES
from ctxengine.engine.working_state.limits import CAPS
from ctxengine.engine.working_state.state import WorkingState, state_trust
from ctxengine.ledger.queries.events import event_page
from ctxengine.ledger.queries.session import SessionHead
from ctxengine.service.specs import ChangeConstraints
from ctxengine.service.working_state import change_constraints, working_state_view
from inspector.access import Viewer, member
from inspector.act_contexts import ActPage, Figure, StateEntry, StateField, StatePage
from inspector.filters import free
from inspector.pages.acts import answer
from inspector.pages.session_frame import frame_of, head_or_404, shell_of
from inspector.render import Twin, csv_stream, json_stream, show

CSV_HEADER = (
    "field", "id", "text", "status", "trust", "sequence", "sources", "origin", "detail", "carry",
)  # fmt: skip
BAR_PX = 160
_CHANGES = 12
_TITLES = {
    "objective": "Objective",
    "constraints": "Constraints",
    "tasks": "Tasks",
    "facts": "Facts",
    "questions": "Open questions",
    "next_action": "Next action",
}
ASKS = {"lifted": free}


@require_safe
@member(asks=ASKS)
def session_state(
    request: HttpRequest, viewer: Viewer, session_id: UUID, twin: Twin
) -> HttpResponseBase:
    """What the session must not forget, as the next request shows it."""
    head = head_or_404(viewer, session_id)
    view = working_state_view(actor=viewer.actor, session_id=head.id)
    fields = _fields(view.state)
    entries = [(field, entry) for field in fields for entry in field.entries]
    if twin is Twin.CSV:
        return csv_stream("working-state", CSV_HEADER, (_csv(*pair) for pair in entries))
    if twin is Twin.JSON:
        return json_stream([entry for _, entry in entries])
    changes = event_page(
        viewer.tenant_id, head.id, kind=EventType.WORKING_STATE_UPDATED.value, size=_CHANGES
    )
    page = StatePage(
        shell=shell_of(viewer, head, "State"),
        frame=frame_of(viewer, head, "session-state"),
        fields=fields,
        tokens=view.tokens,
        cap_tokens=view.cap_tokens,
        bar=min(BAR_PX, round(BAR_PX * view.tokens / max(1, view.cap_tokens))),
        event=view.event,
        erased=view.erased,
        trust=state_trust(view.state).value,
        changes=changes.events,
        may_act=viewer.is_operator and head.state == "open",
        done=request.GET.get("lifted", "")[:40],
    )
    return show(request, "session_state.html", page)


@require_http_methods(["GET", "HEAD", "POST"])
@member()
def lift_constraint(request: HttpRequest, viewer: Viewer, session_id: UUID) -> HttpResponse:
    """GET asks about the constraint `?id=`; POST lifts it as the user's act."""
    head = head_or_404(viewer, session_id)
    wanted = request.POST.get("id") or request.GET.get("id", "")
    return answer(
        request,
        viewer,
        template="act.html",
        name="Lifting a constraint",
        page=lambda: _lift_page(viewer, head, wanted),
        act=lambda reason: _lift(viewer, head, wanted, reason),
    )


def _lift(viewer: Viewer, head: SessionHead, wanted: str, reason: str) -> str:
    spec = ChangeConstraints(remove_constraints=(wanted,), note=reason)
    change_constraints(actor=viewer.actor, session_id=head.id, spec=spec)
    return f"{_address(viewer, head)}?{urlencode({'lifted': wanted})}"


def _lift_page(viewer: Viewer, head: SessionHead, wanted: str) -> ActPage:
    state = working_state_view(actor=viewer.actor, session_id=head.id).state
    found = next((entry for entry in state.constraints if entry.id == wanted), None)
    if found is None:
        raise Http404("No such constraint in force.")
    return ActPage(
        shell=shell_of(viewer, head, "Lift a constraint"),
        frame=frame_of(viewer, head, "session-state"),
        heading=f"Lift constraint {found.id}",
        explains=(
            "Only the user lifts a constraint: do this on their word. It stays in the log; requests from the next step on no"
            " longer show it, and summaries made before keep it word for word."
        ),
        figures=(
            Figure("Written by", f"event {found.sequence:,}", f"trust {found.trust.value}"),
            Figure("In force after", f"{len(state.constraints) - 1} constraints"),
        ),
        blocked="" if head.state == "open" else "The session has ended.",
        hidden=(("id", found.id),),
        button=f"Lift {found.id}",
        back=_address(viewer, head),
        allowed=viewer.is_operator,
        content=found.text,
    )


def _address(viewer: Viewer, head: SessionHead) -> str:
    return reverse("inspector:session-state", args=[viewer.slug, head.id, Twin.HTML])


def _fields(state: WorkingState) -> tuple[StateField, ...]:
    entries = {
        "objective": _objective(state),
        "constraints": _constraints(state),
        "tasks": _tasks(state),
        "facts": _facts(state),
        "questions": _questions(state),
        "next_action": _next_action(state),
    }
    counted = {name: len(found) for name, found in entries.items()}
    counted["tasks"] = len(state.open_tasks)
    caps = {cap.field: cap for cap in CAPS}
    return tuple(
        StateField(
            _TITLES[rule.field],
            rule,
            caps.get(rule.field),
            entries[rule.field],
            counted[rule.field],
        )
        for rule in CARRY_RULES
    )


def _entry(
    field: str,
    text: str,
    trust: str,
    sequence: int,
    *,
    id: str = "",
    status: str = "",
    sources: tuple[int, ...] = (),
    origin: str = "",
    detail: str = "",
) -> StateEntry:
    liftable = field == "constraints"
    return StateEntry(field, id, text, status, trust, sequence, sources, origin, detail, liftable)


def _objective(state: WorkingState) -> tuple[StateEntry, ...]:
    one = state.objective
    if one is None:
        return ()
    detail = f"supersedes that of event {one.supersedes:,}" if one.supersedes else ""
    return (_entry("objective", one.text, one.trust.value, one.sequence, detail=detail),)


def _next_action(state: WorkingState) -> tuple[StateEntry, ...]:
    one = state.next_action
    return (_entry("next_action", one.text, one.trust.value, one.sequence),) if one else ()


def _constraints(state: WorkingState) -> tuple[StateEntry, ...]:
    return tuple(
        _entry("constraints", one.text, one.trust.value, one.sequence, id=one.id)
        for one in state.constraints
    )


def _tasks(state: WorkingState) -> tuple[StateEntry, ...]:
    return tuple(
        _entry(
            "tasks",
            one.title,
            one.trust.value,
            one.sequence,
            id=one.id,
            status=one.status.value,
            detail=f"decided by {one.call_id or one.tool}" if one.call_id or one.tool else "",
        )
        for one in state.tasks
    )


def _facts(state: WorkingState) -> tuple[StateEntry, ...]:
    return tuple(
        replace(
            _entry(
                "facts",
                one.statement,
                one.trust.value,
                one.sequence,
                id=one.id,
                status="claim" if one.is_claim else "",
                sources=one.source_event_ids,
                origin=one.origin,
                detail=f"established {_moment(one.established_at)}" if one.established_at else "",
            ),
            established_at=one.established_at or "",
        )
        for one in state.facts
    )


def _moment(stamp: str) -> str:
    """A stamp of the state to the minute, as other times of the console are shown."""
    try:
        return f"{datetime.fromisoformat(stamp).astimezone(UTC):%d %b %Y, %H:%M}"
    except ValueError:
        return stamp


def _questions(state: WorkingState) -> tuple[StateEntry, ...]:
    return tuple(
        _entry(
            "questions",
            one.text,
            one.trust.value,
            one.sequence,
            id=one.id,
            detail=f"answered by call {one.call_id}" if one.call_id else "",
        )
        for one in state.questions
    )


def _csv(field: StateField, entry: StateEntry) -> tuple[object, ...]:
    return (
        entry.field, entry.id, entry.text, entry.status, entry.trust, entry.sequence,
        " ".join(str(source) for source in entry.sources), entry.origin, entry.detail,
        field.rule.carry,
    )  # fmt: skip
