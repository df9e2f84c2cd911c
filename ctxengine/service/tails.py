"""The tail of a run's requests: its reading in platform words, and the directives that nothing else of a request holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ctxengine.engine.control.find import Served, schemas_text, schemas_trust, serving
from ctxengine.engine.control.table import ControlTool
from ctxengine.engine.guards.topic import telling_words
from ctxengine.engine.history.left_out import any_within
from ctxengine.engine.history.projection import Projection
from ctxengine.engine.history.working_set_told import ToldTurns, told_turns
from ctxengine.engine.inputs import StepInputs
from ctxengine.engine.plan.plan import PinnedTool, Plan
from ctxengine.engine.ports import TokenCounter
from ctxengine.engine.tail import (
    INTENT_TOKENS,
    NO_TAIL,
    TOOLS_TOKENS,
    Tail,
    intent_text,
    thread_line,
    thread_of,
)
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RunRow
from ctxengine.service.calls import revoked_tools
from ctxengine.service.run_facts import RunFacts
from ctxengine.service.tool_terms import known_terms


def tail_of_run(
    run: RunRow,
    log: PostgresLog,
    plan: Plan,
    wanted: StepInputs,
    projection: Projection | None,
    counter: TokenCounter,
    told: Callable[[int], ToldTurns] | None = None,
) -> Tail:
    """What the run's requests say of its directive; nothing for engines whose blocks are not kept as events.

    Only what is new of it is sent: the block it was first sent in stays, and is rebuilt from its own event.

    Args:
        told: gives the turns that a plan leaves to the thread, for a caller that remembers them; read from the log otherwise.
    """
    if wanted.engine != "working_set" or plan.fresh_rows != "appended":
        return NO_TAIL
    facts = RunFacts(run, log, plan)
    intent = intent_text(facts.reading)
    if counter.text(intent) > INTENT_TOKENS:
        intent = ""
    served = _tools(facts, counter)
    tail = Tail(
        intent,
        tools=_schemas(plan, served.tools, served.left),
        tools_trust=schemas_trust([*served.tools, *served.left]),
        names_alone=not served.tools,
    )
    if wanted.projection is None:
        return tail
    cards, before = told_turns(log, wanted.projection) if told is None else told(wanted.projection)
    if not cards:
        return tail
    asked = telling_words([facts.directive])
    lines = [
        thread_line(
            card.number,
            card.asked,
            card.asked_trust,
            related=lambda text: bool(asked & telling_words([text])),
        )
        for card in cards
        if not any_within(wanted.excluded, card.first, card.last)
    ]
    shown, threads = [facts.directive], []
    if projection is not None:
        shown += [projection.row_nine, *(block.text or "" for block in projection.blocks)]
        threads = [block.text or "" for block in projection.blocks if block.rows.get("thread")]
    thread = thread_of(lines, shown, counter.text, blocks=threads, before=before)
    return replace(tail, thread=thread)


def _tools(facts: RunFacts, counter: TokenCounter) -> Served:
    """Listed tools that the reading asks for; none where the policy shows tools by the plan alone."""
    plan = facts.plan
    if plan.policy.surface != "reading" or not plan.indexed:
        return Served()
    revoked = revoked_tools(facts.log)
    listed = [tool for tool in plan.indexed if tool.name not in revoked]
    return serving(
        listed,
        facts.reading,
        TOOLS_TOKENS,
        directive=facts.directive,
        naming=lambda left: counter.text(_schemas(plan, (), left)),
        terms=known_terms,
    )


def _schemas(plan: Plan, tools: Sequence[PinnedTool], left: Sequence[PinnedTool]) -> str:
    if not tools and not left:
        return ""
    return schemas_text(
        tools,
        caller=plan.wire_name(ControlTool.TOOL_CALL) or ControlTool.TOOL_CALL.value,
        others=left,
        finder=plan.wire_name(ControlTool.FIND_TOOLS) or ControlTool.FIND_TOOLS.value,
    )
