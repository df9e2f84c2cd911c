"""Trajectories of SWE-agent and mini-swe-agent: chat messages in which observations often stand in the user's role."""

from __future__ import annotations

from collections.abc import Callable

from ctxengine.engine.importers.dialect import Facts, Turn, array_at, object_at, text_at
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.openai_chat import add_chat_message, chat_turns
from ctxengine.engine.importers.transcript import EntryType, Transcript
from ctxengine.engine.lexeme import Node, NodeKind, parse
from ctxengine.engine.trust.levels import Trust

SWE_AGENT = "swe_agent_traj"
MINI_SWE_AGENT = "mini_swe_agent"


def read_trajectory(root: Node) -> Transcript:
    """Read a SWE-agent trajectory; its steps repeat what the history says."""
    draft = SessionDraft("trajectory", "openai")
    history = array_at(root, "history")
    steps = array_at(root, "trajectory")
    _conversation(draft, history or _messages_of(steps), _is_demonstration)
    for number, _ in enumerate(steps if history else (), 1):
        detail = "Steps of the trajectory; they repeat the history."
        draft.leave_many("trajectory_step", f"step {number}", detail)
    return Transcript(SWE_AGENT, [draft.finish()])


def read_mini(root: Node) -> Transcript:
    """Read a mini-swe-agent trajectory: a list of messages, or an object around it."""
    draft = SessionDraft("trajectory", "openai")
    config = object_at(object_at(object_at(root, "info"), "config"), "model")
    draft.model = text_at(config, "model_name")
    messages = list(root) if root.kind is NodeKind.ARRAY else array_at(root, "messages")
    _conversation(draft, messages, lambda _: False)
    return Transcript(MINI_SWE_AGENT, [draft.finish()])


def _conversation(
    draft: SessionDraft, messages: list[Node], is_aside: Callable[[Node], bool]
) -> None:
    """User-role messages after the first answer are what the environment printed."""
    answered = False
    for number, turn in enumerate(chat_turns(messages), 1):
        where = f"message {number}"
        observed = turn.role == "user" and (answered or is_aside(turn.node))
        voice = (EntryType.INPUT, Trust.EXTERNAL_UNTRUSTED) if observed else None
        add_chat_message(draft, turn, where, Facts(), call_id=_first_call_id(turn), voice=voice)
        answered = answered or turn.role == "assistant"


def _first_call_id(turn: Turn) -> str | None:
    """SWE-agent writes `tool_call_ids`, a list, where the API has `tool_call_id`."""
    ids = array_at(turn.node, "tool_call_ids")
    return ids[0].text() if ids else None


def _is_demonstration(message: Node) -> bool:
    flag = message.get("is_demo")
    return flag is not None and flag.kind is NodeKind.TRUE


def _messages_of(steps: list[Node]) -> list[Node]:
    """A trajectory without history: each step's answer and what was observed."""
    messages: list[Node] = []
    for step in steps:
        for role, member in (("assistant", "response"), ("user", "observation")):
            text = step.get(member)
            if text is not None and text.kind is NodeKind.STRING:
                messages.append(parse(f'{{"role":"{role}","content":{text.raw}}}'))
    return messages
