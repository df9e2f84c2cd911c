"""Steps of a SWE-agent trajectory that keeps no history: queries, answers and observations made one conversation."""

from __future__ import annotations

import json

from ctxengine.engine.importers.dialect import gist, plain_text, text_at
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.members import first_given, parts_of
from ctxengine.engine.lexeme import Node, NodeKind, parse


def messages_of_steps(draft: SessionDraft, steps: list[Node]) -> list[Node]:
    """The conversation of all steps; what a step tells twice, or otherwise than before, is accounted for in the draft.

    A query repeats what was said so far and adds to it: the first one the system's and the user's words, each later one
    the step before it in the model's own form. Steps that keep no query have their answer and what was observed.
    """
    reader = _Steps(draft)
    for number, step in enumerate(steps, 1):
        reader.take(step, f"step {number}")
    return reader.finish()


class _Steps:
    """Reads steps one by one."""

    def __init__(self, draft: SessionDraft) -> None:
        self._draft = draft
        self._messages: list[Node] = []
        self._known: set[tuple[str, str]] = set()
        """Who said what so far."""
        self._own: list[Node] = []
        """Answer and observation of the last step, until a query has told them or not."""
        self._own_where = ""

    def take(self, step: Node, where: str) -> None:
        """Read one step."""
        query = self._query(step, where)
        told = query[len(self._messages) :]
        if self._own and told and text_at(told[0], "role") == "assistant":
            self._leave_own(told)
        else:
            self._say(self._own)
            told = query[len(self._messages) :]
        for message in query[: len(query) - len(told)]:
            self._repeat(message, where)
        self._say(told)
        self._own, self._own_where = self._answer(step, where), where

    def finish(self) -> list[Node]:
        """Everything said."""
        self._say(self._own)
        return self._messages

    def _say(self, messages: list[Node]) -> None:
        self._messages += messages
        self._known.update(map(_words, messages))

    def _repeat(self, message: Node, where: str) -> None:
        if _words(message) in self._known:
            detail = "Messages of queries that were said before."
            self._draft.leave_many("repeated_history", where, detail)
        else:
            self._known.add(_words(message))
            detail = "A message that a later query holds in another form."
            self._draft.leave("rewritten_message", where, detail, raw=message.raw)

    def _leave_own(self, told: list[Node]) -> None:
        """The next query tells the step: its answer in the model's own form, its observation as the model saw it."""
        says = "".join(_words(message)[1] for message in told)
        for message in self._own:
            if _words(message)[1] in says:
                detail = "Answers and observations that the next query tells too."
                self._draft.leave_many("trajectory_step", self._own_where, detail)
            else:
                detail = "What a step says otherwise than the next query does."
                self._draft.leave("other_step", self._own_where, detail, raw=message.raw)
        self._own = []

    def _query(self, step: Node, where: str) -> list[Node]:
        """Messages that the model was sent."""
        query = first_given(step, "query")
        if query is None:
            return []
        if query.kind is NodeKind.STRING:
            return [_message("user", query)]
        if query.kind in (NodeKind.ARRAY, NodeKind.OBJECT):
            return parts_of(query)
        detail = "A query that holds no messages."
        self._draft.leave("unreadable_part", where, detail, raw=query.raw)
        return []

    def _answer(self, step: Node, where: str) -> list[Node]:
        """What the model said and what was observed."""
        own: list[Node] = []
        answer = first_given(step, "response") or _thought_and_action(step)
        for role, said in (("assistant", answer), ("user", first_given(step, "observation"))):
            if said is not None and said.kind is NodeKind.STRING:
                own.append(_message(role, said))
            elif said is not None:
                detail = "A part of a step that is no text."
                self._draft.leave("unreadable_part", where, detail, raw=said.raw)
        return own


def _thought_and_action(step: Node) -> Node | None:
    """What stands for an answer that was not kept itself."""
    texts = [text for name in ("thought", "action") if (text := text_at(step, name))]
    return parse(json.dumps("\n\n".join(texts))) if texts else None


def _message(role: str, text: Node) -> Node:
    return parse(f'{{"role":"{role}","content":{text.raw}}}')


def _words(message: Node) -> tuple[str, str]:
    content = message.get("content")
    text = gist(plain_text(content.peek())) if content is not None else ""
    return text_at(message, "role") or "", text
