"""The players of the tests: a runtime that drives a session, a model that answers it, a log to write in.

Everything goes through the product's public doors. Nothing here checks anything.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any, NamedTuple

from ctxengine.engine.derive import Derivation
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.evidence.pointer import MAX_POINTER_BYTES
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ContentFormat, Part, TextPart
from ctxengine.engine.log.records import GENESIS_HASH
from ctxengine.engine.memory import MemoryLog
from ctxengine.engine.ports import OpenCall, SessionLog
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import Event, RequestRow, SessionRow, Tenant
from ctxengine.service.assemble import assemble
from ctxengine.service.drafts import content_draft
from ctxengine.service.open_session import open_session
from ctxengine.service.specs import (
    Actor,
    AgentRef,
    Assemble,
    Assembled,
    Content,
    ModelRef,
    OpenSession,
    PolicySpec,
    PrincipalSpec,
    ResponseTaken,
    ResultsTaken,
    RunStarted,
    StartRun,
    TakeResponse,
    TakeToolResults,
    ToolResult,
    ToolSpec,
)
from ctxengine.service.start_run import start_run
from ctxengine.service.take_response import take_response
from ctxengine.service.take_tool_results import take_tool_results

AT = datetime(2026, 3, 28, 12, 0, tzinfo=UTC)
PROVIDERS = ("anthropic", "openai", "openai-responses")
MODELS = {
    "anthropic": "claude-sonnet-4-6",
    "openai": "gpt-5.4",
    "openai-responses": "gpt-5.4",
}
_numbers = count(1)


def new_actor() -> Actor:
    """Somebody who acts for a tenant of their own."""
    slug = f"cast-{next(_numbers)}-{uuid.uuid4().hex[:8]}"
    tenant = Tenant.objects.create(id=uuid.uuid4(), slug=slug, name=slug, created_at=AT)
    return Actor(tenant.id, "system")


class Call(NamedTuple):
    """A tool call as a model makes it; `arguments` is text and may be broken."""

    id: str
    name: str
    arguments: str = "{}"


def answer(
    provider: str,
    text: str = "",
    calls: Sequence[Call] = (),
    *,
    stop: str | None = None,
    reasoning: Sequence[str] = (),
) -> str:
    """A whole response body of a provider's API; `reasoning` holds raw JSON blocks put in front."""
    if provider == "anthropic":
        blocks = [*reasoning]
        if text:
            blocks.append(json.dumps({"type": "text", "text": text}))
        blocks += [
            f'{{"type":"tool_use","id":{json.dumps(c.id)},"name":{json.dumps(c.name)},"input":{c.arguments}}}'
            for c in calls
        ]
        reason = json.dumps(stop or ("tool_use" if calls else "end_turn"))
        return f'{{"type":"message","role":"assistant","content":[{",".join(blocks)}],"stop_reason":{reason}}}'
    if provider == "openai":
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = [
                {
                    "id": c.id,
                    "type": "function",
                    "function": {"name": c.name, "arguments": c.arguments},
                }
                for c in calls
            ]
        reason = stop or ("tool_calls" if calls else "stop")
        return json.dumps({"choices": [{"message": message, "finish_reason": reason}]})
    items = [*reasoning]
    if text:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        items.append(json.dumps({"type": "message", "role": "assistant", "content": content}))
    items += [
        json.dumps(
            {"type": "function_call", "call_id": c.id, "name": c.name, "arguments": c.arguments}
        )
        for c in calls
    ]
    return f'{{"status":{json.dumps(stop or "completed")},"output":[{",".join(items)}]}}'


def tool(name: str, **fields: Any) -> ToolSpec:
    """A tool that takes any object."""
    return ToolSpec(name=name, description=f"Does {name}.", **fields)


TOOLS = (tool("read"), tool("shell.run"), tool("web.fetch"))


