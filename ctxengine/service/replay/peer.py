"""A cell of a peer policy: what its requests would hold, priced by the same cache rules as ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ctxengine.engine.cache.predict import Entry, predict
from ctxengine.engine.cache.rules import CacheRules, cache_rules
from ctxengine.engine.fidelity.view import Fidelity, RequestView, judged, nothing_shown
from ctxengine.engine.history.peers.conversation import PeerMessage, Shown
from ctxengine.engine.history.peers.places import marks_of_peer, trail_of_peer
from ctxengine.engine.history.peers.policies import PLACEHOLDER_TOKENS, STUB_TOKENS
from ctxengine.engine.ports import TokenCounter
from ctxengine.service.replay.cell import Task, gap_before
from ctxengine.service.replay.engines import lab_engine
from ctxengine.service.replay.figures import Cell, ReplayStep
from ctxengine.service.replay.lab_plan import window_of
from ctxengine.service.replay.reading import conversation_of
from ctxengine.service.wiring import counter_of, renderer_of

_RESERVE = 8_192


def played_by_peer(task: Task, cell: Cell) -> Iterator[tuple[ReplayStep, Fidelity]]:
    """Every step of a cell; where nothing can be replayed, `cell.skipped` says why."""
    made = lab_engine(task.engine).peer
    if made is None:
        msg = f"{task.engine} is an engine of ours, no peer policy."
        raise ValueError(msg)
    policy, counter = made(), counter_of(task.model.provider, task.model.name)
    allowed = window_of(task.reading.source.plan, task.model, task.settings)
    limit = min(allowed.window, task.settings.budget or allowed.window)
    prefix = _prefix(task, counter)
    room = limit - min(_RESERVE, allowed.max_output) - prefix
    if room <= 0:
        cell.skipped = f"System prompt and tools take {prefix:,} tokens of {limit:,}."
        return
    client = _Client(task, prefix, allowed.window)
    messages = conversation_of(task.reading, counter)
    history: list[PeerMessage] = []
    number = turn = 0
    for beat in task.reading.source.beats:
        if beat.kind == "message":
            turn += beat.opens_run
            history.append(messages[beat.place])
        elif beat.kind == "step":
            if history:
                yield client.ask(policy.show(history, room), number, turn, room)
            number += 1


class _Client:
    """Sends what a policy shows, and keeps what the provider's cache keeps."""

    def __init__(self, task: Task, prefix: int, window: int) -> None:
        self._task, self._prefix, self._window = task, prefix, window
        api = renderer_of(task.model.provider).api
        self._rules: CacheRules = cache_rules(api, task.model.provider, task.model.name)
        long = self._rules.long_life if task.ttl == "1h" else None
        self._life = long or self._rules.short_life
        self._left: tuple[Entry, ...] = ()
        self._reach = ""
        self._shape: tuple[int, int, int] | None = None

    def ask(self, shown: Shown, number: int, turn: int, room: int) -> tuple[ReplayStep, Fidelity]:
        task, now = self._task, self._task.clock.times[number]
        answer = task.reading.answer_of[number]
        uses = task.reading.uses.get(answer, ()) if answer is not None else ()
        if not shown.messages:
            # Behind the system prompt there is nothing left that could be sent.
            step = replace(self._step(number, turn, now), refused="nothing_left")
            return step, nothing_shown(uses)
        trail = trail_of_peer(shown, model=str(task.model), prefix=self._prefix)
        total = trail.end.tokens
        if total > self._window:
            # The provider would refuse it: nothing is read, nothing is left.
            step = self._step(number, turn, now)
            return replace(step, refused="prompt_too_long", tokens=total), nothing_shown(uses)
        marks = marks_of_peer(trail, self._rules, life=self._life)
        expected = predict(trail, marks, self._left, rules=self._rules, now=now, reach=self._reach)
        self._left, self._reach = expected.entries, trail.places[trail.stable].digest
        cost, weight = task.weigh(expected, self._rules)
        fidelity = judged(uses, _view(shown))
        stub = STUB_TOKENS if shown.stub else 0
        body = shown.tokens(PLACEHOLDER_TOKENS, STUB_TOKENS)
        return (
            replace(
                self._step(number, turn, now),
                tokens=total,
                by_class={"prefix": self._prefix, "summary": stub, "history": body - stub},
                read=expected.read,
                written=expected.write,
                fresh=expected.fresh,
                cost=cost,
                weight=weight,
                why=expected.why,
                compactions=self._rewritten(shown),
                fidelity=fidelity.as_json(),
                markers=tuple("block" for _ in marks),
                warnings=task.warnings(expected, self._rules, number),
                side_tokens=shown.made_from,
                over_budget=body > room,
            ),
            fidelity,
        )

    def _rewritten(self, shown: Shown) -> int:
        """1 where the policy gave something up since the request before."""
        first = shown.messages[0].place if shown.messages else 0
        shape = (first, len(shown.cleared), shown.stub)
        before, self._shape = self._shape, shape
        return int(before is not None and shape != before)

    def _step(self, number: int, turn: int, now: float) -> ReplayStep:
        return ReplayStep(
            number=number + 1,
            turn=turn,
            at=now,
            gap=gap_before(self._task.clock.times, number),
            tokens=0,
            by_class={},
            read=0,
            written=0,
            fresh=0,
            cost=0,
            weight=0.0,
            why="",
        )


def _view(shown: Shown) -> RequestView:
    return RequestView({m.place for m in shown.messages if m.place not in shown.cleared})


def _prefix(task: Task, counter: TokenCounter) -> int:
    source = task.reading.source
    tools = [counter.tool(t.name, t.description, t.input_schema) for t in source.tools]
    return counter.text(source.instructions) + sum(tools) + (counter.tools_once if tools else 0)
