"""`sessions`: open one, list them, look at one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request

from api import pagination
from api.answers import json_response, to_json
from api.auth import READ, RUNTIME, Scopes
from api.openapi import SHA256, TEXT, TIME, UUID_TEXT, WHOLE, nullable, page_of, record
from api.reads.plans import figures_of, plan_view
from api.reads.sessions import session_facts, session_page
from api.schema import Component, Operation, Operations, Parameters
from api.shapes.chosen_model import MODEL
from api.shapes.containers import ListOf, MapOf, Member, Record, build, texts
from api.shapes.content import RawObject
from api.shapes.scalars import Flag, Identifier, Number, PinnedText, Text, Whole
from api.v1.plans import PLAN
from api.views import Done, JsonWrite, ReadView, WriteView
from ctxengine.engine.importers.registry import FORMATS
from ctxengine.engine.lexeme import Node
from ctxengine.service.card_specs import CardSpec
from ctxengine.service.open_session import open_session
from ctxengine.service.specs import (
    Actor,
    AgentRef,
    OpenSession,
    PlanView,
    PolicySpec,
    PrincipalSpec,
    SkillSpec,
    SnapshotSpec,
    ToolSpec,
)

_TOOL = Record(
    Member("name", Text(), required=True),
    Member("description", PinnedText()),
    Member("input_schema", RawObject(), into="input_schema_raw", note="JSON Schema, kept as sent."),
    Member("output_schema", RawObject(), into="output_schema_raw"),
    Member("required_scopes", texts(), note="Scopes that a call needs."),
    Member("side_effect", Text()),
    Member("result_trust", Text(), note="The most that a result of this tool may claim."),
    Member("server", Text()),
    Member("serves", texts()),
    Member("always_loaded", Flag()),
    Member("observes", texts()),
    Member("deferred", Flag(), note="Listed in the index, not defined in the prefix."),
    Member("required", Flag(), note="Not fitting is a refusal instead of a skip."),
    Member("model_visible", Flag()),
    Member("presentation", Text(), note="Semantic type of the card that its calls show."),
    Member(
        "card",
        Record(
            Member("version", Whole(minimum=1)),
            Member("identity", texts(), note="Fields it is known by, such as `rows[#]`."),
            Member("title", texts(), note="Fields that may hold its title."),
            Member("execute", Flag(), note="The runtime carries its calls out itself."),
            spec=CardSpec,
        ),
        note="For types of your own, or to describe a known type anew.",
    ),
    spec=ToolSpec,
)

OPEN_SESSION = Record(
    Member("engine", Text(), note="How history is projected. Fixed for the session."),
    Member(
        "model",
        MODEL,
        required=True,
    ),
    Member(
        "agent",
        Record(
            Member("name", Text(), required=True),
            Member("version", Text(), required=True),
            Member("instructions", PinnedText()),
            spec=AgentRef,
        ),
        required=True,
        note="(name, version) is immutable: another specification needs another version.",
    ),
    Member("tools", ListOf(_TOOL)),
    Member("title", Text()),
    Member(
        "principal",
        Record(Member("id", Text(), required=True), Member("scopes", texts()), spec=PrincipalSpec),
    ),
    Member("occasion", Text()),
    Member("parent_run", Identifier()),
    Member("persona", ListOf(PinnedText()), note="Persona texts, in order."),
    Member(
        "skills",
        ListOf(
            Record(
                Member("name", Text(), required=True),
                Member("description", PinnedText()),
                Member("body", PinnedText(), required=True),
                Member("trust", Text(), note="Who vouches for its text."),
                spec=SkillSpec,
            )
        ),
    ),
    Member("memory", Text(), note="Who reads recall lines."),
    Member(
        "snapshot",
        Record(
            Member("trace_id", Text()),
            Member("watermark", Whole()),
            Member("items", ListOf(PinnedText())),
            spec=SnapshotSpec,
        ),
    ),
    Member(
        "policy",
        Record(
            Member("policy_cap", Whole()),
            Member("reserve", Whole()),
            Member("margin", Number()),
            Member("low_water", Number()),
            Member("compaction", Text(), note="What stands for history that a cut drops."),
            Member(
                "summary_model",
                Text(),
                note="Who writes summaries under `model`: `cheapest`, `session`, or a model.",
            ),
            Member("summary_tokens", Whole()),
            Member("expected_steps", Whole(), note="Horizon of the net-cost test."),
            Member(
                "deferral",
                Text(),
                note="How deferred tools are reached: `index`, or `native`, where the model can.",
            ),
            Member("summarize_trigger", Number(), note="`boundary`: share that compacts first."),
            Member("summary_max_output_tokens", Whole(), note="`boundary`: one answer of a note."),
            Member(
                "native_compaction_max_output_tokens",
                Whole(),
                note="`boundary`: one answer of a provider that compacts.",
            ),
            Member("summary_source_tokens", Whole(), note="`boundary`: source of one call."),
            Member("retained_turns", Whole(), note="`boundary`: recent turns left whole."),
            Member("archive_recovery", Flag(), note="`boundary`: answer from a bounded view."),
            Member("durable_checkpoints", Flag(), note="Always true."),
            Member("native_contract", Text(), note="`boundary`: `on_demand` or `inline`."),
            Member("native_input", Text(), note="`boundary`: `whole` or `elided`."),
            Member("offer_facts", Flag(), note="Offer surviving facts when the session ends."),
            Member(
                "surface",
                Text(),
                note="Tools that say what they serve: all (`plan`) or by `reading`.",
            ),
            Member("promotion", Text(), note="Where found tools go: `body` or `definitions`."),
            Member("guards", Text(), note="Drift guards: `on`, `off`, or `auto`, by the engine."),
            Member("history_floor", Whole()),
            Member("inline_maximum_bytes", Whole()),
            Member("inline_maximum_chars", Whole(), note="`working_set`: in place of bytes."),
            Member("caps", MapOf(Whole()), note="Tokens by budget class."),
            Member(
                "history_ttl",
                Text(),
                note="Life of the history's cache entries: `5m` or `1h`. Rotates nothing.",
            ),
            spec=PolicySpec,
        ),
        note="Figures of the budget policy that this session overrides.",
    ),
    Member("environment", MapOf(Text())),
    spec=OpenSession,
)

SESSION_OPENED = Component("SessionOpened", record({"id": UUID_TEXT, "plan": PLAN.ref}), (PLAN,))
SESSION = Component(
    "Session",
    record(
        {
            "id": UUID_TEXT,
            "title": TEXT,
            "engine": TEXT,
            "provider": TEXT,
            "model": TEXT,
            "agent": record({"name": TEXT, "version": TEXT}),
            "principal": TEXT,
            "occasion": TEXT,
            "parent_run": nullable(UUID_TEXT),
            "state": {"type": "string", "enum": ["open", "ended"]},
            "import": nullable(record({"sha256": SHA256, "format": TEXT})),
            "epoch": WHOLE,
            "last_sequence": WHOLE,
            "last_hash": TEXT,
            "items": WHOLE,
            "units": WHOLE,
            "runs": WHOLE,
            "requests": WHOLE,
            "tokens": WHOLE,
            "peak_tokens": WHOLE,
            "pressure_count": WHOLE,
            "created_at": TIME,
            "active_at": TIME,
            "open_run": nullable(record({"id": UUID_TEXT, "number": WHOLE, "state": TEXT})),
        }
    ),
)
SESSION_LINE = Component(
    "SessionLine",
    record(
        {
            "id": UUID_TEXT,
            "title": TEXT,
            "engine": TEXT,
            "provider": TEXT,
            "model": TEXT,
            "agent": TEXT,
            "occasion": TEXT,
            "state": TEXT,
            "import_format": TEXT,
            "epoch": WHOLE,
            "items": WHOLE,
            "runs": WHOLE,
            "requests": WHOLE,
            "tokens": WHOLE,
            "peak_tokens": WHOLE,
            "pressure_count": WHOLE,
            "active_at": TIME,
        }
    ),
)


class OpenSessionWrite(JsonWrite[OpenSession]):
    """`POST sessions`."""

    def parse(self, body: Node) -> OpenSession:
        """The session's specification."""
        return build(OpenSession, OPEN_SESSION.read(body, ""))

    def perform(self, actor: Actor, spec: OpenSession, ids: Mapping[str, Any]) -> Done:
        """Resolve, pin and open."""
        opened = open_session(actor=actor, spec=spec)
        resource = {
            "session": str(opened.id),
            "epoch": opened.plan.epoch,
            "figures": figures_of(opened.plan),
        }
        return Done(resource, _opened_json(str(opened.id), opened.plan), 201)

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The session with the plan it was opened with."""
        session, epoch, figures = (resource[name] for name in ("session", "epoch", "figures"))
        plan = plan_view(actor.tenant_id, session, epoch, figures)
        return _opened_json(resource["session"], plan)


class SessionsView(WriteView):
    """The sessions of a tenant."""

    scopes: ClassVar[Scopes] = {"GET": READ, "POST": RUNTIME}
    write = OpenSessionWrite()
    parameters: ClassVar[Parameters] = {
        "q": pagination.word("Words that occur in title, agent, model or principal."),
        "engine": pagination.word("Only this engine.", "suffix", "working_set", "boundary"),
        "model": pagination.word("Only this model."),
        "agent": pagination.word("Agents whose name contains this."),
        "format": pagination.word(
            "An import format, `live`, or `any` for imported ones.", "live", "any", *FORMATS
        ),
        "state": pagination.word("Only this state.", "open", "ended"),
        "limit": pagination.limit(),
        "cursor": pagination.cursor(datetime, UUID),
    }
    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="list_sessions",
            summary="List sessions, the most recently active first",
            tag="sessions",
            answer=page_of("SessionPage", SESSION_LINE),
            answer_note="One page.",
            parameters=parameters,
            problems=("invalid_parameter", "invalid_cursor"),
        ),
        "POST": Operation(
            id="open_session",
            summary="Open a session and pin its plan",
            tag="sessions",
            answer=SESSION_OPENED,
            answer_note="The session and its plan.",
            status=201,
            body=OPEN_SESSION,
            problems=(
                "plan_overflow",
                "summary_model_not_allowed",
                "agent_changed",
                "invalid_parent",
                "run_ended",
                "unknown_engine",
                "unsupported_provider",
                "invalid_content",
            ),
        ),
    }

    def get(self, request: Request) -> HttpResponse:
        """One page of sessions."""
        page = session_page(self.actor().tenant_id, self.query())
        return json_response(page.as_json())


class SessionView(ReadView):
    """One session."""

    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="get_session",
            summary="Look at a session: heads, sums, the open run",
            tag="sessions",
            answer=SESSION,
            answer_note="The session.",
        )
    }

    def get(self, request: Request, session: UUID) -> HttpResponse:
        """The session's facts."""
        self.query()
        return json_response(to_json(session_facts(self.actor().tenant_id, session)))


def _opened_json(session_id: str, plan: PlanView) -> bytes:
    return to_json({"id": session_id, "plan": plan})
