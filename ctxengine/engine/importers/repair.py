"""Making pairs whole: every call gets its one result, right behind its step and in call order (field notes 2 and 29).

Deterministic, linear and idempotent: repairing what came out of a repair changes nothing and reports nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ctxengine.engine.content.decode import Role
from ctxengine.engine.importers.shapes import Call, Shape, decoded_shape
from ctxengine.engine.importers.transcript import (
    Entry,
    EntryType,
    ForeignSession,
    Repair,
    RepairAction,
)
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.lexeme import Node, parse
from ctxengine.engine.trust.levels import Trust

INTERRUPTED_TEXT = "(interrupted: the transcript holds no result for this call)"
_OF_BLOCKS = (ContentFormat.BLOCKS, ContentFormat.ANTHROPIC)
_CALLS = ("tool_use", "tool_call")
NOT_EXECUTED_TEXT = (
    "(not executed: the arguments of this call are not a JSON object, and the transcript holds no "
    "result for it)"
)


@dataclass(frozen=True, slots=True)
class Drafted:
    """An entry with what is known about it and where it stood."""

    entry: Entry
    shape: Shape
    where: str


class Repaired(NamedTuple):
    """Entries in their final order, and what was done to get there."""

    drafts: list[Drafted]
    repairs: list[Repair]


@dataclass(slots=True)
class _Step:
    """An assistant entry while its results are looked for."""

    place: int
    calls: dict[int, Call]
    """By ordinal."""
    results: dict[int, int] = field(default_factory=dict)
    """Ordinal of a call to the place of its result."""
    repeated: set[int] = field(default_factory=set)
    """Ordinals of calls whose id an earlier call already used."""


class _OpenCalls:
    """Unanswered calls by id; the nearest earlier step answers first, and inside it the calls in their order."""

    def __init__(self) -> None:
        self._open: dict[str, list[tuple[_Step, list[Call]]]] = {}
        self._of_tool: dict[str, list[tuple[_Step, list[Call]]]] = {}
        """The same calls by tool; calls that were answered by way of another table stay until they are met."""
        self._known: set[str] = set()

    def ask(self, step: _Step, calls: Sequence[Call]) -> None:
        by_key: dict[str, list[Call]] = {}
        by_tool: dict[str, list[Call]] = {}
        for call in calls:
            key = _key(call.call_id, call.name)
            if key in self._known and call.call_id is not None:
                step.repeated.add(call.ordinal)
            self._known.add(key)
            by_key.setdefault(key, []).append(call)
            by_tool.setdefault(call.name, []).append(call)
        for key, waiting in by_key.items():
            self._open.setdefault(key, []).append((step, waiting[::-1]))
        for name, asked in by_tool.items():
            self._of_tool.setdefault(name, []).append((step, asked[::-1]))

    def answer(self, entry: Entry) -> tuple[_Step, Call] | None:
        key = _key(entry.call_id, entry.name)
        if key not in self._known:
            # Some providers give calls no id, and clients invent one for the result: then the tool decides.
            key = _key(None, entry.name)
        found = _newest(self._open.get(key, []))
        if found is None and entry.call_id is None:
            # A result without an id answers the nearest call of the tool that it names.
            found = _newest(self._of_tool.get(entry.name or "", []))
        return found

    def knows(self, entry: Entry) -> bool:
        return _key(entry.call_id, entry.name) in self._known


def _newest(stack: list[tuple[_Step, list[Call]]]) -> tuple[_Step, Call] | None:
    """Take the next unanswered call out of the newest step that has one."""
    while stack:
        step, waiting = stack[-1]
        while waiting:
            call = waiting.pop()
            if call.ordinal not in step.results:
                return step, call
        stack.pop()
    return None


def repair(drafts: Sequence[Drafted]) -> Repaired:
    """Match, reorder and close; orphan results leave the list and stand in the report with their raw text."""
    steps: dict[int, _Step] = {}
    owners: dict[int, tuple[_Step, Call]] = {}
    repairs: list[Repair] = []
    drafts = _without_foreign_calls(drafts, repairs)
    kept = _match(drafts, steps, owners, repairs)
    ranks = {place: rank for rank, place in enumerate(kept)}
    out: list[Drafted] = []
    last_step = max(steps, default=-1)
    for place in kept:
        if place in owners:
            continue
        out.append(drafts[place])
        if place in steps and drafts[place].shape.calls:
            ends = place == last_step
            out.extend(_answers(drafts, steps[place], ranks, len(out) - 1, repairs, ends=ends))
    return Repaired(out, repairs)


def _without_foreign_calls(drafts: Sequence[Drafted], repairs: list[Repair]) -> list[Drafted]:
    """Nobody but a model calls tools: a call in another role could never be answered, so it leaves its entry."""
    kept: list[Drafted] = []
    for draft in drafts:
        if draft.entry.type is EntryType.ASSISTANT or not draft.shape.calls:
            kept.append(draft)
            continue
        rest, calls = _parted(draft)
        # With an entry goes the reasoning that was taken out of it.
        stays = rest.shape.items if rest is not None else -len(draft.entry.opaque)
        repairs.append(
            Repair(
                RepairAction.SET_ASIDE,
                "misplaced_call",
                draft.where,
                "A call in another role than the model's: no model made it, and nothing could answer it.",
                items=draft.shape.items - stays,
                raw=calls,
            )
        )
        if rest is not None:
            kept.append(rest)
    return kept


def _parted(draft: Drafted) -> tuple[Drafted | None, str]:
    """An entry without its calls, None where nothing else is in it, and the calls."""
    entry = draft.entry
    blocks = list(parse(entry.body)) if entry.format in _OF_BLOCKS else []
    calls = [block.raw for block in blocks if _is_call(block)]
    rest = [block.raw for block in blocks if not _is_call(block)]
    if not rest:
        return None, entry.body
    body = _array(rest)
    shape = decoded_shape(entry.format, body, role=role_of(entry))
    shape = replace(shape, reasoning=draft.shape.reasoning)
    return Drafted(replace(entry, text=body, value=None), shape, draft.where), _array(calls)


def _is_call(block: Node) -> bool:
    kind = block.get("type")
    return kind is not None and kind.text() in _CALLS


def _array(raws: list[str]) -> str:
    return "[" + ",".join(raws) + "]"


def repair_session(session: ForeignSession) -> ForeignSession:
    """A session repaired (again): equal to the given one when that has been repaired before."""
    drafts = [
        Drafted(entry, decoded_shape(entry.format, entry.body, role=role_of(entry)), f"entry {n}")
        for n, entry in enumerate(session.entries)
    ]
    result = repair(drafts)
    return replace(
        session,
        entries=[draft.entry for draft in result.drafts],
        repairs=[*session.repairs, *result.repairs],
    )


def role_of(entry: Entry) -> Role:
    """Who speaks in an entry, for the formats that do not say."""
    return "assistant" if entry.type is EntryType.ASSISTANT else "user"


def _key(call_id: str | None, name: str | None) -> str:
    """Calls without an id are told apart by tool name alone."""
    return f"id:{call_id}" if call_id is not None else f"name:{name}"


def _match(
    drafts: Sequence[Drafted],
    steps: dict[int, _Step],
    owners: dict[int, tuple[_Step, Call]],
    repairs: list[Repair],
) -> list[int]:
    calls = _OpenCalls()
    orphans: set[int] = set()
    newest = -1
    """Place of the newest step with calls, while the user has not spoken since; else -1."""
    nameless: dict[int, list[int]] = {}
    """Results that nothing but their order can place, by the step they follow: they get what no other answers."""

    def own(place: int, found: tuple[_Step, Call] | None, *, known: bool) -> None:
        if found is None:
            orphans.add(place)
            repairs.append(_orphan(drafts[place], known=known))
        else:
            found[0].results[found[1].ordinal] = place
            owners[place] = found

    for place, draft in enumerate(drafts):
        entry = draft.entry
        if entry.type is EntryType.RESULT:
            found = _answered_before(entry, steps) or calls.answer(entry)
            known = calls.knows(entry)
            if found is None and not entry.name and not known:
                nameless.setdefault(newest, []).append(place)
            else:
                own(place, found, known=known)
        elif entry.type is EntryType.USER:
            newest = -1
        elif entry.type is EntryType.ASSISTANT:
            step = steps[place] = _Step(place, {call.ordinal: call for call in draft.shape.calls})
            if draft.shape.calls:
                calls.ask(step, draft.shape.calls)
                newest = place
    for at, places in nameless.items():
        answered = _in_order(steps.get(at), [drafts[place].entry for place in places])
        repairs.extend(_by_order(drafts[at].where, answered))
        for place, found in zip(places, answered, strict=True):
            own(place, found, known=False)
    return [place for place in range(len(drafts)) if place not in orphans]


def _in_order(step: _Step | None, results: Sequence[Entry]) -> list[tuple[_Step, Call] | None]:
    """The open call of the step that each result answers; one with an id answers a call that has none itself."""
    taken: set[int] = set()
    open_calls = (
        [] if step is None else [c for c in step.calls.values() if c.ordinal not in step.results]
    )
    any_call = (call for call in open_calls if call.ordinal not in taken)
    without_id = (call for call in open_calls if call.call_id is None and call.ordinal not in taken)
    found: list[tuple[_Step, Call] | None] = []
    for entry in results:
        call = next(any_call if entry.call_id is None else without_id, None)
        found.append((step, call) if step is not None and call is not None else None)
        if call is not None:
            taken.add(call.ordinal)
    return found


def _by_order(where: str, answered: Sequence[tuple[_Step, Call] | None]) -> list[Repair]:
    paired = sum(found is not None for found in answered)
    noun = "1 result that names" if paired == 1 else f"{paired} results that name"
    detail = f"{noun} no call of the file: taken for this step's open calls, in their order."
    return [Repair(RepairAction.WARNED, "paired_by_order", where, detail)] if paired else []


def _answered_before(entry: Entry, steps: dict[int, _Step]) -> tuple[_Step, Call] | None:
    """The call that an earlier repair gave a result to, which its id and tool alone may not tell."""
    index, ordinal = entry.call_ref or (-1, -1)
    step = steps.get(index)
    call = step.calls.get(ordinal) if step is not None else None
    if step is None or call is None or ordinal in step.results or call.name != entry.name:
        return None
    return step, call


def _orphan(draft: Drafted, *, known: bool) -> Repair:
    entry = draft.entry
    if known:
        code, why = "second_result", "every call with this id already has its result"
    else:
        code, why = "orphan_result", "no earlier call has this id"
    return Repair(
        RepairAction.SET_ASIDE,
        code,
        draft.where,
        f"Result for call {entry.call_id!r}: {why}.",
        items=draft.shape.items,
        raw=entry.body,
    )


def _answers(
    drafts: Sequence[Drafted],
    step: _Step,
    ranks: dict[int, int],
    index: int,
    repairs: list[Repair],
    *,
    ends: bool,
) -> list[Drafted]:
    """Results of one step in call order; `index` is the final place of its assistant entry."""
    draft = drafts[step.place]
    answers: list[Drafted] = []
    for call in draft.shape.calls:
        place = step.results.get(call.ordinal)
        new = place is None or drafts[place].entry.call_ref is None
        if call.ordinal in step.repeated and new:
            repairs.append(_repeated(draft, call))
        if place is None:
            repairs.append(_interrupted(draft, call, ends=ends))
            answers.append(_closing(draft, call, index))
        else:
            given = drafts[place]
            entry = given.entry.answering((index, call.ordinal), call.name)
            answers.append(Drafted(entry, given.shape, given.where))
    _note_moves(drafts, step, ranks, repairs)
    return answers


def _note_moves(
    drafts: Sequence[Drafted], step: _Step, ranks: dict[int, int], repairs: list[Repair]
) -> None:
    places = [step.results[ordinal] for ordinal in sorted(step.results)]
    now = [ranks[place] for place in places]
    first = ranks[step.place] + 1
    wanted = list(range(first, first + len(now)))
    if now == wanted:
        return
    if sorted(now) == wanted:
        code, what = "result_order", "were in another order than their calls"
    else:
        code, what = "split_batch", "did not all stand directly behind it"
    noun = "1 result" if len(places) == 1 else f"{len(places)} results"
    repairs.append(
        Repair(
            RepairAction.MOVED,
            code,
            drafts[step.place].where,
            f"{noun} of this step {what}; now they follow it in call order.",
        )
    )


def _repeated(draft: Drafted, call: Call) -> Repair:
    return Repair(
        RepairAction.REMAPPED,
        "duplicate_call_id",
        draft.where,
        f"Call id {call.call_id!r} was used by an earlier call; this call to {call.name!r} gets an "
        "identity of its own and keeps the id as data.",
    )


def _interrupted(draft: Drafted, call: Call, *, ends: bool) -> Repair:
    why = "the file ends before its result" if ends else "no result follows"
    return Repair(
        RepairAction.ADDED,
        "interrupted_call",
        draft.where,
        f"Call {call.call_id!r} to {call.name!r}: {why}; closed with a synthetic result.",
    )


def _closing(draft: Drafted, call: Call, index: int) -> Drafted:
    block = {
        "type": "tool_result",
        "call_id": call.call_id,
        "content": NOT_EXECUTED_TEXT if call.broken else INTERRUPTED_TEXT,
        "is_error": True,
    }
    entry = Entry(
        EntryType.RESULT,
        ContentFormat.BLOCKS,
        json.dumps([block], separators=(",", ":")),
        Trust.EXTERNAL_UNTRUSTED,
        at=draft.entry.at,
        call_id=call.call_id,
        call_ref=(index, call.ordinal),
        name=call.name,
        is_error=True,
        synthetic=True,
    )
    return Drafted(entry, Shape(1, result_id=call.call_id), draft.where)
