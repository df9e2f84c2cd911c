"""Messages of another API in a list of chat messages or of Responses items, read by whoever understands them.

A list is read as one API's though single messages in it may be another's: proxies mix them, and many messages may go before
the first one that tells. Taken for a chat message, a result in the user's role would be the user's own words.
"""

from __future__ import annotations

from ctxengine.engine.importers.anthropic_messages import (
    AnthropicMessages,
    add_anthropic_message,
    content_turn,
    message_facts,
)
from ctxengine.engine.importers.dialect import Facts, Token, Turn, Voice, text_at
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.loose import LooseMessages, loose_turns
from ctxengine.engine.importers.message_marks import ANTHROPIC, RESULT_ROLES
from ctxengine.engine.importers.plain_message import INPUT
from ctxengine.engine.importers.transcript import EntryType
from ctxengine.engine.lexeme import Node
from ctxengine.engine.trust.levels import Trust

_ANTHROPIC = AnthropicMessages()
_LOOSE = LooseMessages("stray", "openai")
_TOOLS_VOICE: Voice = (EntryType.INPUT, Trust.EXTERNAL_UNTRUSTED)
"""What stands beside results in a tool's own message."""


def add_stray(
    draft: SessionDraft, api: str, message: Node, where: str, facts: Facts, voice: Voice | None
) -> None:
    """Count a message of another API and make its entries.

    Args:
        draft: The session it belongs to.
        api: Whose it is; any but Anthropic's is read by its parts alone.
        message: The message, with its role.
        where: Its place in the file.
        facts: What is known beside it.
        voice: Kind and trust of its words where they are not the user's though they stand in that role.
    """
    if api == ANTHROPIC:
        turn = _anthropic_turn(message)
        if turn.role == "assistant" and facts.usage is None:
            told = message_facts(message)
            facts = facts._replace(
                model=facts.model or told.model,
                usage=told.usage,
                stop_reason=facts.stop_reason or told.stop_reason,
            )
        heard = _TOOLS_VOICE if text_at(message, "role") in RESULT_ROLES else voice
        classify = None if heard is None else lambda _: heard
        add_anthropic_message(draft, turn, where, facts, classify=classify)
        return
    (turn,) = loose_turns([message])
    if voice is not None and turn.role == "user":
        turn = turn._replace(role=INPUT)
    _LOOSE.add(draft, [turn], lambda _: where, facts)


def stray_tokens(api: str, message: Node) -> list[Token]:
    """What such a message says."""
    if api == ANTHROPIC:
        return _ANTHROPIC.tokens(_anthropic_turn(message))
    return _LOOSE.tokens(loose_turns([message])[0])


def _anthropic_turn(message: Node) -> Turn:
    """The message as one of that API, which knows no role of a tool's."""
    role = text_at(message, "role") or ""
    role = {"tool": "user", "function": "user", "developer": "system"}.get(role, role)
    return content_turn(role, message.get("content") or message)
