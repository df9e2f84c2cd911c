"""Messages of formats without a decoder of their own, written in our neutral blocks from the source's own slices.

Only the frame of a block is ours; texts, arguments and results stand in it as they were written. Counts are kept while
the source is read, so that they do not depend on what the decoder later makes of the blocks.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from ctxengine.engine.importers.dialect import NO_FACTS, Facts, gist
from ctxengine.engine.importers.draft import SessionDraft
from ctxengine.engine.importers.shapes import Shape, Tally, is_broken
from ctxengine.engine.importers.transcript import Entry, EntryType
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.lexeme import Node, NodeKind
from ctxengine.engine.trust.levels import Trust

_BODY = ContentFormat.BLOCKS

Words = tuple[str, ...]


@dataclass(slots=True)
class Pieces:
    """Blocks of one message, apart from results."""

    blocks: list[str] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    words: list[Words] = field(default_factory=list)
    """What is said, for recognising it again."""
    unkept: int = 0
    """Reasoning that no request could carry: it is counted and left out."""
    is_summary: bool = False
    """It stands for what was said before it."""

    @property
    def body(self) -> str:
        """The message as JSON text."""
        return "[" + ",".join(self.blocks) + "]"

    @property
    def shape(self) -> Shape:
        """The counts so far."""
        return self.tally.shape()

    def text(self, node: Node) -> None:
        """A text, from a JSON string or from any other value, which then stands as its JSON text."""
        value = node.text()
        if value is None:
            self.plain(node.raw)
            return
        self._text(node.raw, value)

    def plain(self, text: str) -> None:
        """A text that is not a JSON string in the source."""
        self._text(json.dumps(text), text)

    def call(self, call_id: str | None, name: str, arguments: Node | None) -> None:
        """A tool call; arguments are an object, or the text the model wrote."""
        written = arguments.text() if arguments is not None else ""
        raw = arguments.raw if arguments is not None else '""'
        plain = written if written is not None else raw
        self.tally.call(call_id, name, broken=is_broken(plain))
        self.words.append(("call", name, gist(plain)))
        self.blocks.append(
            f'{{"type":"tool_call","id":{json.dumps(call_id)},"name":{json.dumps(name)},'
            f'"arguments":{raw}}}'
        )

    def thinking(self, text: Node, signature: Node | None) -> None:
        """Signed thinking that Anthropic's API takes back."""
        self.tally.reasoning += 1
        signed = f',"signature":{signature.raw}' if signature is not None else ""
        self.blocks.append(f'{{"type":"thinking","thinking":{text.raw}{signed}}}')

    def reasoning(self, count: int = 1) -> None:
        """Reasoning that is not kept at all."""
        self.unkept += count

    def media(
        self,
        kind: str,
        media_type: str | None,
        data: str | None,
        url: str | None,
        *,
        name: str | None = None,
    ) -> None:
        """An image or a file, inline (base64) or by address."""
        block = {"type": kind, "media_type": media_type, "data": data, "url": url, "name": name}
        self.tally.part()
        self.words.append((kind, (data or url or "")[:80]))
        self.blocks.append(json.dumps({k: v for k, v in block.items() if v is not None}))

    def foreign(self, kind: str, node: Node) -> None:
        """A part that only its own provider understands; one in our own frame is taken out of it."""
        framed = node.get("part")
        if framed is not None and {key for key, _ in node.items()} == {"type", "part"}:
            node = framed
        self.tally.part()
        self.words.append((kind, gist(node.raw)))
        self.blocks.append(f'{{"type":{json.dumps(kind)},"part":{node.raw}}}')

    def _text(self, raw: str, value: str) -> None:
        self.tally.part(value)
        if value.strip():
            self.words.append(("text", gist(value)))
        self.blocks.append(f'{{"type":"text","text":{raw}}}')


@dataclass(frozen=True, slots=True)
class Result:
    """One tool result, before it is an entry."""

    call_id: str | None
    name: str | None
    content: str
    """JSON text: a string, or an array of neutral blocks."""
    is_error: bool = False


def result_text(node: Node | None) -> str:
    """Content of a result as a JSON string: a string as it is, nothing as empty, any other value as its JSON text."""
    if node is None or node.kind is NodeKind.NULL:
        return '""'
    return node.raw if node.kind is NodeKind.STRING else json.dumps(node.raw)


def result_beside(content: str, blocks: list[str]) -> str:
    """Content of a result whose text has images or other blocks beside it."""
    text = [] if content == '""' else [f'{{"type":"text","text":{content}}}']
    return "[" + ",".join([*text, *blocks]) + "]" if blocks else content


def add_message(
    draft: SessionDraft,
    kind: EntryType,
    pieces: Pieces,
    where: str,
    facts: Facts = NO_FACTS,
    *,
    trust: Trust | None = None,
) -> None:
    """Count a message and make it an entry; trust follows from its kind unless given."""
    if pieces.unkept:
        draft.found(pieces.unkept)
        detail = "Reasoning that no request could carry back; it is not kept."
        draft.tally("reasoning_unkept", where, detail, items=pieces.unkept)
        if not pieces.blocks:
            return
    draft.found(pieces.shape.total)
    if kind is EntryType.ASSISTANT:
        entry = Entry(kind, _BODY, pieces.body, Trust.MODEL, **facts._asdict())
    else:
        level = trust or (Trust.USER if kind is EntryType.USER else Trust.EXTERNAL_UNTRUSTED)
        entry = Entry(kind, _BODY, pieces.body, level, at=facts.at, extra=facts.extra)
    draft.add(entry, pieces.shape, where)


def add_result(draft: SessionDraft, result: Result, where: str, facts: Facts = NO_FACTS) -> None:
    """Count a result and make it an entry."""
    draft.found(1)
    fields = [
        '"type":"tool_result"',
        f'"call_id":{json.dumps(result.call_id)}',
        f'"name":{json.dumps(result.name)}',
        f'"content":{result.content}',
        f'"is_error":{"true" if result.is_error else "false"}',
    ]
    entry = Entry(
        EntryType.RESULT,
        _BODY,
        "[{" + ",".join(fields) + "}]",
        Trust.EXTERNAL_UNTRUSTED,
        at=facts.at,
        call_id=result.call_id,
        name=result.name,
        is_error=result.is_error,
        extra=facts.extra,
    )
    empty = int(result.content in ('""', "[]"))
    draft.add(entry, Shape(1, empty=empty, result_id=result.call_id), where)
