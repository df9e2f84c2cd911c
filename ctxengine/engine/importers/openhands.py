"""OpenHands: the event stream of a conversation, and the log of one model call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby

from ctxengine.engine.importers.bodies import broken_line
from ctxengine.engine.importers.conversations import WHOLE_FILE, Conversations, tell
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
from ctxengine.engine.importers.loose import add_around, read_message
from ctxengine.engine.importers.loose_parts import Said, read_parts
from ctxengine.engine.importers.members import first_given, id_at, parts_of, text_of_part, texts_of
from ctxengine.engine.importers.message_marks import OPENAI_RESPONSES, api_of_stray
from ctxengine.engine.importers.openai_chat import OpenAIChat, add_chat_message, place_from
from ctxengine.engine.importers.openai_responses import add_other
from ctxengine.engine.importers.openhands_tools import (
    id_of_call,
    read_call,
    read_observed,
    read_tool,
)
from ctxengine.engine.importers.openhands_v0 import OlderEvents, is_older_event, keep_instructions
from ctxengine.engine.importers.pieces import Result, add_message, add_result
from ctxengine.engine.importers.plain_message import INPUT
from ctxengine.engine.importers.texts import time_of, time_of_epoch
from ctxengine.engine.importers.transcript import EntryType, Repair, RepairAction, Transcript
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse
from ctxengine.engine.trust.levels import Trust

EVENTS = "openhands_events"
LLM_LOG = "openhands_llm_log"
_TOLD = (EntryType.INPUT, Trust.EXTERNAL_UNTRUSTED)
_RESULT_OPENING = "EXECUTION RESULT of ["
_PRIVATE = re.compile(r"<think>.*?(?:</think>|\Z)\s*", re.DOTALL)
_MODELLED = frozenset(("kind", "timestamp", "thought", "tool_call", "observation", "action"))
_PRIVATE_MEMBERS = frozenset(("reasoning_content", "thinking_blocks", "responses_reasoning_item"))
_READ_MEMBERS = frozenset(("llm_message", "system_prompt", "tools", "extended_content"))
_RESULT_KINDS = ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation")
_NO_CONTENT = (
    "ConversationStateUpdateEvent",
    "PauseEvent",
    "CondensationRequest",
    "TokenEvent",
    "LLMCompletionLogEvent",
)


class _LoggedChat(OpenAIChat):
    """Chat messages of a log, in which models without calls of their own get their results in the user's role."""

    def add(
        self, draft: SessionDraft, turns: Sequence[Turn], place: Place, facts: Facts = NO_FACTS
    ) -> None:
        """Each message is one entry; results are what tools said."""
        for told, group in groupby(enumerate(turns), lambda pair: _is_told_result(pair[1])):
            pairs = list(group)
            if not told:
                first = pairs[0][0]
                super().add(
                    draft, [turn for _, turn in pairs], partial(place_from, place, first), facts
                )
                continue
            for index, turn in pairs:
                if api_of_stray(turn.value) == OPENAI_RESPONSES:
                    # By its own role an item would be the user's.
                    add_other(draft, turn._replace(role=INPUT), place(index), facts)
                else:
                    add_chat_message(draft, turn, place(index), facts, voice=_TOLD)


_CHAT = _LoggedChat()


def _is_told_result(turn: Turn) -> bool:
    if turn.role != "user":
        return False
    said = (text for text in texts_of(turn.node.get("content")) if text and text.strip())
    return next(said, "").lstrip().startswith(_RESULT_OPENING)


def read_log(root: Node) -> Transcript:
    """Read the log of one model call: the request, and the answer in `response`."""
    dialect = _CHAT
    stamp = root.get("timestamp")
    at = time_of_epoch(stamp.value()) if stamp is not None else None
    conversations = Conversations()
    conversation = conversations.ask(dialect, dialect.request(root), WHOLE_FILE, at=at)
    response = object_at(root, "response")
    answer = dialect.answer(response) if response is not None else None
    if answer is not None:
        tell(conversation, answer, WHOLE_FILE, at=at)
    return Transcript(LLM_LOG, conversations.sessions())


def read_events(lines: Iterable[str]) -> Transcript:
    """Read an event stream; actions of one model answer are one entry."""
    reader = _Events()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            event = parse(line.strip())
        except LexemeError as error:
            reader.repairs.append(broken_line(number, line, str(error)))
            continue
        reader.take(event, f"line {number}")
    reader.flush()
    return Transcript(EVENTS, [reader.draft.finish()], reader.repairs, len(reader.repairs))


