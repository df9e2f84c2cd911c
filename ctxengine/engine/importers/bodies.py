"""Files that hold bodies of one API: message lists, request bodies, responses, and lists or lines of any of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ctxengine.engine.importers.anthropic_messages import (
    add_anthropic_message,
    anthropic_turns,
)
from ctxengine.engine.importers.conversations import WHOLE_FILE
from ctxengine.engine.importers.dialect import (
    NO_FACTS,
    Dialect,
    Turn,
    array_at,
    object_at,
    text_at,
)
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.exchanges import (
    DIALECTS,
    Exchange,
    exchange_of,
    exchanges_of,
    read_exchanges,
)
from ctxengine.engine.importers.loose import LooseMessages, loose_turns
from ctxengine.engine.importers.members import first_given
from ctxengine.engine.importers.message_marks import OPENAI_RESPONSES, api_of_stray
from ctxengine.engine.importers.openai_chat import chat_turns
from ctxengine.engine.importers.openai_responses import item_turns
from ctxengine.engine.importers.shelf import Shelf, Value
from ctxengine.engine.importers.transcript import ForeignSession, Repair, RepairAction, Transcript
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

_WHOLE = (
    "messages", "input", "contents", "choices", "output", "candidates", "request", "traj", "exchanges",
    "history",
)  # fmt: skip
"""Members that tell a body, a response, a pair or an episode from a single message."""


class Record(NamedTuple):
    """One value of a file and its place."""

    where: str
    value: Value

    @property
    def node(self) -> Node:
        """The value."""
        return self.value.node


def read_document(root: Node, format_name: str) -> Transcript:
    """Read a JSON document of one of the three APIs."""
    if first_given(root, "exchanges") is not None:
        return read_exchanges(exchanges_of(root))
    if root.kind is NodeKind.ARRAY:
        return _read_records(
            [Record(f"message {n}", Value(node)) for n, node in enumerate(root, 1)], format_name
        )
    return _read_records([Record(WHOLE_FILE, Value(root))], format_name)


def read_lines(lines: Iterable[str], format_name: str, shelf: Shelf | None = None) -> Transcript:
    """Read JSON lines of one of the three APIs; lines that are one message each may wait on the shelf."""
    records: list[Record] = []
    repairs: list[Repair] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            records.append(Record(f"line {number}", Value(parse(line.strip()), shelf)))
        except LexemeError as error:
            repairs.append(broken_line(number, line, str(error)))
    transcript = _read_records(records, format_name, shelf)
    transcript.repairs.extend(repairs)
    transcript.items_in += len(repairs)
    return transcript


def broken_line(number: int, line: str, why: str) -> Repair:
    """Report of a line that is not JSON (the last one of a killed process, as a rule)."""
    return Repair(
        RepairAction.SET_ASIDE, "broken_line", f"line {number}", why, items=1, raw=line.strip()
    )


def is_whole(node: Node) -> bool:
    """Whether a value is a body, response, pair or episode rather than one message or item."""
    return first_given(node, *_WHOLE) is not None and text_at(node, "type") is None


def _read_records(
    records: list[Record], format_name: str, shelf: Shelf | None = None
) -> Transcript:
    dialect = DIALECTS[format_name]
    if not any(is_whole(record.node) for record in records):
        return Transcript(format_name, [_one_conversation(records, dialect, shelf)])
    if any(first_given(record.node, "traj") is not None for record in records):
        episodes = [_episode(number, record) for number, record in enumerate(records, 1)]
        return Transcript(format_name, episodes)
    return read_exchanges(_exchange(record, dialect) for record in records)


def _one_conversation(
    records: list[Record], dialect: Dialect, shelf: Shelf | None
) -> ForeignSession:
    """Neighbouring messages (or items) are one conversation."""
    draft = SessionDraft("conversation-1", dialect.provider, shelf=shelf)
    if dialect.format == "openai_responses":
        turns = item_turns([record.node for record in records])
        dialect.add(draft, turns, lambda n: records[n].where)
    elif isinstance(dialect, LooseMessages):
        for record in records:
            dialect.add(draft, loose_turns([record.node]), _always(record.where))
    elif dialect.format == "openai_chat":
        _add_chat_records(draft, records, dialect)
    else:
        _add_anthropic_records(draft, records, dialect)
    return draft.finish()


def _always(where: str) -> Callable[[int], str]:
    return lambda _: where


def _add_chat_records(draft: SessionDraft, records: list[Record], dialect: Dialect) -> None:
    """Messages one by one; neighbouring items of the Responses API are one answer and are read together."""
    waiting: list[tuple[Turn, str]] = []

    def add_waiting() -> None:
        turns, places = [turn for turn, _ in waiting], [where for _, where in waiting]
        dialect.add(draft, turns, lambda n: places[n])
        waiting.clear()

    for record in records:
        (turn,) = chat_turns([record.node])
        if api_of_stray(turn.value) == OPENAI_RESPONSES:
            waiting.append((turn, record.where))
            continue
        add_waiting()
        dialect.add(draft, [turn], _always(record.where))
    add_waiting()


def _add_anthropic_records(draft: SessionDraft, records: list[Record], dialect: Dialect) -> None:
    """Messages of a list, each with its own facts where it is a whole response."""
    for record in records:
        node = record.node
        answer = dialect.answer(node)
        facts = answer.facts if answer is not None else NO_FACTS
        add_anthropic_message(draft, anthropic_turns([node])[0], record.where, facts)


def _episode(number: int, record: Record) -> ForeignSession:
    """One benchmark episode: its messages under `traj`, the rest is about it."""
    node = record.node
    draft = SessionDraft(f"episode-{number}", "openai")
    task, trial = node.get("task_id"), node.get("trial")
    if task is not None:
        draft.title = f"task {task.raw}" + (f", trial {trial.raw}" if trial is not None else "")
    turns = chat_turns(array_at(node, "traj"))
    DIALECTS["openai_chat"].add(draft, turns, lambda n: f"episode {number} message {n + 1}")
    about = ", ".join(key for key, _ in node.items() if key != "traj")
    if about:
        draft.tally("episode_facts", f"episode {number}", f"Facts about the episode: {about}.")
    return draft.finish()


def _exchange(record: Record, dialect: Dialect) -> Exchange:
    """A pair as it is; a lone request without response; a lone response with an empty request."""
    node = record.node
    if first_given(node, "request") is not None:
        return exchange_of(node, record.where)
    if first_given(node, "messages", "input", "contents", "history") is None:
        empty = '{"input":[],"messages":[],"contents":[]}'
        return Exchange(record.where, parse(empty), node, api=dialect.format)
    return Exchange(record.where, node, object_at(node, "response"), api=dialect.format)
