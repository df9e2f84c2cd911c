"""What an imported session begins with: its plan, the first event of its log, its row (design 7.17)."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from ctxengine.engine.budget.policy import IMPORTED_POLICY
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.importers.transcript import ForeignSession
from ctxengine.engine.log.records import GENESIS_HASH
from ctxengine.engine.plan.plan import PinnedTool, Plan
from ctxengine.engine.plan.planner import PlanRequest, resolve_plan
from ctxengine.engine.plan.schema import SchemaError, provider_schema
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.wire.base import WireRenderer
from ctxengine.ledger.models import SessionRow
from ctxengine.service.crypto import encrypt
from ctxengine.service.original import moment_of
from ctxengine.service.wiring import facts_about


def imported_plan(
    foreign: ForeignSession,
    provider: str,
    counter: TokenCounter,
    renderer: WireRenderer,
    nonce_key: bytes,
) -> Plan:
    """The plan of an imported session: the file's own instructions and tools, excess listed as warnings."""
    model = model_view(foreign.model)
    known = facts_about(provider, model)
    tools = []
    for tool in foreign.tools:
        try:
            schema = provider_schema(tool.input_schema)
        except SchemaError:
            schema = '{"type":"object"}'
        tools.append(
            PinnedTool(
                name=model_view(tool.name),
                wire_name="",
                description=model_view(tool.description),
                input_schema=schema,
                synthesised=tool.synthesised,
            )
        )
    return resolve_plan(
        PlanRequest(
            engine="suffix",
            provider=provider,
            model=model,
            window=known.window,
            max_output=known.max_output,
            instructions=model_view(foreign.instructions),
            tools=tools,
            policy=IMPORTED_POLICY,
        ),
        counter=counter,
        renderer=renderer,
        nonce_key=nonce_key,
    )


def imported_event(
    foreign: ForeignSession, file_sha256: str, format: str, parent: UUID | None
) -> EventDraft:
    """The first event of its log."""
    return EventDraft(
        type=EventType.SESSION_IMPORTED,
        trust=Trust.PLATFORM,
        payload={
            "file_sha256": file_sha256,
            "format": format,
            "key": model_view(foreign.key),
            "items_in": foreign.items_in,
            "parent_session": str(parent) if parent else None,
        },
    )


def imported_session_row(
    tenant_id: UUID,
    session_id: UUID,
    foreign: ForeignSession,
    plan: Plan,
    nonce_key: bytes,
    file_sha256: str,
    format: str,
    now: datetime,
) -> SessionRow:
    """Its row, before anything is in its log."""
    return SessionRow(
        tenant_id=tenant_id,
        id=session_id,
        title=model_view(foreign.title)[:300],
        engine="suffix",
        provider=plan.provider,
        model=plan.model,
        agent_name=format,
        agent_version="imported",
        import_sha256=file_sha256,
        import_format=format,
        nonce_key=encrypt(nonce_key),
        settings={"key": model_view(foreign.key), "provider": model_view(foreign.provider)},
        counter=plan.counter,
        last_hash=GENESIS_HASH,
        created_at=moment_of(foreign.started_at) or now,
        active_at=now,
    )
