"""Events of OpenHands before its SDK: actions and observations, with the model's whole response beside each call."""

from __future__ import annotations

from ctxengine.engine.importers.dialect import Facts, array_at, extra_of, object_at, text_at
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.exchanges import DIALECTS
from ctxengine.engine.importers.inline_media import typed_image
from ctxengine.engine.importers.loose import read_message
from ctxengine.engine.importers.members import first_given
from ctxengine.engine.importers.pieces import (
    Pieces,
    Result,
    add_message,
    add_result,
    result_text,
)
from ctxengine.engine.importers.texts import time_of
from ctxengine.engine.importers.transcript import EntryType
from ctxengine.engine.lexeme import Node, NodeKind, parse

_NO_CONTENT = frozenset(
    ("change_agent_state", "agent_state_changed", "null", "recall", "condensation_request")
)
_TOLD = frozenset(("source", "timestamp", "action", "args", "tool_call_metadata", "llm_metrics"))
_ABOUT = frozenset(("thought", "is_input", "blocking", "confirmation_state", "security_risk"))
"""Arguments of an action that the harness added to what the model asked for."""


def is_older_event(event: Node) -> bool:
    """Whether an event is of these."""
    return first_given(event, "action", "observation") is not None


def keep_instructions(draft: SessionDraft, text: str, where: str) -> None:
    """The first agent's are the session's; those of agents it hands work to stand in the report."""
    if not draft.instructions:
        draft.instructions = text
        draft.leave("instructions", where, "Became the session's instructions.")
    else:
        detail = "Instructions of another agent, or of a later version of this one."
        draft.leave("other_instructions", where, detail, raw=text)