@dataclass
class Runtime:
    """An agent runtime with one session."""

    actor: Actor = field(default_factory=new_actor)
    provider: str = "anthropic"
    model: str = ""
    window: int | None = None
    max_output: int | None = None
    policy: PolicySpec | None = None
    tools: tuple[ToolSpec, ...] = TOOLS
    instructions: str = "You look things up and answer shortly."
    principal: PrincipalSpec | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    session: uuid.UUID = field(init=False)
    run: uuid.UUID = field(init=False)

    def __post_init__(self) -> None:
        """Open the session."""
        self.model = self.model or MODELS[self.provider]
        spec = OpenSession(
            model=ModelRef(
                provider=self.provider,
                name=self.model,
                window=self.window,
                max_output=self.max_output,
            ),
            agent=AgentRef(name="scout", version="1", instructions=self.instructions),
            tools=self.tools,
            policy=self.policy,
            principal=self.principal,
            **self.extra,
        )
        self.opened = open_session(actor=self.actor, spec=spec)
        self.session = self.opened.id

    def ask(self, message: str | Content, **fields: Any) -> RunStarted:
        """Start a run."""
        content = Content(raw=message) if isinstance(message, str) else message
        started = start_run(
            actor=self.actor, session_id=self.session, spec=StartRun(message=content, **fields)
        )
        self.run = started.id
        return started

    def assemble(self, **fields: Any) -> Assembled:
        """Ask for the next request."""
        return assemble(actor=self.actor, run_id=self.run, spec=Assemble(**fields))

    def hear(self, raw: str, **fields: Any) -> ResponseTaken:
        """Report a whole response body."""
        spec = TakeResponse(response_raw=raw, **fields)
        return take_response(actor=self.actor, run_id=self.run, spec=spec)

    def say(self, text: str = "", *calls: Call, **fields: Any) -> ResponseTaken:
        """Report what the model said."""
        return self.hear(answer(self.provider, text, calls, **fields))

    def fail(self, status: int, body: str = "") -> ResponseTaken:
        """Report that the provider refused."""
        spec = TakeResponse(error_status=status, error_body_raw=body)
        return take_response(actor=self.actor, run_id=self.run, spec=spec)

    def results(self, *pairs: tuple[str, str], **fields: Any) -> ResultsTaken:
        """Report results as (call id, text)."""
        given = tuple(
            ToolResult(call_id=name, content=Content(raw=text), **fields) for name, text in pairs
        )
        return take_tool_results(
            actor=self.actor, run_id=self.run, spec=TakeToolResults(results=given)
        )

    def look(self, call_id: str, text: str, name: str = "read", arguments: str = "{}") -> Assembled:
        """Assemble, one call, its result; gives the request."""
        built = self.assemble()
        self.say("", Call(call_id, name, arguments))
        self.results((call_id, text))
        return built

    def turn(self, message: str, reply: str) -> Assembled:
        """A whole run without tools; gives its request."""
        self.ask(message)
        built = self.assemble()
        self.say(reply)
        return built

    @property
    def log(self) -> PostgresLog:
        """The session's log."""
        return PostgresLog(self.actor.tenant_id, self.session)

    @property
    def row(self) -> SessionRow:
        """The session's row as it is now."""
        return SessionRow.objects.get(tenant_id=self.actor.tenant_id, id=self.session)

    @property
    def requests(self) -> list[RequestRow]:
        """Recorded requests, oldest first."""
        rows = RequestRow.objects.filter(tenant_id=self.actor.tenant_id, session_id=self.session)
        return list(rows.order_by("number"))

    def events(self, *types: EventType) -> list[Event]:
        """The session's events, of these types if any are named."""
        rows = Event.objects.filter(tenant_id=self.actor.tenant_id, session_id=self.session)
        if types:
            rows = rows.filter(type__in=[entry.value for entry in types])
        return list(rows.order_by("sequence"))


# --- a log without a session around it --------------------------------------------------------------------------------


