"""Parts of messages as the AI SDK writes them: calls and results with `toolCallId` and `toolName`."""

from __future__ import annotations

from ctxengine.engine.importers.dialect import array_at, object_at, text_at
from ctxengine.engine.importers.members import first_given, id_at, is_true
from ctxengine.engine.importers.pieces import Pieces, Result, result_text
from ctxengine.engine.lexeme import Node, NodeKind

_FAILURES = ("error-text", "error-json", "execution-denied")


def is_sdk_call(node: Node) -> bool:
    """Whether a value is such a call: a part of a message, or an element of an answer that is calls alone."""
    return (
        id_at(node, "toolCallId") is not None
        and text_at(node, "toolName") is not None
        and first_given(node, "output", "result") is None
    )


def sdk_call(pieces: Pieces, part: Node) -> None:
    """A call; its input is an object, or the text the model wrote."""
    given = first_given(part, "input", "args", "arguments")
    pieces.call(id_at(part, "toolCallId"), text_at(part, "toolName") or "", given)


def sdk_result(part: Node) -> Result:
    """A result: `output` says what kind of value it is, `result` (older) is the value."""
    output = object_at(part, "output")
    kind = text_at(output, "type") if output is not None else None
    value = output.get("value") if output is not None and kind is not None else None
    if kind == "content" and value is not None:
        value = _only_text(value)
    if kind is None:
        value = first_given(part, "output", "result")
    failed = kind in _FAILURES or is_true(part, "isError")
    return Result(id_at(part, "toolCallId"), text_at(part, "toolName"), result_text(value), failed)


def _only_text(content: Node) -> Node:
    """The text of a result that is one text; any other stands as its JSON text."""
    parts = list(content) if content.kind is NodeKind.ARRAY else []
    text = parts[0].get("text") if len(parts) == 1 else None
    return text if text is not None and text.kind is NodeKind.STRING else content


def sdk_calls(answer: Node) -> list[Node]:
    """The calls of an answer that is nothing but calls, or an object with `toolCalls`."""
    if answer.kind is NodeKind.OBJECT:
        return [call for call in array_at(answer, "toolCalls") if is_sdk_call(call)]
    calls = list(answer) if answer.kind is NodeKind.ARRAY else []
    return calls if calls and all(is_sdk_call(call) for call in calls) else []
