"""A source as facts and as a plain conversation: read once, whatever engines and models it is replayed under."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ctxengine.engine.compaction.source import argument_texts
from ctxengine.engine.content.errors import ContentError
from ctxengine.engine.derive import item_digest, text_of_item
from ctxengine.engine.events import EventType
from ctxengine.engine.fidelity.facts import Said, Use, uses_of
from ctxengine.engine.history.peers.conversation import PeerMessage, Role
from ctxengine.engine.items import DecodedItem, ItemKind
from ctxengine.engine.log.hydrate import decode_event
from ctxengine.engine.ports import TokenCounter
from ctxengine.service.replay.source import Beat, Source

_SPEAKER = {
    EventType.USER_MESSAGE: "user",
    EventType.TOOL_RESULT: "result",
    EventType.RESPONSE_COMPLETED: "model",
}
_ROLE: Mapping[EventType, Role] = {
    EventType.TOOL_RESULT: "result",
    EventType.RESPONSE_COMPLETED: "assistant",
}


@dataclass(slots=True)
class Reading:
    """What a source says."""

    source: Source
    items: Mapping[int, tuple[DecodedItem, ...]] = field(repr=False)
    """Decoded items by the place of their message."""
    uses: Mapping[int, tuple[Use, ...]] = field(repr=False)
    """Facts that answers use, by the place of the answer."""
    answer_of: Sequence[int | None]
    """For each step in order, the place of the answer to it."""


def reading_of(source: Source, *, with_uses: bool = True) -> Reading:
    """Decode every message and look for the facts that later answers use.

    Args:
        with_uses: False where fidelity is not asked for: looking for facts is most of the work.
    """
    items = {beat.place: _decoded(beat) for beat in source.beats if beat.kind == "message"}
    said = [
        entry
        for beat in source.beats
        if beat.kind == "message"
        for entry in _said(beat, items[beat.place])
    ]
    tools = [f"{t.name}\n{t.description}\n{t.input_schema}" for t in source.tools]
    prefix = "\n".join((source.instructions, *tools))
    uses = uses_of(said, prefix=prefix) if with_uses else {}
    return Reading(source, items, uses, tuple(_answers(source.beats)))


def _decoded(beat: Beat) -> tuple[DecodedItem, ...]:
    if beat.type is None:
        return ()
    try:
        return decode_event(beat.type, beat.format, beat.raw)
    except ContentError:
        return ()


def _said(beat: Beat, items: Sequence[DecodedItem]) -> Iterator[Said]:
    speaker = _SPEAKER.get(beat.type or EventType.INPUT_RECEIVED, "other")
    for item in items:
        if item.kind is ItemKind.TOOL_CALL:
            texts = tuple(text for _, text in argument_texts(item.arguments))
            yield Said(beat.place, item.ordinal, "call", item.name or "", texts)
        else:
            yield Said(beat.place, item.ordinal, speaker, text_of_item(item))


def _answers(beats: Sequence[Beat]) -> Iterator[int | None]:
    for number, beat in enumerate(beats):
        if beat.kind == "step":
            following = (b for b in beats[number + 1 :] if b.kind != "act")
            answer = next(following, None)
            is_answer = answer is not None and answer.type is EventType.RESPONSE_COMPLETED
            yield answer.place if answer is not None and is_answer else None


def conversation_of(reading: Reading, counter: TokenCounter) -> dict[int, PeerMessage]:
    """Each message by its place, as a client without envelopes would count and send it."""
    found: dict[int, PeerMessage] = {}
    for beat in reading.source.beats:
        if beat.kind != "message" or beat.type is None:
            continue
        items = reading.items[beat.place]
        role = _ROLE.get(beat.type, "user")
        found[beat.place] = PeerMessage(
            place=beat.place,
            role=role,
            tokens=sum(_tokens(item, counter) for item in items),
            digest="".join(item_digest(item) for item in items),
            starts_step=role != "result",
        )
    return found


def _tokens(item: DecodedItem, counter: TokenCounter) -> int:
    if item.kind is ItemKind.TOOL_CALL:
        return counter.call(item.name or "", item.arguments or "")
    return counter.parts(item.parts)
