"""The drift guards at work: evidence read from the log, verdicts and words written to it (capacity spec 6 and 7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from ctxengine.engine.derive import Derivation, text_of_item
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.evidence.digest import digest_of
from ctxengine.engine.evidence.digest.make import reference_line
from ctxengine.engine.guards.empty_step import StepEvidence, judge_step
from ctxengine.engine.guards.freshness import FreshnessEvidence, judge_freshness
from ctxengine.engine.guards.judgement import Guard, Judgement, nudge_of, statement_of
from ctxengine.engine.guards.repeats import (
    MIN_WORDS,
    Said,
    SteeringEvidence,
    judge_repeats,
    judge_steering,
)
from ctxengine.engine.guards.topic import TopicEvidence, judge_topic
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import PLATFORM_SOURCE, QUOTE_SOURCE, ContentFormat, ItemKind
from ctxengine.engine.log.hydrate import decode_event
from ctxengine.engine.log.records import EventRecord
from ctxengine.engine.plan.plan import PinnedTool
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.models import RunRow
from ctxengine.ledger.queries.turns import turns_from
from ctxengine.service.drafts import content_draft
from ctxengine.service.last_figure import last_figure
from ctxengine.service.left_out import LeftOut
from ctxengine.service.run_facts import Retrieved, RunFacts

_EARLIER_ANSWERS = 24
"""Final answers of earlier turns that an answer is compared with."""
_QUOTED_RESULTS = 3
_DEGRADED = frozenset({Guard.FRESHNESS, Guard.TOPIC, Guard.STEERING})


class GuardDesk:
    """The guards over one response. Where the plan has none, nothing is read and nothing is said."""

    def __init__(self, facts: RunFacts, response: EventSeq) -> None:
        """Judge the response that will stand at `response`."""
        self.facts = facts
        self.response = response
        self.judged: list[Judgement] = []
        """Everything said of this response, in order."""

    @property
    def on(self) -> bool:
        """Whether the plan asks for guards."""
        return self.facts.plan.guarded

    @property
    def closing(self) -> Judgement | None:
        """The verdict that ends the turn."""
        return next((found for found in self.judged if found.verdict == "closed"), None)

    @property
    def outcome(self) -> str:
        """How a turn ends that ends with this response."""
        closing = self.closing
        return "degraded" if closing is not None and closing.guard in _DEGRADED else "completed"

    def card(self, texts: str, *, may_close: bool, may_speak: bool = True) -> Judgement | None:
        """Judge a card before it is shown; what it gives stands in the card's way.

        Args:
            texts: all texts of the card.
            may_close: whether the turn may end here; not while other calls of the response wait for their results.
            may_speak: whether the model can be told; of a fence it cannot while calls wait.
        """
        if not self.on:
            return None
        return self._keep(self._fresh("", may_close), may_speak) or self._keep(
            self._topic(texts, may_close), may_speak
        )

    def answer(self, text: str, *, has_calls: bool, emitted: int) -> Judgement | None:
        """Judge what would end the turn."""
        if not self.on:
            return None
        cards = len(self.facts.cards) + emitted
        empty = StepEvidence(bool(text.strip()), has_calls, cards, self._strikes(Guard.EMPTY_STEP))
        stopped = self._keep(judge_step(empty))
        if stopped is not None or not text.strip():
            return stopped
        shown = self._fresh(text, True) if not cards else None
        return self._keep(shown) or self._keep(self._steering(text))

    def repeats(self, *, cards: int, repeated: int, may_close: bool) -> Judgement | None:
        """Judge a batch of card calls by how many of them were shown before. It needs no policy."""
        if not cards or repeated < cards:
            return None
        found = judge_repeats(
            cards=cards, repeated=repeated, before=self._batches_before(), may_close=may_close
        )
        return self._keep(found)

    def verdicts(self) -> list[EventDraft]:
        """One event for each verdict of this response."""
        return [
            EventDraft(
                type=EventType.GUARD_JUDGED,
                trust=Trust.PLATFORM,
                run=str(self.facts.run.id),
                payload={
                    "guard": found.guard.value,
                    "verdict": found.verdict,
                    "strike": found.strike,
                    "next": _follows(found),
                    "response": int(self.response),
                    "evidence": dict(found.evidence),
                },
            )
            for found in self.judged
        ]

    def words(self, judgement: Judgement, at: int, derivation: Derivation) -> list[EventDraft]:
        """What the platform says for a verdict, and the evidence it quotes beside it, from sequence `at` on."""
        if judgement.verdict == "repair":
            turn = self._turn if judgement.guard is Guard.STEERING else None
            nudge = nudge_of(judgement.guard, turn=turn)
            said = [(nudge, Trust.PLATFORM, PLATFORM_SOURCE, "nudge")]
        else:
            said = self._statement(judgement.guard)
        return [
            content_draft(
                self.facts.log,
                type=EventType.GUARD_SPOKE,
                format=ContentFormat.TEXT,
                raw=text,
                trust=trust,
                sequence=EventSeq(at + place),
                derivation=derivation,
                run=str(self.facts.run.id),
                source=source,
                payload={"guard": judgement.guard.value, "role": role, "source": source},
                owner="" if role != "quote" else self.facts.owner,
            )
            for place, (text, trust, source, role) in enumerate(said)
        ]

    def _statement(self, guard: Guard) -> list[tuple[str, Trust, str, str]]:
        text = statement_of(guard)
        quotes: list[tuple[str, Trust, str, str]] = []
        if guard is Guard.FRESHNESS:
            figure = last_figure(self.facts)
            text += figure.note if figure else " This conversation recorded no earlier value."
            if figure is not None:
                source = f"{QUOTE_SOURCE}{figure.source}"
                quotes.append((figure.text, figure.trust, source, "quote"))
        elif guard is Guard.TOPIC:
            out = LeftOut(self.facts.log)
            kept = [found for found in self._observed if not out.any_of([str(found.item.id)])]
            quotes += [_quoted(found) for found in kept[-_QUOTED_RESULTS:]]
            text += _told_of(len(quotes), len(kept))
        return [(text, Trust.PLATFORM, PLATFORM_SOURCE, "statement"), *quotes]

    def _keep(self, found: Judgement | None, may_speak: bool = True) -> Judgement | None:
        """Note a verdict; give it where something must follow from it."""
        if found is None:
            return None
        found = found if may_speak else found.unspoken()
        if found not in self.judged:
            self.judged.append(found)
        return found if found.stops else None

    @property
    def _turn(self) -> int | None:
        """Number of the open turn, as cards and `recall` count them."""
        log = self.facts.log
        closed = log.newest(EventType.TURN_CLOSED)
        before, first = (
            (closed.payload["number"] - 1, closed.payload["first"]) if closed else (0, 0)
        )
        return before + turns_from(log.tenant, log.session, first) or None

    def _topic(self, texts: str, may_close: bool) -> Judgement | None:
        evidence = TopicEvidence(
            card=texts,
            directive="\n".join(self.facts.said),
            retrieved=tuple(text_of_item(found.item) for found in self._observed),
            strikes=self._strikes(Guard.TOPIC),
            beside=tuple(
                text_of_item(found.item)
                for found in self.facts.results
                if found not in self._observed
            ),
        )
        return judge_topic(evidence, may_close=may_close)

    def _fresh(self, text: str, may_close: bool) -> Judgement | None:
        facts = self.facts
        if not facts.reading.live:
            return None
        attempts = [found for found in facts.results if self._observes(found.tool)]
        return judge_freshness(
            FreshnessEvidence(
                live=True,
                observable=any(self._observes(tool) for tool in facts.plan.tools),
                observations=len(self._observed),
                attempts=len(attempts) - len(self._observed),
                strikes=self._strikes(Guard.FRESHNESS),
                text=text,
                asked="\n".join(facts.said),
            ),
            may_close=may_close,
        )

    @cached_property
    def _observed(self) -> tuple[Retrieved, ...]:
        """Successful calls of the run that looked at the world."""
        return tuple(
            found
            for found in self.facts.results
            if not found.item.is_error and self._observes(found.tool)
        )

    @cached_property
    def _observes(self) -> Callable[[PinnedTool | None], bool]:
        """Whether a call of a tool looks at the world as it is now.

        Where no tool says what it observes, any tool of the runtime's own may do it.
        """
        tools = [tool for tool in self.facts.plan.tools if tool.callable]
        declared = {tool.name for tool in tools if tool.observes}
        if not declared:
            declared = {
                tool.name for tool in tools if not tool.control and tool.presentation is None
            }
        return lambda tool: tool is not None and tool.name in declared

    def _steering(self, text: str) -> Judgement | None:
        if len(text.split()) < MIN_WORDS and len(text) < 4 * MIN_WORDS:
            return None
        return judge_steering(
            SteeringEvidence(
                directive=self.facts.directive,
                text=text,
                earlier=self._earlier(text),
                strikes=self._in_a_row(Guard.STEERING),
                observations=len(self._observed),
            )
        )

    def _earlier(self, text: str) -> list[Said]:
        """Final answers of earlier turns; what was asked is read only for those that are equal."""
        facts = self.facts
        finals: dict[str, EventRecord] = {}
        for event in facts.log.latest({EventType.RESPONSE_COMPLETED}, limit=4 * _EARLIER_ANSWERS):
            if event.sequence < facts.seed and event.run is not None:
                finals.setdefault(event.run, event)
        newest = list(finals.values())[:_EARLIER_ANSWERS]
        texts = facts.log.texts([event.body.id for event in newest if event.body is not None])
        said = []
        for event in newest:
            raw = texts.get(event.body.id) if event.body is not None else None
            if raw is None:
                continue
            answered = response_text(ContentFormat(event.payload["format"]), raw)
            equal = answered.split() == text.split()
            said.append(Said(self._asked(event) if equal else "", answered))
        return said

    def _asked(self, response: EventRecord) -> str:
        """What opened the run that a response belongs to."""
        if response.run is None:
            return ""
        seed = (
            RunRow.objects.filter(tenant_id=self.facts.run.tenant_id, id=response.run)
            .values_list("seed_event_sequence", flat=True)
            .first()
        )
        events = self.facts.log.events(after=EventSeq(seed - 1), limit=1) if seed else ()
        raw = self.facts.log.body(events[0].body.id) if events and events[0].body else None
        if raw is None:
            return ""
        format = ContentFormat(events[0].payload["format"])
        items = decode_event(EventType.USER_MESSAGE, format, raw)
        return "\n".join(text_of_item(item) for item in items)

    def _strikes(self, guard: Guard) -> int:
        """Repairs asked for in earlier responses of the run."""
        return sum(
            event.payload["guard"] == guard.value and event.payload["verdict"] == "repair"
            for event in self.facts.judgements
        )

    def _in_a_row(self, guard: Guard) -> int:
        count = 0
        for event in reversed(self.facts.judgements):
            if event.payload["guard"] != guard.value:
                continue
            if event.payload["verdict"] != "repair":
                break
            count += 1
        return count

    def _batches_before(self) -> int:
        """Responses right before this one that held nothing but repeated cards."""
        said = {
            event.payload["response"]
            for event in self.facts.judgements
            if event.payload["guard"] == Guard.REPEATS.value
        }
        count = 0
        for sequence in reversed(self.facts.responses):
            if sequence not in said:
                break
            count += 1
        return count


def response_text(format: ContentFormat, raw: str) -> str:
    """The prose of a response's body."""
    items = decode_event(EventType.RESPONSE_COMPLETED, format, raw)
    said = [text_of_item(item) for item in items if item.kind is ItemKind.ASSISTANT_MESSAGE]
    return "\n".join(said).strip()


def opening(drafts: Sequence[EventDraft], at: int) -> list[str]:
    """Ids of the items that these drafts hold, the first draft standing at `at`."""
    return [f"{at + place}.0" for place, draft in enumerate(drafts) if draft.items]


def _quoted(found: Retrieved) -> tuple[str, Trust, str, str]:
    """A result as it is quoted to the user, who has no `recall` to call: a short form says what it is the short form of."""
    item, whole = found.item, text_of_item(found.item)
    text, how = (
        digest_of(whole, reference=str(item.id)).text,
        reference_line(str(item.id), len(whole)),
    )
    if text != whole and text.endswith(how):
        text = f"{text.removesuffix(how)}[a short form of a result of {len(whole):,} characters]"
    return text, item.trust, f"{QUOTE_SOURCE}{item.source}", "quote"


def _told_of(quoted: int, found: int) -> str:
    """What a statement says of the results it quotes."""
    if not found:
        return " What was found is left out."
    if quoted == found:
        return " What was found is quoted below."
    return f" The last {quoted} of {found} results are quoted below; {found - quoted} earlier ones are not."


def _follows(found: Judgement) -> str:
    return {"repair": "redo", "closed": "finish"}.get(found.verdict, "")
