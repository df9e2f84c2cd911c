"""What becomes of the cards of one response: validated, written once, acknowledged (capacity spec 10)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxengine.engine.control.arguments import faults_of
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.guards.judgement import Judgement
from ctxengine.engine.lexeme import Node, is_json_object, parse
from ctxengine.engine.plan.plan import PinnedTool
from ctxengine.engine.presentations.fences import MAX_FENCES, Fence, fences_in
from ctxengine.engine.presentations.payload import (
    MAX_PAYLOAD_DEPTH,
    canonical_payload,
    depth_of,
    payload_sha256,
    strings_of,
)
from ctxengine.engine.presentations.schemas import CardSchema, Identity, identity_of, schema_of
from ctxengine.engine.trust.levels import Trust, lowest
from ctxengine.engine.turns.presentation import Emitted, Origin
from ctxengine.service.control.answers import ControlAnswer
from ctxengine.service.run_facts import RunFacts

TOO_MANY = "too_many_fences"
"""Code of the note about fences behind the last that is read."""


class Card(NamedTuple):
    """A payload that fits its schema."""

    schema: CardSchema
    identity: Identity
    payload: str

    @property
    def sha256(self) -> str:
        """What a second identical card is known by."""
        return payload_sha256(self.payload)


class Unfit(NamedTuple):
    """What is wrong with a payload that makes no card."""

    code: str
    text: str
    """What the model is told: JSON text."""


@dataclass(slots=True)
class CardDesk:
    """The cards of one response on their way into the log."""

    facts: RunFacts
    calls: int = 0
    """Card calls of this response."""
    repeated: int = 0
    """Those that repeat a card of the run."""
    emitted: int = 0
    """Cards this response adds."""
    _new: dict[str, int] = field(default_factory=dict)

    def answer_call(
        self, tool: PinnedTool, arguments: str, *, source: str, result_at: int
    ) -> ControlAnswer:
        """Acknowledge a card call; the card is written behind the acknowledgement.

        Args:
            source: item id of the call.
            result_at: sequence that the acknowledgement will have.
        """
        self.calls += 1
        card = card_from(tool.presentation or "", tool.card, arguments, tool.input_schema)
        if isinstance(card, Unfit):
            return ControlAnswer(card.text, is_error=True, drafts=[self.refusal(source, card.code)])
        known = self._known(card.sha256)
        if known is not None:
            self.repeated += 1
            return ControlAnswer(
                json.dumps({"presentation": str(known), "ok": True, "repeated": True})
            )
        draft = self._written(card, tool.name, source, "call", result_at + 1)
        return ControlAnswer(
            json.dumps({"presentation": str(result_at + 1), "ok": True}), drafts=[draft]
        )

    def note_execution(
        self, tool: PinnedTool, arguments: str, *, source: str, at: int
    ) -> list[EventDraft]:
        """The card of a call that the runtime carries out itself; nothing for one that does not fit."""
        card = card_from(tool.presentation or "", tool.card, arguments, tool.input_schema)
        if isinstance(card, Unfit) or self._known(card.sha256) is not None:
            return []
        return [self._written(card, tool.name, source, "call", at)]

    def from_texts(
        self,
        said: Sequence[tuple[str, str]],
        *,
        at: int,
        refused: Callable[[PinnedTool, str], str | None],
        withheld: Callable[[str], Judgement | None],
    ) -> list[EventDraft]:
        """The cards that messages hold in fences. Ask only when the response's calls have been answered: theirs come first.

        A fence that may not be shown is plain text, and what it was refused for is noted as for a call; so is how many of a
        message were too many to be read.

        Args:
            said: item id and text of each message of the response, in order.
            at: sequence that the first draft will have.
            refused: the code for which a call of this tool with these arguments would be refused now; None where it would not.
            withheld: asked with a card's texts before it is written, for the verdict that stands in its way. Where that says
                something, the answer is given anew or ends here, and the fences behind are not looked at.
        """
        drafts: list[EventDraft] = []
        fences = [(source, fence) for source, text in said for fence in fences_in(text)]
        for source, fence in fences[:MAX_FENCES]:
            judged = [(tool, refused(tool, fence.payload)) for tool in self._tools_of(fence)]
            tool = next((tool for tool, code in judged if code is None), None)
            if tool is None:
                drafts += [self.refusal(source, code) for _, code in judged[:1] if code is not None]
                continue
            card = card_from(fence.semantic_type, tool.card, fence.payload, tool.input_schema)
            if isinstance(card, Unfit):
                drafts.append(self.refusal(source, card.code))
                continue
            if self._known(card.sha256) is not None:
                continue
            verdict = withheld(card_texts(fence.payload))
            if verdict is not None and verdict.speaks:
                break
            if verdict is not None:
                continue
            drafts.append(self._written(card, tool.name, source, "fence", at + len(drafts)))
        unread = self._unread(fences[MAX_FENCES:])
        return drafts + [self.refusal(source, TOO_MANY, fences=n) for source, n in unread.items()]

    def refusal(self, answers: str, code: str, *, fences: int = 0) -> EventDraft:
        """The note of a call, or of a fence in the place of one, that is not carried out.

        Args:
            answers: item id of the call, or of the message with the fence.
            fences: how many fences of that message it speaks of, where it is not one alone.
        """
        return EventDraft(
            type=EventType.CALL_REFUSED,
            trust=Trust.PLATFORM,
            run=str(self.facts.run.id),
            payload={"answers": answers, "code": code} | ({"fences": fences} if fences else {}),
        )

    def known(self, tool: PinnedTool, arguments: str) -> bool:
        """Whether a call repeats a card of the run."""
        card = card_from(tool.presentation or "", tool.card, arguments, tool.input_schema)
        return not isinstance(card, Unfit) and self._known(card.sha256) is not None

    def _tools_of(self, fence: Fence) -> list[PinnedTool]:
        """Fences stand in for card tools: a type that no tool of the plan shows is plain text."""
        return [
            tool
            for tool in self.facts.plan.tools
            if tool.presentation == fence.semantic_type and (tool.removed or tool.group != "hidden")
        ]

    def _unread(self, fences: Sequence[tuple[str, Fence]]) -> Counter[str]:
        """How many of these fences each message holds, without plain text and what is on show already."""
        return Counter(
            source
            for source, fence in fences
            if self._tools_of(fence)
            and self._known(payload_sha256(canonical_payload(parse(fence.payload)))) is None
        )

    def _known(self, sha256: str) -> int | None:
        if sha256 in self._new:
            return self._new[sha256]
        return next(
            (int(shown.sequence) for shown in self.facts.cards if shown.payload_sha256 == sha256),
            None,
        )

    def _written(
        self, card: Card, tool: str, source: str, origin: Origin, sequence: int
    ) -> EventDraft:
        self._new[card.sha256] = sequence
        self.emitted += 1
        results = [found.item for found in self.facts.results]
        emitted = Emitted(
            turn=self.facts.seed,
            source=source,
            origin=origin,
            tool=tool,
            semantic_type=card.schema.type,
            schema_version=card.schema.version,
            identity=card.identity,
            payload=card.payload,
            derived_from=tuple(str(item.id) for item in results),
            trust=lowest([Trust.MODEL, *(item.trust for item in results)]),
        )
        return emitted.draft(run=str(self.facts.run.id), owner=self.facts.owner)


def card_from(
    semantic_type: str, registered: CardSchema | None, arguments: str, input_schema: str
) -> Card | Unfit:
    """The card that a payload makes, or what is wrong with it.

    Args:
        arguments: text of a JSON object.
        input_schema: of the card tool.
    """
    faults = faults_of(input_schema, arguments)
    if faults:
        said = [f"{fault.keyword}: {fault.expected}".rstrip(": ") for fault in faults]
        return _unfit("card_does_not_fit", said)
    payload: Node = parse(arguments)
    depth = depth_of(payload)
    if depth > MAX_PAYLOAD_DEPTH:
        return _unfit(
            "card_too_deep",
            f"A card may be nested {MAX_PAYLOAD_DEPTH} levels deep; this one has {depth}. Send it flatter.",
        )
    schema = schema_of(semantic_type, registered)
    identity = identity_of(schema, payload)
    if not identity.found:
        return _unfit(
            "card_without_identity",
            f"A card of this type is known by {_listed(schema.identity)}; give at least one of them.",
        )
    return Card(schema, identity, canonical_payload(payload))


def card_texts(arguments: str) -> str:
    """All texts of a payload that is a JSON object; empty for anything else."""
    return "\n".join(strings_of(parse(arguments))) if is_json_object(arguments) else ""


def _unfit(code: str, detail: str | list[str]) -> Unfit:
    return Unfit(code, json.dumps({"ok": False, "error": code, "detail": detail}))


def _listed(selectors: Sequence[str]) -> str:
    return "its content" if "*" in selectors else ", ".join(selectors)