class _Events:
    """Reads events one by one."""

    def __init__(self) -> None:
        self.draft = SessionDraft("conversation", "openai")
        self.older = OlderEvents(self.draft)
        self.repairs: list[Repair] = []
        self._open: tuple[str | None, Said, str, Facts] | None = None
        self._calls: dict[str, str | None] = {}
        """Ids of calls by the events of their actions."""

    def take(self, event: Node, where: str) -> None:
        """Read one event."""
        # The first versions wrote the whole path of the class.
        kind = (text_at(event, "kind") or "").rpartition(".")[2]
        if not kind and is_older_event(event):
            self.older.take(event, where)
            return
        if kind == "ActionEvent":
            self._action(event, where)
            return
        if kind in _NO_CONTENT:
            self.draft.leave_many("state_event", where, "Events about the state; no content.")
            return
        self.flush()
        facts = Facts(at=time_of(text_at(event, "timestamp")), extra=_extra(event))
        if kind in _RESULT_KINDS:
            self._result(event, where, facts)
        elif kind == "MessageEvent":
            self._message(event, where, facts)
        elif kind == "SystemPromptEvent":
            self._system(event, where)
        elif kind == "Condensation":
            self._summary(event, where, facts)
        else:
            self.draft.leave("unknown_record", where, f"An event of kind {kind!r}.", raw=event.raw)

    def flush(self) -> None:
        """Close the answer that is being collected."""
        self.older.flush()
        if self._open is not None:
            _, said, where, facts = self._open
            self._open = None
            add_message(self.draft, EntryType.ASSISTANT, said.pieces, where, facts)

    def _action(self, event: Node, where: str) -> None:
        response_id = id_at(event, "llm_response_id")
        if self._open is None or response_id is None or self._open[0] != response_id:
            self.flush()
            facts = Facts(at=time_of(text_at(event, "timestamp")), extra=_extra(event))
            self._open = (response_id, Said("assistant"), where, facts)
        said = self._open[1]
        _read_private(said, event, event.get("thought"))
        read_call(said, event)
        self._calls[id_at(event, "id") or ""] = id_of_call(event)
        for node in said.unreadable:
            self.draft.leave("unreadable_part", where, "A part that cannot be read.", raw=node.raw)
        said.unreadable = []

    def _result(self, event: Node, where: str, facts: Facts) -> None:
        observed = read_observed(event)
        said = observed.said
        if observed.unread:
            self.draft.tally(
                "unread_observation",
                where,
                "Observations without a text that is known; all they hold stands as the result.",
                action=RepairAction.WARNED,
            )
        elif observed.beside:
            self.draft.tally(
                "observation_facts",
                where,
                "Facts of observations beside what the model was shown; left out.",
                action=RepairAction.WARNED,
            )
        name = text_at(event, "tool_name")
        call_id = id_at(event, "tool_call_id") or self._calls.get(id_at(event, "action_id") or "")
        result = Result(call_id, name, said.pieces.body, observed.failed)
        add_around(self.draft, said, where, facts)
        add_result(self.draft, result, where, facts)
        self._extended(event, where, facts)

    def _message(self, event: Node, where: str, facts: Facts) -> None:
        message = object_at(event, "llm_message")
        if message is None:
            self.draft.leave("unknown_record", where, "A message without text.", raw=event.raw)
        elif text_at(event, "source") == "user":
            self._say(EntryType.USER, read_message(message), where, facts)
            self._extended(event, where, facts)
        elif text_at(message, "role") == "assistant":
            said = Said("assistant")
            _read_private(said, message, message.get("content"))
            self._say(EntryType.ASSISTANT, said, where, facts)
        else:
            self._say(EntryType.INPUT, read_message(message), where, facts)

    def _say(self, kind: EntryType, said: Said, where: str, facts: Facts) -> None:
        add_around(self.draft, said, where, facts)
        if said.has_words or not (said.results or said.unreadable):
            add_message(self.draft, kind, said.pieces, where, facts)

    def _extended(self, event: Node, where: str, facts: Facts) -> None:
        """What hooks and skills put behind a message, which the model saw with it."""
        said = Said("user")
        read_parts(said, parts_of(event.get("extended_content")))
        add_around(self.draft, said, where, facts)
        if said.has_words:
            add_message(self.draft, EntryType.INPUT, said.pieces, where, Facts(at=facts.at))

    def _system(self, event: Node, where: str) -> None:
        told = [first_given(event, name) for name in ("system_prompt", "dynamic_context")]
        texts = [node.text() or text_at(node, "text") for node in told if node is not None]
        keep_instructions(self.draft, "\n\n".join(filter(None, texts)), where)
        for tool in map(read_tool, array_at(event, "tools")):
            if tool is not None:
                self.draft.declare(tool)

    def _summary(self, event: Node, where: str, facts: Facts) -> None:
        summary = event.get("summary")
        said = Said("user")
        if summary is None or summary.kind is not NodeKind.STRING:
            detail = "A condensation without a summary."
            self.draft.leave("condensation", where, detail, raw=event.raw)
            return
        said.pieces.text(summary)
        add_message(self.draft, EntryType.SUMMARY, said.pieces, where, facts)


def _read_private(said: Said, holder: Node, content: Node | None) -> None:
    """Texts without the private part that some models write into them; reasoning members are counted."""
    if text_at(holder, "reasoning_content"):
        said.pieces.reasoning()
    said.pieces.reasoning(len(array_at(holder, "thinking_blocks")))
    if object_at(holder, "responses_reasoning_item") is not None:
        said.pieces.reasoning()
    for part in parts_of(content):
        text = text_of_part(part)
        if text is None or "<think>" not in text:
            if text is None or text:
                read_parts(said, [part])
            continue
        said.pieces.reasoning()
        rest = _PRIVATE.sub("", text)
        if rest.strip():
            said.pieces.plain(rest)


def _extra(event: Node) -> str:
    return extra_of(event, _MODELLED | _PRIVATE_MEMBERS | _READ_MEMBERS)
