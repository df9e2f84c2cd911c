"""OpenHands: the event stream of a conversation, and the log of one model call."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ctxengine.engine.importers.bodies import broken_line
from ctxengine.engine.importers.conversations import WHOLE_FILE, Conversations, tell
from ctxengine.engine.importers.dialect import Facts, array_at, extra_of, object_at, text_at
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.exchanges import DIALECTS
from ctxengine.engine.importers.loose import add_around, read_message
from ctxengine.engine.importers.loose_parts import Said, read_parts
from ctxengine.engine.importers.openhands_v0 import OlderEvents, is_older_event, keep_instructions
from ctxengine.engine.importers.pieces import Result, add_message, add_result
from ctxengine.engine.importers.texts import time_of, time_of_epoch
from ctxengine.engine.importers.transcript import EntryType, Repair, Transcript
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

EVENTS = "openhands_events"
LLM_LOG = "openhands_llm_log"
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


def read_log(root: Node) -> Transcript:
    """Read the log of one model call: the request, and the answer in `response`."""
    dialect = DIALECTS["openai_chat"]
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

    def take(self, event: Node, where: str) -> None:
        """Read one event."""
        kind = text_at(event, "kind") or ""
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
        response_id = text_at(event, "llm_response_id")
        if self._open is None or response_id is None or self._open[0] != response_id:
            self.flush()
            facts = Facts(at=time_of(text_at(event, "timestamp")), extra=_extra(event))
            self._open = (response_id, Said("assistant"), where, facts)
        said = self._open[1]
        _read_private(said, event, event.get("thought"))
        call = object_at(event, "tool_call")
        name = text_at(call, "name")
        if call is not None and name is not None:
            said.pieces.call(text_at(call, "id"), name, call.get("arguments"))
        for node in said.unreadable:
            self.draft.leave("unreadable_part", where, "A part that cannot be read.", raw=node.raw)
        said.unreadable = []

    def _result(self, event: Node, where: str, facts: Facts) -> None:
        observation = object_at(event, "observation")
        content = observation.get("content") if observation is not None else None
        text = content or event.get("error") or event.get("rejection_reason")
        said = Said("tool")
        if text is not None:
            read_parts(said, [text] if text.kind is NodeKind.STRING else text)
        is_error = observation.get("is_error") if observation is not None else None
        failed = observation is None or (is_error is not None and is_error.kind is NodeKind.TRUE)
        name = text_at(event, "tool_name")
        result = Result(text_at(event, "tool_call_id"), name, said.pieces.body, failed)
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
        read_parts(said, array_at(event, "extended_content"))
        add_around(self.draft, said, where, facts)
        if said.has_words:
            add_message(self.draft, EntryType.INPUT, said.pieces, where, Facts(at=facts.at))

    def _system(self, event: Node, where: str) -> None:
        prompt = text_at(object_at(event, "system_prompt"), "text")
        keep_instructions(self.draft, prompt or "", where)

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
    parts = [content] if content is not None and content.kind is NodeKind.STRING else content or ()
    for part in parts:
        text = part.text() if part.kind is NodeKind.STRING else text_at(part, "text")
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
