"""Bedrock Converse: request and response bodies."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from ctxengine.engine.importers.dialect import Answer, Facts, Request, array_at, object_at, text_at
from ctxengine.engine.importers.instructions import system_text
from ctxengine.engine.importers.loose import LooseMessages, loose_turns
from ctxengine.engine.importers.transcript import ForeignTool
from ctxengine.engine.importers.usage import disjoint_usage
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

FORMAT = "bedrock_converse"


class BedrockConverse(LooseMessages):
    """The Converse API."""

    def __init__(self) -> None:
        super().__init__(FORMAT, "bedrock")

    def request(self, body: Node) -> Request:
        """Read a request body; cache points in it are settings."""
        config = object_at(body, "toolConfig") or body
        specs = [object_at(tool, "toolSpec") for tool in array_at(config, "tools")]
        system = system_text(body.get("system"))
        return Request(
            turns=loose_turns(array_at(body, "messages")),
            model=text_at(body, "modelId"),
            instructions=system.text,
            tools=[_tool(spec) for spec in specs if spec is not None],
            unread=system.unread,
        )

    def answer(self, body: Node) -> Answer | None:
        """Read a response."""
        message = object_at(object_at(body, "output"), "message")
        if message is None:
            return None
        usage = disjoint_usage(
            body.get("usage"),
            fresh="inputTokens",
            cache_read="cacheReadInputTokens",
            cache_write="cacheWriteInputTokens",
            output="outputTokens",
        )
        turns = [turn._replace(role="assistant") for turn in loose_turns([message])]
        return Answer(turns, Facts(usage=usage, stop_reason=text_at(body, "stopReason")))

    def stream(self, events: Iterable[str]) -> str | None:
        """Join streamed events; pieces of tool input are joined as text."""
        members = {"role": '"assistant"', "stopReason": "null", "usage": "null"}
        blocks: dict[int, _Block] = {}
        for event in events:
            told = _told(event)
            if told is None:
                continue
            kind, node = told
            if kind == "contentBlockStart":
                _block(blocks, node).call = object_at(object_at(node, "start"), "toolUse")
            elif kind == "contentBlockDelta":
                _block(blocks, node).add(object_at(node, "delta"))
            members.update(
                {key: found.raw for key in members if (found := node.get(key)) is not None}
            )
        if not blocks:
            return None
        content = ",".join(blocks[index].text() for index in sorted(blocks))
        return (
            f'{{"output":{{"message":{{"role":{members["role"]},"content":[{content}]}}}},'
            f'"stopReason":{members["stopReason"]},"usage":{members["usage"]}}}'
        )


@dataclass(slots=True)
class _Block:
    """One content block while it is streamed."""

    call: Node | None = None
    texts: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    signature: str | None = None
    redacted: bool = False
    """Whether it is reasoning that its provider encrypted as a whole."""

    def add(self, delta: Node | None) -> None:
        """Take a piece."""
        thought = object_at(delta, "reasoningContent")
        self.texts += filter(None, [text_at(delta, "text")])
        self.inputs += filter(None, [text_at(object_at(delta, "toolUse"), "input")])
        self.reasoning += filter(None, [text_at(thought, "text")])
        self.signature = text_at(thought, "signature") or self.signature
        self.redacted |= text_at(thought, "redactedContent") is not None

    def text(self) -> str:
        """JSON text of the block; tool input that is no JSON stands as a string."""
        if self.call is not None:
            written = "".join(self.inputs)
            try:
                given = parse(written).raw if written else "{}"
            except LexemeError:
                given = json.dumps(written)
            members = [f"{json.dumps(k)}:{v.raw}" for k, v in self.call.items() if k != "input"]
            return '{"toolUse":{' + ",".join([*members, f'"input":{given}']) + "}}"
        if self.reasoning or self.signature is not None:
            said = {"text": "".join(self.reasoning), "signature": self.signature}
            return json.dumps({"reasoningContent": {"reasoningText": said}})
        if self.redacted and not self.texts:
            # No request carries it back: it only has to be counted.
            return json.dumps({"reasoningContent": {"redactedContent": ""}})
        return json.dumps({"text": "".join(self.texts)})


def _block(blocks: dict[int, _Block], node: Node) -> _Block:
    index = node.get("contentBlockIndex")
    number = index.value() if index is not None else 0
    return blocks.setdefault(number if isinstance(number, int) else 0, _Block())


def _told(event: str) -> tuple[str, Node] | None:
    """Kind and content of one event."""
    try:
        members = parse(event).items()
    except (LexemeError, TypeError):
        return None
    return members[0] if members and members[0][1].kind is NodeKind.OBJECT else None


def _tool(spec: Node) -> ForeignTool:
    schema = object_at(object_at(spec, "inputSchema"), "json")
    return ForeignTool(
        name=text_at(spec, "name") or "unnamed",
        description=text_at(spec, "description") or "",
        input_schema=schema.raw if schema is not None else '{"type":"object"}',
    )
