"""Cline and Roo Code histories: Anthropic messages in which the harness often speaks in the user's role."""

from __future__ import annotations

import re

from ctxengine.engine.importers.anthropic_messages import (
    Classify,
    add_anthropic_message,
    anthropic_turns,
)
from ctxengine.engine.importers.dialect import (
    USER_VOICE,
    Facts,
    Turn,
    Voice,
    extra_of,
    object_at,
    text_at,
)
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.members import texts_of
from ctxengine.engine.importers.texts import shorten, time_of_epoch
from ctxengine.engine.importers.transcript import EntryType, ForeignUsage, Transcript
from ctxengine.engine.importers.usage import disjoint_usage
from ctxengine.engine.lexeme import Node
from ctxengine.engine.trust.levels import Trust

FORMAT = "cline_history"
_MODELLED = frozenset(("role", "content", "ts"))
_TOLD: Voice = (EntryType.INPUT, Trust.EXTERNAL_UNTRUSTED)
"""What tools and the environment say."""

_MARK = "] Result:"
_HEADING = re.compile(r"\s*\[(\w+)\b.*?\] Result:(.*)", re.DOTALL)
"""How the harness opens what a tool gave; behind it the result, unless that is the next block."""
_HEADING_LINE = re.compile(r"^\[\w+\b.*\] Result:", re.MULTILINE)
_ASKING = frozenset(
    ("ask_followup_question", "attempt_completion", "plan_mode_respond", "plan_mode_response")
)
"""Tools that give what the user says."""
_DIRECTIVE = re.compile(
    r"""\s*
    (?P<sentence>(?:(?:The\ user\ (?:denied|approved)\ this\ operation\ and\ provided\ the\ following
        |The\ user\ (?:has\ )?provided\ (?:the\ following\ )?feedback
        |You\ seem\ to\ be\ having\ trouble\ proceeding\.\ The\ user\ has\ provided
        |New\ instructions\ for\ task\ continuation
        |New\ message\ to\ respond\ to\ with\ plan_mode_respond
        |\[The\ user\ has\ switched\ to
        |The\ user\ also\ provided\ the\ following\ message
      )[^\n<]*\n\s*){0,2})
    <(?:task|feedback|answer|user_message)>""",
    re.VERBOSE,
)
"""How a block begins that the user wrote: with the mark around his words, behind a sentence of the harness at most."""
_AROUND = "<environment_details>"
_RESUMED = "[TASK RESUMPTION]"
_QUOTED = "<previous_message>"
"""What a resumed task repeats: the last message in the user's role, whoever it was from."""


def read_document(root: Node) -> Transcript:
    """Read a history."""
    draft = SessionDraft("history", "anthropic")
    draft.title = _title(root)
    for number, (turn, message) in enumerate(zip(anthropic_turns(root), root, strict=True), 1):
        stamp = message.get("ts")
        at = time_of_epoch(stamp.value(), per_second=1_000) if stamp is not None else None
        facts = Facts(
            model=text_at(object_at(message, "modelInfo"), "modelId"),
            usage=_usage(object_at(object_at(message, "metrics"), "tokens")),
            at=at,
            extra=extra_of(message, _MODELLED),
        )
        voices = _voices(turn, opens=not draft.size)
        unsaid = _TOLD if draft.size or _TOLD in voices.values() else USER_VOICE
        add_anthropic_message(
            draft,
            turn,
            f"message {number}",
            facts,
            classify=_known(voices, unsaid),
        )
    return Transcript(FORMAT, [draft.finish()])


def _title(root: Node) -> str:
    """The first words of the task."""
    first = next((turn for turn in anthropic_turns(root) if turn.role == "user"), None)
    voices = _voices(first, opens=True) if first is not None else {}
    said = (text for text, voice in voices.items() if voice == USER_VOICE)
    task = next((text.partition("<task>")[2] for text in said if "<task>" in text), "")
    lines = task.partition("</task>")[0].strip().splitlines()
    return shorten(lines[0]) if lines else ""


def _usage(tokens: Node | None) -> ForeignUsage | None:
    """Newer versions keep each answer's figures, with cached tokens beside the prompt."""
    return disjoint_usage(
        tokens, fresh="prompt", cache_read="cached", cache_write="cacheWrites", output="completion"
    )


def _voices(turn: Turn, *, opens: bool) -> dict[str, Voice]:
    """Whose each text of a message in the user's role is; a text that stands twice is believed as its least.

    Args:
        turn: the message, its content as the file has it: a text, a block or a list of both.
        opens: whether it is the first message, in which the user says what he wants in any form.
    """
    voices: dict[str, Voice] = {}
    blocks = _Blocks(opens)
    for text in texts_of(turn.node):
        is_users = blocks.is_users(text)
        if text is not None:
            voices[text] = USER_VOICE if is_users and voices.get(text) != _TOLD else _TOLD
    return voices


class _Blocks:
    """Judges the blocks of one message in their order.

    What a tool gave may look like anything: a block right behind a bare heading is a result whatever it says. Behind the
    heading of a tool that asks the user nothing, and behind its one result block, a block is his only where the harness's
    sentence announces his words: no result makes a block there.
    """

    def __init__(self, opens: bool) -> None:
        self._opens = opens
        self._tool: str | None = None
        """Whose heading came last."""
        self._is_given = False
        """Whether the next block is a result."""
        self._is_apart = False
        """Whether the last result is a block of its own for certain."""
        self._is_doubtful = False
        """Whether a block may have been taken for a result that was none, and a result for none."""

    def is_users(self, text: str | None) -> bool:
        """Whether the next block, which says this or nothing, is the user's words."""
        if text is None:
            self._is_doubtful = self._is_doubtful or self._is_given
            return False
        heading = _HEADING.match(text)
        if self._is_given:
            self._is_given = False
            self._is_doubtful = self._is_doubtful or heading is not None
            return self._tool in _ASKING and _is_directive(text)
        if heading is not None:
            return self._is_answered(heading)
        if self._tool is None:
            is_told = text.lstrip().startswith(_AROUND)
            return (self._opens and not is_told) or _is_directive(text)
        if self._tool in _ASKING:
            return _is_directive(text)
        return self._is_apart and not self._is_doubtful and _is_directive(text, announced=True)

    def _is_answered(self, heading: re.Match[str]) -> bool:
        """Take a heading; whether what stands behind it in its block is the user's words."""
        text, self._tool = heading[0], heading[1]
        self._is_given = text.rstrip().endswith(_MARK)
        self._is_apart = self._is_given and text.count(_MARK) == 1
        # Questions are the model's words: one that holds an answer of its own is no answer.
        return self._tool in _ASKING and _MARK not in heading[2] and _is_directive(heading[2])


def _known(voices: dict[str, Voice], other: Voice) -> Classify:
    return lambda text: voices.get(text, other)


def _is_directive(text: str, *, announced: bool = False) -> bool:
    """Whether a block, or what stands behind a heading in it, is the user's words and no tool's result besides.

    Args:
        text: what it says.
        announced: whether the harness's sentence must stand before the mark around his words.
    """
    if _MARK in text and _HEADING_LINE.search(text):
        return False
    if text.lstrip().startswith(_RESUMED) and not announced:
        return "<user_message>" in text and _QUOTED not in text
    found = _DIRECTIVE.match(text)
    return found is not None and (bool(found["sentence"]) or not announced)
