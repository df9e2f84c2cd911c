"""The `boundary` engine in the lab: settled turns give way to a note at the trigger.

A note is a model's work, and the lab calls none: the embedded summariser stands in for it, over the whole range that the note
covers. Native compaction is a provider's alone and is not simulated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxengine.engine.boundary.checkpoint import contract_of, in_force
from ctxengine.engine.boundary.note_text import FRAME_TOKENS
from ctxengine.engine.boundary.prepare import Situation, situation_of, work_of
from ctxengine.engine.boundary.work import Made, Work, checkpoint_for, payload_of
from ctxengine.engine.compaction.net_cost import is_progress
from ctxengine.engine.compaction.session_texts import SessionTexts
from ctxengine.engine.compaction.summarise import (
    LedgerSummariser,
    Range,
    Surroundings,
    read_source,
)
from ctxengine.engine.errors import BudgetExceeded
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.inputs import Prepared, StepInputs
from ctxengine.engine.standing import history_acts
from ctxengine.engine.trust.levels import Trust

if TYPE_CHECKING:
    from ctxengine.service.replay.session import LabSession

STAND_IN = (
    "The boundary engine's notes are written by the embedded summariser here; no model is called."
)


class BoundaryDriver:
    """Makes room before a step, where the trigger is reached."""

    def run_opened(self, lab: LabSession, run: str) -> None:
        """Nothing to decide."""

    def run_ended(self, lab: LabSession, run: str) -> None:
        """Nothing to keep."""

    def before_step(self, lab: LabSession, run: str, wanted: StepInputs) -> bool:
        """Have a due compaction made."""
        situation = situation_of(
            lab.log,
            lab.facts,
            counter=lab.counter,
            marks=history_acts(lab.log).marks,
            below=lab.boundary,
            content_head=EventSeq(wanted.content_head),
            factor_millionths=wanted.factor_millionths,
        )
        if situation.tokens < situation.trigger:
            return False
        work = work_of(situation, lab.renderer)
        made = _note(lab, situation, work) if work is not None else None
        if work is None or made is None:
            return False
        lab.append([_draft(lab, situation, work, made, run)])
        return True

    def decision(self, lab: LabSession, run: str) -> int | None:
        """The checkpoint in force."""
        if lab.log.newest(EventType.COMPACTED) is None:
            return None
        found = in_force(
            lab.log,
            contract=contract_of(lab.plan),
            marks=history_acts(lab.log).marks,
            below=lab.boundary,
        )
        return found.sequence if found is not None else None

    def relieve(
        self,
        lab: LabSession,
        run: str,
        wanted: StepInputs,
        projection: Projection | None,
        pressed: Prepared | BudgetExceeded,
    ) -> bool:
        """Nothing is clipped: what does not fit is refused."""
        return False


def _note(lab: LabSession, situation: Situation, work: Work) -> Made | None:
    """A note over everything before the cut; None where none would be clearly smaller."""
    cut = work.covered.cut
    texts = SessionTexts(lab.log, cut)
    tokens = lab.log.at(cut).tokens
    source = read_source(
        lab.log,
        Range(EventSeq(1), cut, tokens),
        Surroundings(texts.untrusted, texts.brought, tools=lab.plan.pinned_names),
        excluded=frozenset(work.excluded),
    )
    most = lab.plan.policy.summary_max_output_tokens
    budget = max(200, min(most, int(situation.fixed.body * lab.plan.policy.summary_share)))
    text = LedgerSummariser(lab.counter).summarise(source, budget).text
    taken = lab.counter.text(text) + FRAME_TOKENS
    if not text.strip() or not is_progress(work.covered.tokens, taken):
        return None
    point = checkpoint_for(work, kind="note", tokens=taken)
    return Made(point, text, items=1, counted="estimated", calls=0)


def _draft(lab: LabSession, situation: Situation, work: Work, made: Made, run: str) -> EventDraft:
    return EventDraft(
        type=EventType.COMPACTED,
        trust=Trust.MODEL,
        run=run,
        payload=dict(
            payload_of(
                made,
                plan_total=situation.fixed.total,
                model=lab.plan.model,
                policy=lab.plan.policy.label,
                forced_by="lab",
                base=work.covered.base,
            )
        ),
        body=made.text,
    )
