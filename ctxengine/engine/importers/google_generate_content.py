"""Gemini generateContent: request and response bodies, in the spelling of the REST API and of the Python SDK."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ctxengine.engine.importers.dialect import Answer, Facts, Request, array_at, object_at, text_at
from ctxengine.engine.importers.instructions import system_text
from ctxengine.engine.importers.loose import LooseMessages, loose_turns
from ctxengine.engine.importers.members import first_given
from ctxengine.engine.importers.transcript import ForeignTool, ForeignUsage
from ctxengine.engine.importers.usage import google_usage
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

FORMAT = "google_generate_content"
_SYSTEM = ("systemInstruction", "system_instruction")


class GoogleGenerateContent(LooseMessages):
    """The generateContent API."""

    def __init__(self) -> None:
        super().__init__(FORMAT, "google")

    def request(self, body: Node) -> Request:
        """Read a request body."""
        config = object_at(body, "config")
        system = system_text(first_given(body, *_SYSTEM) or first_given(config, *_SYSTEM))
        tools = array_at(body, "tools") or (array_at(config, "tools") if config is not None else [])
        return Request(
            turns=loose_turns(_contents(first_given(body, "contents", "history", "messages"))),
            # Vertex names the project and the place in front of it.
            model=(text_at(body, "model") or "").rpartition("/")[2] or None,
            instructions=system.text,
            tools=[
                _tool(declaration)
                for group in tools
                for declaration in (
                    array_at(group, "functionDeclarations")
                    or array_at(group, "function_declarations")
                )
            ],
            unread=system.unread,
        )

    def answer(self, body: Node) -> Answer | None:
        """Read a response; the first candidate is the answer."""
        candidates = array_at(body, "candidates")
        first = candidates[0] if candidates else body
        content = object_at(first, "content")
        if content is None:
            return None
        facts = Facts(
            model=text_at(body, "modelVersion") or text_at(body, "model_version"),
            usage=_usage(body),
            stop_reason=text_at(first, "finishReason") or text_at(first, "finish_reason"),
        )
        turn = loose_turns([content])[0]._replace(role="assistant")
        dropped = max(0, len(candidates) - 1)
        response_id = text_at(body, "responseId") or text_at(body, "response_id")
        return Answer([turn], facts, response_id, dropped)

    def stream(self, events: Iterable[str]) -> str | None:
        """Join the parts of all chunks; the last one carries the usage."""
        parts: list[str] = []
        members: dict[str, str] = {}
        finish = "null"
        for event in events:
            try:
                chunk = parse(event)
            except LexemeError:
                continue
            members.update({key: node.raw for key, node in chunk.items() if key != "candidates"})
            for candidate in array_at(chunk, "candidates")[:1]:
                parts += [
                    p.raw for p in array_at(object_at(candidate, "content") or candidate, "parts")
                ]
                reason = candidate.get("finishReason")
                finish = reason.raw if reason is not None else finish
        if not parts:
            return None
        content = f'{{"role":"model","parts":[{",".join(parts)}]}}'
        rest = "".join(f",{json.dumps(key)}:{raw}" for key, raw in members.items())
        return f'{{"candidates":[{{"content":{content},"finishReason":{finish}}}]{rest}}}'


def _contents(given: Node | None) -> list[Node]:
    """Contents as the API has them; the SDKs take a text, a part or one content in their place."""
    if given is None or given.kind is NodeKind.NULL:
        return []
    nodes = list(given) if given.kind is NodeKind.ARRAY else [given]
    return [_content(node) for node in nodes]


def _content(node: Node) -> Node:
    if node.kind is NodeKind.STRING:
        return parse(f'{{"role":"user","parts":[{{"text":{node.raw}}}]}}')
    is_part = node.kind is NodeKind.OBJECT and all(
        first_given(node, name) is None for name in ("role", "parts")
    )
    return parse(f'{{"role":"user","parts":[{node.raw}]}}') if is_part else node


def _usage(body: Node) -> ForeignUsage | None:
    return google_usage(first_given(body, "usageMetadata", "usage_metadata"))


def _tool(node: Node) -> ForeignTool:
    schema = object_at(node, "parameters") or object_at(node, "parametersJsonSchema")
    schema = schema or object_at(node, "parameters_json_schema")
    return ForeignTool(
        name=text_at(node, "name") or "unnamed",
        description=text_at(node, "description") or "",
        input_schema=schema.raw if schema is not None else '{"type":"object"}',
    )
