"""Bedrock Converse: request and response bodies."""

from __future__ import annotations

from ctxengine.engine.importers.dialect import Answer, Facts, Request, array_at, object_at, text_at
from ctxengine.engine.importers.loose import LooseMessages, loose_turns
from ctxengine.engine.importers.transcript import ForeignTool
from ctxengine.engine.importers.usage import disjoint_usage
from ctxengine.engine.lexeme import Node

FORMAT = "bedrock_converse"


class BedrockConverse(LooseMessages):
    """The Converse API."""

    def __init__(self) -> None:
        super().__init__(FORMAT, "bedrock")

    def request(self, body: Node) -> Request:
        """Read a request body; cache points in it are settings."""
        config = object_at(body, "toolConfig") or body
        specs = [object_at(tool, "toolSpec") for tool in array_at(config, "tools")]
        texts = [text_at(part, "text") or "" for part in array_at(body, "system")]
        return Request(
            turns=loose_turns(array_at(body, "messages")),
            model=text_at(body, "modelId"),
            instructions="\n".join(text for text in texts if text),
            tools=[_tool(spec) for spec in specs if spec is not None],
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
        return Answer(
            loose_turns([message]), Facts(usage=usage, stop_reason=text_at(body, "stopReason"))
        )


def _tool(spec: Node) -> ForeignTool:
    schema = object_at(object_at(spec, "inputSchema"), "json")
    return ForeignTool(
        name=text_at(spec, "name") or "unnamed",
        description=text_at(spec, "description") or "",
        input_schema=schema.raw if schema is not None else '{"type":"object"}',
    )
