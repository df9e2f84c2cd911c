"""A session of the ledger as a source: its own events, in order, without the decisions that a replay takes anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from uuid import UUID

from ctxengine.engine.cache.session_key import session_key
from ctxengine.engine.compaction.packet import PACKET_REASON
from ctxengine.engine.events import RULE_OF_EVENT, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import Memory, StepInputs, inputs_of
from ctxengine.engine.items import ContentFormat, Item
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.plan.plan import Plan, plan_of
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RequestRow, SessionRow
from ctxengine.service.access import plan_row_of, session_of
from ctxengine.service.memory_lines import memory_of
from ctxengine.service.original import moment_of
from ctxengine.service.replay.source import Beat, Source
from ctxengine.service.specs import Actor, ServiceError
from ctxengine.service.wiring import log_of, plan_from, session_facts

_PLANS = frozenset({EventType.PLAN_CREATED, EventType.EPOCH_ROTATED})
_OF_A_STEP = frozenset(
    {
        EventType.YIELD_APPLIED,
        EventType.COMPACTED,
        EventType.COMPACTION_REFUSED,
        EventType.BUDGET_PRESSURE,
    }
)
"""Events that a step leaves where they name the request that they were made for; else somebody's act."""
_OF_AN_ENGINE = frozenset({PACKET_REASON, "boundary"})
"""Summaries that an engine wrote as decisions of its own, apart from any step."""
_MADE_ANEW = frozenset({EventType.FRESH_SENT, EventType.SNAPSHOT_USED, EventType.MEMORY_READ})


def source_of_session(*, actor: Actor, session_id: UUID) -> Source:
    """A session of the actor's tenant, as it stands now.

    Raises:
        ServiceError: 404; 409 `content_erased` where some of its content is gone; 409 `nothing_to_replay`.
    """
    session = session_of(actor, session_id)
    log = log_of(session)
    try:
        plan = plan_from(log, plan_row_of(session, 1 if not session.import_sha256 else None))
    except LookupError as error:
        raise _erased(session) from error
    imported = bool(session.import_sha256)
    beats = tuple(_Reader(session, log, imported=imported).beats())
    if not any(beat.kind == "step" for beat in beats):
        raise nothing_to_replay()
    key = session_facts(session, plan)
    return Source(
        name=str(session.id),
        title=session.title,
        provider=plan.provider,
        model=plan.model,
        beats=beats,
        instructions=plan.instructions,
        tools=tuple(tool for tool in plan.tools if not tool.control),
        plan=None if imported else plan,
        engine=session.engine,
        tenant=str(session.tenant_id),
        session=str(session.id),
        nonce_key=key.nonce_key,
        ledger_name=_names(plan),
    )


def nothing_to_replay() -> ServiceError:
    """The refusal of a session in which no model was asked."""
    return ServiceError(
        "nothing_to_replay",
        409,
        "No model was asked in this session yet; there is nothing to replay.",
    )


def key_of(source: Source) -> str:
    """The cache routing key of a replayed session."""
    return session_key(source.tenant, source.session)


class _Names:
    """A plan's wire names reversed; it can be sent to another process."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def __call__(self, wire_name: str) -> str:
        return self._names.get(wire_name, wire_name)


def _names(plan: Plan) -> _Names:
    return _Names({tool.wire_name: tool.name for tool in plan.tools})


def _erased(session: SessionRow) -> ServiceError:
    return ServiceError(
        "content_erased",
        409,
        f"Some content of session {session.id} was erased; what is left cannot be replayed.",
    )


class _Reader:
    """Walks the events of a session once."""

    def __init__(self, session: SessionRow, log: PostgresLog, *, imported: bool) -> None:
        self._session, self._log, self._imported = session, log, imported
        self._head = log.head().sequence
        units = log.units(EventSeq(1), EventSeq(self._head + 1))
        self._items: dict[int, Item] = {i.id.sequence: i for unit in units for i in unit.items}
        rows = RequestRow.objects.filter(tenant_id=session.tenant_id, session_id=session.id)
        self._inputs: dict[str, StepInputs] = (
            {}
            if imported
            else {str(id): inputs_of(data) for id, data in rows.values_list("id", "inputs")}
        )
        self._memory = Memory()

    def beats(self) -> Iterator[Beat]:
        for event in self._log.events():
            yield from self._of(event)

    def _of(self, event: EventRecord) -> Iterator[Beat]:
        if RULE_OF_EVENT[event.type].content:
            if self._imported and event.type is EventType.RESPONSE_COMPLETED:
                yield Beat("step", event.sequence, run=event.run or "")
            yield self._message(event)
        elif event.type is EventType.REQUEST_STARTED:
            if not self._imported:
                yield self._step(event)
        elif event.type is EventType.MEMORY_READ:
            self._memory = memory_of(self._log, event.sequence)
        elif not self._imported and not _is_made_anew(event):
            yield self._copied(event)

    def _step(self, event: EventRecord) -> Beat:
        memory, self._memory = self._memory, Memory()
        return Beat(
            "step",
            event.sequence,
            at=event.recorded_at.timestamp(),
            run=event.run or "",
            inputs=self._inputs.get(str(event.payload["request"])),
            memory=memory,
        )

    def _message(self, event: EventRecord) -> Beat:
        item = self._items.get(event.sequence)
        payload = dict(event.payload)
        answers = payload.pop("answers", None)
        moment = moment_of(payload.get("at"))
        stated = moment.timestamp() if moment is not None else None
        place, _, ordinal = (answers or "0.0").partition(".")
        return Beat(
            "message",
            event.sequence,
            type=event.type,
            at=stated if self._imported else event.recorded_at.timestamp(),
            format=ContentFormat(payload.pop("format")),
            raw=self._body(event),
            trust=event.trust,
            source=item.source if item is not None else "",
            payload=payload,
            run=event.run or "",
            answers=(int(place), int(ordinal)) if answers else None,
            is_error=bool(payload.pop("is_error", False)),
            opens_run=event.type is EventType.USER_MESSAGE,
            by_platform=bool(payload.get("synthetic")) and not self._imported,
        )

    def _copied(self, event: EventRecord) -> Beat:
        plan = plan_of(self._body(event)) if event.type in _PLANS else None
        return Beat(
            "plan" if plan is not None else "act",
            event.sequence,
            type=event.type,
            raw=self._body(event) if event.body is not None else "",
            trust=Trust(event.trust),
            payload=dict(event.payload),
            run=event.run or "",
            plan=plan,
            has_body=event.body is not None,
        )

    def _body(self, event: EventRecord) -> str:
        text = self._log.body(event.body.id) if event.body is not None else ""
        if text is None:
            raise _erased(self._session)
        return text


def _is_made_anew(event: EventRecord) -> bool:
    if event.type in _MADE_ANEW:
        return True
    if event.type not in _OF_A_STEP or event.payload.get("reason") in _OF_AN_ENGINE:
        return False
    made_for = event.payload.get(
        "request" if event.type is EventType.BUDGET_PRESSURE else "forced_by"
    )
    try:
        UUID(str(made_for))
    except ValueError:
        return False
    return True
