"""A response as the events it becomes: itself, what its calls are answered, what guards say (design 5; capacity spec 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, cast

from ctxengine.engine.content.decode import Stripped
from ctxengine.engine.content.response import ResponseContent
from ctxengine.engine.content.voices import refuse_other_voices
from ctxengine.engine.derive import Derivation, text_of_item
from ctxengine.engine.events import EventDraft, EventType, ItemFacts
from ctxengine.engine.guards.judgement import Guard, Judgement, nudge_of, statement_of
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import DecodedItem, ItemKind, TextPart
from ctxengine.engine.log.hydrate import decode_event
from ctxengine.engine.plan.plan import PinnedTool, Plan
from ctxengine.engine.ports import OpenCall
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.working_state.outcomes import ASK_TOOL, Asked, Outcome
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RequestRow, RunRow, SessionRow
from ctxengine.service.calls import Authority, Verdict, authority_of, judge_call, told_id
from ctxengine.service.clock import utc_now
from ctxengine.service.control.answers import ControlAnswer, ControlCall
from ctxengine.service.control.registry import answer_control
from ctxengine.service.drafts import content_draft, platform_result
from ctxengine.service.guards import GuardDesk
from ctxengine.service.noted_calls import calls_unwrapped, misread, tools_found
from ctxengine.service.presentations.emit import CardDesk, card_texts
from ctxengine.service.run_facts import RunFacts
from ctxengine.service.specs import Actor, CallAction, TakeResponse
from ctxengine.service.telemetry import Answered
from ctxengine.service.usage import Receipt
from ctxengine.service.wiring import counter_of
from ctxengine.service.working_state import StateWriter, desk_of, observed

Following = Literal["tools", "finish", "redo"]


class Conclusion(NamedTuple):
    """What follows from a response."""

    next: Following
    outcome: str = "completed"
    """Of the run, where it ends here."""
    nudge: str | None = None
    statement: str | None = None
    quoted: tuple[str, ...] = ()
    """Items that the statement quotes."""


class ResponseEvents:
    """One response on its way into the log."""

    def __init__(
        self,
        actor: Actor,
        session: SessionRow,
        run: RunRow,
        log: PostgresLog,
        plan: Plan,
        content: ResponseContent,
        stripped: Stripped,
        sequence: EventSeq,
        *,
        interrupted: bool = False,
    ) -> None:
        """Nothing is written here.

        Args:
            sequence: where the response will stand.
            interrupted: whether the user said more while the model was answering; then nothing ends the turn.
        """
        self.actor = actor
        self.session = session
        self.run = run
        self.log = log
        self.plan = plan
        self.content = content
        self.stripped = stripped
        self.sequence = sequence
        self.derivation = Derivation(
            counter_of(session.provider, session.model),
            kept_aside=plan.aside_tokens,
        )
        self.items: tuple[DecodedItem, ...] = ()
        self.interrupted = interrupted
        facts = RunFacts(run, log, plan, owner=session.principal)
        self.cards = CardDesk(facts)
        self.guards = GuardDesk(facts, sequence)
        self._fence_stopped: Judgement | None = None
        self._told: set[Guard] = set()
        """Guards whose word a call of this response was answered with."""
        self._waits = False

    @cached_property
    def _authority(self) -> Authority:
        """What is allowed now; read only where the response calls a tool or shows a card."""
        return authority_of(self.log, self.run)

    def drafts(
        self, request: RequestRow, spec: TakeResponse
    ) -> tuple[list[EventDraft], list[CallAction]]:
        """The response's event, then a platform result for each call that the runtime is not to execute."""
        body = decode_event(EventType.RESPONSE_COMPLETED, self.content.format, self.stripped.body)
        self.items = tuple(body)
        refuse_other_voices((item.kind for item in body), "answer")
        decoded = {item.ordinal: item for item in body if item.kind is ItemKind.TOOL_CALL}
        authority = self._authority if decoded else Authority()
        verdicts = {
            ordinal: judge_call(
                self.plan, self.plan.ledger_name(item.name or ""), item.arguments or "", authority
            )
            for ordinal, item in decoded.items()
        }
        response = content_draft(
            self.log,
            type=EventType.RESPONSE_COMPLETED,
            format=self.content.format,
            raw=self.stripped.body,
            trust=Trust.MODEL,
            sequence=self.sequence,
            derivation=self.derivation,
            run=str(self.run.id),
            source="model",
            payload=self._payload(request, spec)
            | calls_unwrapped(self.plan, decoded, verdicts)
            | tools_found(self.plan, body),
            owner=self.session.principal,
            ledger_name=self.plan.ledger_name,
        )
        drafts = [response]
        self._waits = any(self._goes_out(verdict) for verdict in verdicts.values())
        calls = [
            self._act(facts, decoded[facts.ordinal], verdicts[facts.ordinal], drafts)
            for facts in response.items
            if facts.kind is ItemKind.TOOL_CALL
        ]
        drafts += self._observed(response.items, verdicts, calls, drafts)
        drafts += misread(self.guards.facts, verdicts, response=self.sequence)
        drafts += self._fenced(drafts)
        return drafts, calls

    def conclude(
        self, drafts: list[EventDraft], calls: Sequence[CallAction], following: Following
    ) -> Conclusion:
        """Let the guards judge what would end the turn; verdicts and words are added to `drafts`."""
        repeats = self.cards.calls == len(calls) and not self.cards.emitted
        self.guards.repeats(
            cards=self.cards.calls if repeats else 0,
            repeated=self.cards.repeated,
            may_close=not self.interrupted,
        )
        stopped = self.guards.closing or self._fence_stopped
        if stopped is None and following == "finish" and not self.interrupted:
            stopped = self.guards.answer(
                self._prose(), has_calls=bool(calls), emitted=0 if not calls else self.cards.emitted
            )
        conclusion = Conclusion(following)
        if self.interrupted and following == "finish":
            conclusion = Conclusion("redo")
        elif stopped is not None:
            conclusion = self._spoken(stopped, drafts)
        drafts += self.guards.verdicts()
        return conclusion

    def _spoken(self, stopped: Judgement, drafts: list[EventDraft]) -> Conclusion:
        if stopped.guard is Guard.REPEATS:
            return Conclusion("finish")
        at = self.sequence + len(drafts)
        words = self.guards.words(stopped, at, self.derivation)
        drafts += words
        said = words[0].body
        if stopped.verdict == "repair":
            return Conclusion("redo", nudge=said)
        quoted = tuple(f"{at + place}.0" for place in range(1, len(words)))
        return Conclusion("finish", self.guards.outcome, statement=said, quoted=quoted)

    def _prose(self) -> str:
        """What the response says beside its calls; a provider's own blocks count as something said."""
        said = [item for item in self.items if item.kind is ItemKind.ASSISTANT_MESSAGE]
        text = "\n".join(text_of_item(item) for item in said).strip()
        foreign = any(not isinstance(part, TextPart) for item in said for part in item.parts)
        return text or ("(a block of the provider's own)" if foreign else "")

    def _goes_out(self, verdict: Verdict) -> bool:
        """Whether the runtime is to carry the call out."""
        tool = self.plan.tool(verdict.name)
        if verdict.refused is not None or (tool is not None and tool.control):
            return False
        return tool is None or tool.presentation is None or _executed(tool)

    def _fenced(self, drafts: Sequence[EventDraft]) -> list[EventDraft]:
        """The cards that the prose holds in fences, each judged as a call of its tool would be.

        They stand behind the answers to the response's calls, so that a card that is called for as well is the call's. While
        calls wait for their results nothing may be said between: then a fence that a guard stops is plain text, without a word.
        """
        said = [
            (f"{self.sequence}.{item.ordinal}", text_of_item(item))
            for item in self.items
            if item.kind is ItemKind.ASSISTANT_MESSAGE
        ]
        if not said or not any(tool.presentation for tool in self.plan.tools):
            return []

        def refused(tool: PinnedTool, payload: str) -> str | None:
            verdict = judge_call(self.plan, tool.name, payload, self._authority)
            return verdict.refused.code if verdict.refused is not None else None

        def withheld(texts: str) -> Judgement | None:
            free = not (self._waits or self.interrupted)
            stopped = self.guards.card(texts, may_close=free, may_speak=free)
            if stopped is not None and stopped.speaks and stopped.guard not in self._told:
                self._fence_stopped = stopped
            return stopped

        at = self.sequence + len(drafts)
        return self.cards.from_texts(said, at=at, refused=refused, withheld=withheld)

    def _observed(
        self,
        items: Sequence[ItemFacts],
        verdicts: Mapping[int, Verdict],
        calls: Sequence[CallAction],
        drafts: Sequence[EventDraft],
    ) -> list[EventDraft]:
        """What the runtime notes of these calls: what the user is asked, and tasks whose call was refused."""
        made = [facts for facts in items if facts.kind is ItemKind.TOOL_CALL]
        asked, refused = [], []
        for facts, call in zip(made, calls, strict=True):
            verdict = verdicts[facts.ordinal]
            if call.action == "execute" and verdict.name == ASK_TOOL:
                asked.append(Asked(facts.wire_call_id, verdict.arguments))
            elif call.action == "refused":
                refused.append(Outcome(facts.wire_call_id, verdict.name, failed=True))
        if not asked and not refused:
            return []
        any_act = self.log.head().act_sequence > 0
        writer = StateWriter(
            self.log,
            self.session,
            str(self.run.id),
            any_act=any_act,
            pending=drafts,
            first=self.sequence,
        )
        return observed(
            writer,
            asked=asked,
            outcomes=refused,
            sequence=self.sequence + len(drafts),
            any_act=any_act,
            repeated=desk_of(
                self.session,
                self.log,
                self.plan,
                run=str(self.run.id),
                below=self.sequence,
                now=utc_now(),
            ).repeated,
        )

    def _act(
        self, facts: ItemFacts, item: DecodedItem, verdict: Verdict, drafts: list[EventDraft]
    ) -> CallAction:
        """What becomes of one call; a refused or answered one adds its result to `drafts`."""
        tool = self.plan.tool(verdict.name)
        answer, action = None, "execute"
        if verdict.refused is not None:
            refused = verdict.refused
            answer = ControlAnswer(
                refused.text,
                trust=refused.trust,
                source=refused.source,
                is_error=True,
                drafts=[self.cards.refusal(f"{self.sequence}.{facts.ordinal}", refused.code)],
            )
            action = "refused"
        elif tool is not None and tool.control:
            answer, action = self._answer(verdict, drafts), "answered"
        elif tool is not None and tool.presentation is not None:
            answer = self._card(facts, tool, verdict, drafts)
            action = "execute" if answer is None else "answered"
        if answer is not None:
            drafts.append(self._result(facts, answer, EventSeq(self.sequence + len(drafts))))
            drafts.extend(answer.drafts)
        return CallAction(
            id=told_id(item.call_id, facts.wire_call_id),
            name=verdict.name,
            action=cast(Literal["execute", "answered", "refused"], action),
            arguments_raw=verdict.arguments,
            result=answer.text if answer is not None else None,
        )

    def _card(
        self, facts: ItemFacts, tool: PinnedTool, verdict: Verdict, drafts: list[EventDraft]
    ) -> ControlAnswer | None:
        """The answer to a card call; None for one that the runtime carries out itself."""
        source = f"{self.sequence}.{facts.ordinal}"
        stopped = None
        if not self.cards.known(tool, verdict.arguments):
            stopped = self.guards.card(
                card_texts(verdict.arguments), may_close=not (self._waits or self.interrupted)
            )
        if stopped is not None:
            self._told.add(stopped.guard)
            said = nudge_of if stopped.verdict == "repair" else statement_of
            return ControlAnswer(said(stopped.guard), is_error=True)
        at = self.sequence + len(drafts)
        if _executed(tool):
            drafts += self.cards.note_execution(tool, verdict.arguments, source=source, at=at)
            return None
        return self.cards.answer_call(tool, verdict.arguments, source=source, result_at=at)

    def _answer(self, verdict: Verdict, drafts: Sequence[EventDraft]) -> ControlAnswer:
        call = ControlCall(
            session=self.session,
            run=self.run,
            log=self.log,
            plan=self.plan,
            arguments=verdict.arguments,
            response_sequence=self.sequence,
            now=utc_now(),
            pending=tuple(drafts),
        )
        return answer_control(verdict.name, call)

    def _result(self, facts: ItemFacts, answer: ControlAnswer, sequence: EventSeq) -> EventDraft:
        call = OpenCall(
            self.sequence,
            facts.ordinal,
            facts.name,
            facts.call_id,
            facts.wire_call_id,
            str(self.run.id),
        )
        return platform_result(
            self.log,
            call=call,
            text=answer.text,
            sequence=sequence,
            derivation=self.derivation,
            run=str(self.run.id),
            is_error=answer.is_error,
            trust=answer.trust,
            source=answer.source,
            owner=self.session.principal,
        )

    def told(self, receipt: Receipt) -> Answered:
        """What a span may tell of this response."""
        return Answered(
            response_id=model_view(self.content.response_id or ""),
            model=model_view(self.content.model or ""),
            stop_reason=self.content.stop_reason or "",
            usage=receipt.usage,
            items=self.items,
        )

    def _payload(self, request: RequestRow, spec: TakeResponse) -> dict[str, Any]:
        return {
            "request": str(request.id),
            "stop_reason": model_view(self.content.stop_reason or ""),
            "response_model": model_view(self.content.model or ""),
            "latency_ms": spec.latency_ms,
            **({"leg": spec.leg} if spec.leg is not None else {}),
            **({"first_token_ms": spec.first_token_ms} if spec.first_token_ms else {}),
            "opaque": [
                {
                    "before": block.before,
                    "kind": block.kind,
                    "bytes": len(block.raw.encode("utf-8", "surrogatepass")),
                }
                for block in self.stripped.opaque
            ],
        }


def _executed(tool: PinnedTool) -> bool:
    """Whether the runtime carries out the calls of a card tool itself."""
    return tool.card is not None and tool.card.execute