class PricedCounter:
    """Counts what a text claims: `300|words` costs 300; any other text a quarter of its length."""

    label = "priced@1"
    exact = True
    tools_once = 0

    def text(self, text: str) -> int:
        """Tokens of a text."""
        claimed, bar, _ = text.partition("|")
        if bar and claimed.isdigit():
            return int(claimed)
        return -(-len(text) // 4)

    def parts(self, parts: Sequence[Part]) -> int:
        """Tokens of a message's content."""
        return sum(self.text(part.text) for part in parts if isinstance(part, TextPart))

    def call(self, name: str, arguments: str) -> int:
        """Tokens of a call: what its arguments claim under `cost`."""
        return int(json.loads(arguments).get("cost", 1)) if arguments else 1

    def tool(self, name: str, description: str, schema: str) -> int:
        """Tokens of a definition."""
        return self.text(name + description + schema)


def sized(tokens: int, text: str = "found") -> str:
    """A result of that size, long enough for its pointer to be the shorter form."""
    return f"{tokens}|{text}{'.' * MAX_POINTER_BYTES}"


PRICED = Derivation(PricedCounter())
RUN = "00000000-0000-4000-8000-000000000001"


def memory_log(name: str = "s") -> MemoryLog:
    """An empty log in memory."""
    return MemoryLog("t", name, salt=lambda: b"0123456789abcdef")


def postgres_log() -> PostgresLog:
    """An empty log in Postgres."""
    actor = new_actor()
    row = SessionRow.objects.create(
        tenant_id=actor.tenant_id,
        id=uuid.uuid4(),
        engine="suffix",
        provider="anthropic",
        model="m",
        agent_name="a",
        agent_version="1",
        nonce_key=b"k",
        counter="priced@1",
        last_hash=GENESIS_HASH,
        created_at=AT,
        active_at=AT,
    )
    return PostgresLog(row.tenant_id, row.id)


class Scribe:
    """Writes events into any log, one at a time unless told otherwise."""

    def __init__(self, log: SessionLog, derivation: Derivation = PRICED) -> None:
        """Write into `log`."""
        self.log = log
        self.derivation = derivation

    def draft(
        self,
        type: EventType,
        raw: str,
        *,
        behind: int = 0,
        format: ContentFormat = ContentFormat.TEXT,
        answers: OpenCall | None = None,
        run: str = RUN,
        trust: Trust = Trust.USER,
        source: str = "user",
    ) -> EventDraft:
        """A content event that will stand `behind` places after the next one."""
        return content_draft(
            self.log,
            type=type,
            format=format,
            raw=raw,
            trust=trust,
            sequence=EventSeq(self.log.head().sequence + 1 + behind),
            derivation=self.derivation,
            run=run,
            source=source,
            answers=answers,
        )

    def user_draft(self, text: str, **fields: Any) -> EventDraft:
        """A user's message."""
        return self.draft(EventType.USER_MESSAGE, text, **fields)

    def step_draft(self, text: str, calls: Sequence[Call] = (), **fields: Any) -> EventDraft:
        """A model's answer, with calls or without."""
        blocks = f"[{','.join(_blocks(text, calls))}]"
        return self.draft(
            EventType.RESPONSE_COMPLETED,
            blocks,
            format=ContentFormat.BLOCKS,
            trust=Trust.MODEL,
            source="model",
            **fields,
        )

    def result_draft(self, call: OpenCall, text: str, **fields: Any) -> EventDraft:
        """A result of a call."""
        return self.draft(
            EventType.TOOL_RESULT,
            text,
            answers=call,
            trust=Trust.EXTERNAL_UNTRUSTED,
            source="tool:read",
            **fields,
        )

    def user(self, text: str, **fields: Any) -> EventSeq:
        """Append a user's message."""
        return self._append(self.user_draft(text, **fields))

    def answers(self, text: str, **fields: Any) -> EventSeq:
        """Append a model's answer without calls."""
        return self._append(self.step_draft(text, **fields))

    def step(self, *calls: Call, text: str = "", **fields: Any) -> EventSeq:
        """Append an answer that calls tools."""
        return self._append(self.step_draft(text, calls, **fields))

    def result(self, call_id: str, text: str, **fields: Any) -> EventSeq:
        """Append the result of the open call with that id."""
        call = next(entry for entry in self.log.open_calls() if entry.wire_call_id == call_id)
        return self._append(self.result_draft(call, text, **fields))

    def _append(self, draft: EventDraft) -> EventSeq:
        batch = self.log.append([draft], expected=self.log.head().sequence, at=AT)
        return batch.head.sequence


def _blocks(text: str, calls: Sequence[Call]) -> list[str]:
    said = [json.dumps({"type": "text", "text": text})] if text else []
    return said + [
        f'{{"type":"tool_use","id":{json.dumps(c.id)},"name":{json.dumps(c.name)},"input":{c.arguments}}}'
        for c in calls
    ]
