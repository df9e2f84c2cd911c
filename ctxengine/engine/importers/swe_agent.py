"""Trajectories of SWE-agent and mini-swe-agent: chat messages in which observations often stand in the user's role."""

from __future__ import annotations

from collections.abc import Callable

from ctxengine.engine.importers.dialect import (
    NO_FACTS,
    Facts,
    Place,
    Turn,
    array_at,
    extra_of,
    object_at,
    text_at,
)
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.exchanges import DIALECTS
from ctxengine.engine.importers.openai_chat import add_chat_message, chat_turns
from ctxengine.engine.importers.openai_responses import add_items, add_other, item_turns
from ctxengine.engine.importers.swe_steps import messages_of_steps
from ctxengine.engine.importers.texts import time_of_epoch
from ctxengine.engine.importers.transcript import EntryType, Transcript
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse
from ctxengine.engine.trust.levels import Trust

_EXIT = "exit"
"""Role of the last message of newer versions."""
SWE_AGENT = "swe_agent_traj"
MINI_SWE_AGENT = "mini_swe_agent"


def read_trajectory(root: Node) -> Transcript:
    """Read a SWE-agent trajectory; its steps repeat what the history says."""
    draft = SessionDraft("trajectory", "openai")
    draft.model = _model_of(root)
    history = array_at(root, "history")
    steps = array_at(root, "trajectory")
    _conversation(draft, history or messages_of_steps(draft, steps), _is_demonstration)
    for number, _ in enumerate(steps if history else (), 1):
        detail = "Steps of the trajectory; they repeat the history."
        draft.leave_many("trajectory_step", f"step {number}", detail)
    return Transcript(SWE_AGENT, [draft.finish()])


def read_mini(root: Node) -> Transcript:
    """Read a mini-swe-agent trajectory: a list of messages, or an object around it."""
    config = object_at(object_at(object_at(root, "info"), "config"), "model")
    messages = list(root) if root.kind is NodeKind.ARRAY else array_at(root, "messages")
    answers = [message for message in messages if text_at(message, "object") == "response"]
    draft = SessionDraft("trajectory", "openai-responses" if answers else "openai")
    draft.model = text_at(config, "model_name")
    if answers:
        _items(draft, messages)
    else:
        _conversation(draft, messages, lambda _: False)
    return Transcript(MINI_SWE_AGENT, [draft.finish()])


def _items(draft: SessionDraft, messages: list[Node]) -> None:
    """Newer versions may use the Responses API: whole responses stand among the messages, results are items."""
    answered = False
    for number, message in enumerate(messages, 1):
        where = f"message {number}"
        bare, facts = _without_extra(message)
        output = bare.get("output") if text_at(bare, "object") == "response" else None
        if output is not None and not list(output):
            detail = "A response whose output is no list of items, or an empty one."
            draft.leave("unreadable_message", where, detail, raw=bare.raw)
        elif output is not None:
            answer = DIALECTS["openai_responses"].answer(bare)
            known = answer.facts if answer is not None else NO_FACTS
            known = known._replace(at=known.at or facts.at, extra=facts.extra)
            add_items(draft, item_turns(output), _at(where), known)
            answered = True
        elif text_at(bare, "role") == _EXIT:
            _leave_exit(draft, message, where)
        else:
            (turn,) = item_turns([bare])
            observed = turn.role == "user" and answered
            add_other(draft, turn._replace(role="input") if observed else turn, where, facts)


def _model_of(root: Node) -> str | None:
    """The model's name from the settings for a replay, which newer versions keep as text."""
    kept = root.get("replay_config")
    try:
        config = parse(kept.text() or "") if kept is not None and kept.text() is not None else kept
    except LexemeError:
        return None
    return text_at(object_at(object_at(config, "agent"), "model"), "name")


def _conversation(
    draft: SessionDraft, messages: list[Node], is_aside: Callable[[Node], bool]
) -> None:
    """User-role messages after the first answer are what the environment printed."""
    answered = False
    for number, message in enumerate(messages, 1):
        where = f"message {number}"
        if text_at(message, "role") == _EXIT:
            _leave_exit(draft, message, where)
            continue
        bare, facts = _without_extra(message)
        (turn,) = chat_turns([bare])
        observed = turn.role == "user" and (answered or is_aside(turn.node))
        voice = (EntryType.INPUT, Trust.EXTERNAL_UNTRUSTED) if observed else None
        add_chat_message(draft, turn, where, facts, call_id=_first_call_id(turn), voice=voice)
        answered = answered or turn.role == "assistant"


def _at(where: str) -> Place:
    return lambda _: where


def _without_extra(message: Node) -> tuple[Node, Facts]:
    """A message as it was sent, and what stands beside it: the whole response is kept there a second time."""
    extra = object_at(message, "extra")
    if extra is None:
        return message, NO_FACTS
    told = extra.get("timestamp")
    at = time_of_epoch(told.value()) if told is not None else None
    kept = extra_of(extra, frozenset(("response", "timestamp", "raw_output")))
    response = object_at(extra, "response")
    answer = DIALECTS["openai_chat"].answer(response) if response is not None else None
    facts = answer.facts if answer is not None else NO_FACTS
    bare = parse(extra_of(message, frozenset(("extra",))) or "{}")
    return bare, facts._replace(at=at or facts.at, extra=kept)


def _leave_exit(draft: SessionDraft, message: Node, where: str) -> None:
    detail = "How the run ended; the program's note, which no model saw."
    draft.leave("exit_note", where, detail, raw=message.raw)


def _first_call_id(turn: Turn) -> str | None:
    """SWE-agent writes `tool_call_ids`, a list, where the API has `tool_call_id`."""
    ids = array_at(turn.node, "tool_call_ids")
    return ids[0].text() if ids else None


def _is_demonstration(message: Node) -> bool:
    flag = message.get("is_demo")
    return flag is not None and flag.kind is NodeKind.TRUE
