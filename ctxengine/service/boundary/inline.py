"""Windows that a provider makes by itself, inside an ordinary answer (providers.md 4: threshold edits and inline items).

The block leaves the answer before it is stored: inside its run the run's checkpoint replays it, like reasoning; from the
next run on it stands as a checkpoint of the session, sealed, with the answer it opened right behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.boundary.checkpoint import Checkpoint, contract_of, marks_below, window_text
from ctxengine.engine.boundary.settled import covered_until
from ctxengine.engine.boundary.work import Made, payload_of
from ctxengine.engine.compaction.marks import present
from ctxengine.engine.content.decode import Stripped
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.ids import EventSeq
from ctxengine.engine.items import ContentFormat, Opaque
from ctxengine.engine.lexeme import Node, parse
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.log import PostgresLog
from ctxengine.ledger.models import RunRow, SessionRow
from ctxengine.service.boundary.install import seal
from ctxengine.service.boundary.look import look
from ctxengine.service.wiring import counter_of

_API = {
    ContentFormat.ANTHROPIC: "anthropic",
    ContentFormat.OPENAI_RESPONSES: "openai-responses",
}
_HELD_IN = {
    ContentFormat.ANTHROPIC: "content",
    ContentFormat.OPENAI_RESPONSES: "encrypted_content",
}
"""Member that holds what a window stands for; without a text in it the provider's compaction has failed."""


def without_windows(
    session: SessionRow, format: ContentFormat, stripped: Stripped, *, interrupted: bool
) -> tuple[Stripped, tuple[str, ...]]:
    """An answer without the windows in it, and these as raw text; the answer as it is where there is none.

    What stays is what was received: the elements are joined again, none of them is written anew. A window that holds nothing
    stands for nothing: it is let go, and the history stays.

    Args:
        interrupted: input came in that the provider had not read. Every window is let go then: replayed or installed behind
            that input, it would hide it.
    """
    api = _API.get(format)
    if session.engine != "boundary" or api is None or '"compaction"' not in stripped.body:
        return stripped, ()
    elements = tuple(parse(stripped.body))
    found = [node for node in elements if _kind(node) == "compaction"]
    if not found:
        return stripped, ()
    held = [node for node in found if _text(node, _HELD_IN[format])]
    windows = [] if interrupted else [node.raw for node in held]
    body = f"[{','.join(node.raw for node in elements if _kind(node) != 'compaction')}]"
    blocks = tuple(Opaque(0, "compaction", raw, api) for raw in windows)
    return Stripped(body, (*blocks, *stripped.opaque)), tuple(windows)


def window_draft(
    session: SessionRow,
    run: RunRow,
    log: PostgresLog,
    windows: Sequence[str],
    *,
    response: EventSeq,
) -> EventDraft | None:
    """The checkpoint that the newest of these windows becomes: it covers everything before the answer that opens with it.

    It takes effect when the next run begins. The provider counts the first request that stands on it before that goes out.

    Args:
        response: sequence that the answer will have.
    """
    situation = look(session, run, log=log).situation
    base = situation.checkpoint
    start = base.cut if base else EventSeq(1)
    units = present(log.units(start, response), situation.marks, situation.counter)
    covered = covered_until(log, units, base=base, marks=situation.marks, cut=response)
    if covered is None:
        return None
    plan = situation.session.plan
    counter = counter_of(plan.provider, plan.model)
    point = Checkpoint(
        sequence=EventSeq(0),
        kind="native",
        cut=response,
        source=covered.source,
        contract=contract_of(plan),
        marks=marks_below(situation.marks, response),
        tokens=counter.text(windows[-1]),
        tokens_before=(base.tokens_before if base else 0) + sum(unit.tokens for unit in units),
        turns=covered.turns,
        units=len(units) + (base.units if base else 0),
        retained=covered.kept.retained,
        operations=covered.kept.operations,
        left_out=base.left_out if base else (),
        inline=True,
        base=int(base.sequence) if base else 0,
    )
    made = Made(point, window_text(windows[-1:]), items=1, counted="estimated", calls=0)
    payload = payload_of(
        made,
        plan_total=situation.fixed.total,
        model=session.model,
        policy=plan.policy.label,
        forced_by="provider",
        base=base,
    )
    return EventDraft(
        type=EventType.COMPACTED,
        trust=Trust.EXTERNAL_UNTRUSTED,
        run=str(run.id),
        payload=dict(payload),
        body=seal(made.text),
        owner=session.principal,
    )


def _kind(node: Node) -> str | None:
    return _text(node, "type")


def _text(node: Node, name: str) -> str | None:
    """A member that is a text; None for any other and for none."""
    found = node.get(name)
    return None if found is None else found.text()