class OlderEvents:
    """Reads such events; actions of one response are one entry."""

    def __init__(self, draft: SessionDraft) -> None:
        """Add to this session."""
        self._draft = draft
        self._open: tuple[str, Pieces, str, Facts] | None = None
        self._results: list[tuple[Result, str, Facts]] = []
        self._asked: set[str] = set()
        """Ids of the calls so far."""
        self._by_event: dict[str, str] = {}
        """Those ids by the numbers of the events that asked."""

    def take(self, event: Node, where: str) -> None:
        """Read one event."""
        if first_given(event, "observation") is not None:
            self._observation(event, where)
            return
        kind, args = text_at(event, "action") or "", object_at(event, "args")
        facts = Facts(at=time_of(text_at(event, "timestamp")), extra=extra_of(event, _TOLD))
        by_user = text_at(event, "source") == "user"
        if kind == "system" and args is not None:
            self._system(args, where)
        elif kind == "condensation" and text_at(args, "summary"):
            self.flush()
            self._say(EntryType.SUMMARY, text_at(args, "summary"), where, facts)
        elif kind in _NO_CONTENT or args is None or kind == "condensation":
            detail = f"Events of kind {kind}: about the state, no content."
            self._draft.leave_many("state_event", where, detail)
        elif kind == "message" and (by_user or object_at(event, "tool_call_metadata") is None):
            self.flush()
            self._message(args, EntryType.USER if by_user else EntryType.ASSISTANT, where, facts)
        elif text_at(event, "source") in (None, "agent"):
            self._action(event, kind, args, where, facts)
        else:
            self.flush()
            self._say(EntryType.INPUT, _done_beside(kind, args), where, facts)

    def flush(self) -> None:
        """Close the answer that is being collected; its calls ran one by one, each before the next was told."""
        if self._open is not None:
            _, pieces, where, facts = self._open
            self._open = None
            add_message(self._draft, EntryType.ASSISTANT, pieces, where, facts)
        for result, where, facts in self._results:
            add_result(self._draft, result, where, facts)
        self._results = []

    def _say(self, kind: EntryType, text: str | None, where: str, facts: Facts) -> None:
        pieces = Pieces()
        pieces.plain(text or "")
        add_message(self._draft, kind, pieces, where, facts)

    def _system(self, args: Node, where: str) -> None:
        keep_instructions(self._draft, text_at(args, "content") or "", where)
        for tool in DIALECTS["openai_chat"].request(args).tools:
            self._draft.declare(tool)

    def _message(self, args: Node, kind: EntryType, where: str, facts: Facts) -> None:
        pieces = Pieces()
        text = first_given(args, "content")
        if text is not None:
            pieces.text(text)
        if array_at(args, "image_urls"):
            typed_image(pieces, args)
        add_message(self._draft, kind, pieces, where, facts)

    def _action(self, event: Node, kind: str, args: Node, where: str, facts: Facts) -> None:
        told = object_at(event, "tool_call_metadata")
        response = object_at(told, "model_response")
        name = (text_at(response, "id") if response is not None else None) or where
        if self._open is None or self._open[0] != name:
            self.flush()
            self._open = (name, *self._answer(args, response, where, facts))
        pieces = self._open[1]
        number = _number(event, "id")
        call_id = text_at(told, "tool_call_id") or number
        if call_id is not None:
            self._asked.add(call_id)
        if call_id is not None and number is not None:
            self._by_event[number] = call_id
        given = _given(response, call_id) or parse(extra_of(args, _ABOUT) or "{}")
        pieces.call(call_id, text_at(told, "function_name") or kind, given)

    def _answer(
        self, args: Node, response: Node | None, where: str, facts: Facts
    ) -> tuple[Pieces, str, Facts]:
        """The answer that holds an action: what it says beside its calls, and its figures."""
        answer = DIALECTS["openai_chat"].answer(response) if response is not None else None
        if answer is None:
            pieces = Pieces()
            thought = args.get("thought")
            if thought is not None and thought.text():
                pieces.text(thought)
            return pieces, where, facts
        said = read_message(_words_alone(answer.turns[0].node))
        known = answer.facts._replace(at=facts.at or answer.facts.at, extra=facts.extra)
        return said.pieces, where, known

    def _observation(self, event: Node, where: str) -> None:
        kind = text_at(event, "observation") or ""
        told = object_at(event, "tool_call_metadata")
        cause = _number(event, "cause")
        call_id = text_at(told, "tool_call_id") or cause
        if call_id == cause and cause is not None and kind not in _NO_CONTENT:
            call_id = self._by_event.get(cause, cause)
        facts = Facts(at=time_of(text_at(event, "timestamp")))
        if call_id in self._asked:
            failed = kind == "error"
            result = Result(
                call_id, text_at(told, "function_name"), result_text(event.get("content")), failed
            )
            self._results.append((result, where, facts))
        elif kind == "recall":
            detail = "What the program recalled of the repository and its own knowledge."
            self._draft.leave("recalled", where, detail, raw=event.raw)
        elif kind not in _NO_CONTENT and (words := _words_of(event)):
            self.flush()
            self._say(EntryType.INPUT, words, where, facts)
        else:
            detail = f"Events of kind {kind}: about the state, no content."
            self._draft.leave_many("state_event", where, detail)


def _given(response: Node | None, call_id: str | None) -> Node | None:
    """What the model gave a call, in its own words."""
    choices = array_at(response, "choices") if response is not None else []
    message = object_at(choices[0], "message") if choices else None
    for call in array_at(message, "tool_calls") if message is not None else []:
        if text_at(call, "id") == call_id:
            function = object_at(call, "function")
            return first_given(function, "arguments")
    return None


def _words_of(event: Node) -> str:
    """What an observation says; anything but a text as its JSON text."""
    content = first_given(event, "content")
    if content is None:
        return ""
    return content.raw if content.kind is not NodeKind.STRING else content.text() or ""


def _words_alone(message: Node) -> Node:
    """The message without its calls, each of which comes with its own action."""
    return parse(extra_of(message, frozenset(("tool_calls", "function_call"))) or "{}")


def _done_beside(kind: str, args: Node) -> str:
    """What the user or the program did beside the conversation, in words."""
    command = text_at(args, "command") if kind == "run" else None
    return f"$ {command}" if command is not None else f"{kind} {args.raw}"


def _number(event: Node, key: str) -> str | None:
    """A number that events refer to each other by, as the text of an id."""
    found = event.get(key)
    return found.raw if found is not None and found.kind is NodeKind.NUMBER else None
