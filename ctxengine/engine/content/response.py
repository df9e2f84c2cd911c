"""Finding the model's words inside a provider's whole response body.

The API is recognised by its shape. What is not a finished response (an error object, one chunk of a
stream) is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from ctxengine.engine.content.errors import ContentError
from ctxengine.engine.content.fields import field, optional_text, parsed
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.lexeme import Node, NodeKind

_WHAT = "response"
_SHAPES = (
    "an Anthropic message, an OpenAI chat completion, an OpenAI response, a Gemini, Ollama or Bedrock "
    "Converse response, or content blocks with a stop_reason"
)


_FAILED = "the answer failed; report it as `error`, with its status and this body."
_FAILED_STATES = frozenset({"failed", "cancelled"})
_UNENDED = frozenset({"queued", "in_progress"})
"""States of a Responses answer that is none, and that is none yet."""


@dataclass(frozen=True, slots=True)
class ResponseContent:
    """What a response body holds; `body` is the exact text of its content."""

    format: ContentFormat
    body: str
    stop_reason: str | None
    """The provider's own word: `stop_reason`, `finish_reason`, `finishReason`, `stopReason`,
    `done_reason`, or a Responses status or its reason when incomplete.
    """
    usage_raw: str | None
    """Raw JSON text of the usage object."""
    model: str | None
    response_id: str | None


def from_response(raw: str) -> ResponseContent:
    """Recognise a response body and take its content out.

    Raises:
        ContentError: the text is not JSON, or not a finished response of a known shape.
    """
    root = parsed(raw, _WHAT)
    if root.kind is not NodeKind.OBJECT:
        raise ContentError(f"{_WHAT}: an object is required, found {root.kind}.")
    if field(root, "choices") is not None:
        return _chat(root)
    if field(root, "candidates") is not None or _blocked(root) is not None:
        return _google(root)
    output = field(root, "output")
    if output is not None and output.kind is NodeKind.OBJECT:
        return _bedrock(root, output)
    if output is not None:
        return _responses(root)
    if field(root, "message") is not None and field(root, "done") is not None:
        return _ollama(root)
    content = field(root, "content")
    if content is not None:
        own = optional_text(root, "type", _WHAT) == "message"
        return _content(
            root,
            ContentFormat.ANTHROPIC if own else ContentFormat.BLOCKS,
            content.raw,
            optional_text(root, "stop_reason", _WHAT),
        )
    if field(root, "error") is not None:
        raise ContentError(
            f"{_WHAT}: this is a provider error; report it as `error` with its status."
        )
    raise ContentError(f"{_WHAT}: none of the known shapes; send {_SHAPES}.")


def _content(
    root: Node, format: ContentFormat, body: str, stop_reason: str | None
) -> ResponseContent:
    usage = field(root, "usage")
    return ResponseContent(
        format=format,
        body=body,
        stop_reason=stop_reason,
        usage_raw=None if usage is None else usage.raw,
        model=optional_text(root, "model", _WHAT),
        response_id=optional_text(root, "id", _WHAT),
    )


def _chat(root: Node) -> ResponseContent:
    choices = field(root, "choices")
    first = None if choices is None else next(iter(choices), None)
    message = None if first is None else field(first, "message")
    if first is None or message is None:
        raise ContentError(
            f"{_WHAT}.choices[0].message: missing; join the chunks of a stream first."
        )
    reason = optional_text(first, "finish_reason", _WHAT)
    if reason == "error" or field(first, "error") is not None:
        raise ContentError(f"{_WHAT}.choices[0]: {_FAILED}")
    return _content(root, ContentFormat.OPENAI_CHAT, message.raw, reason)


def _responses(root: Node) -> ResponseContent:
    output = field(root, "output")
    if output is None or output.kind is not NodeKind.ARRAY:
        raise ContentError(f"{_WHAT}.output: an array of items is required.")
    status = optional_text(root, "status", _WHAT)
    if status in _FAILED_STATES:
        raise ContentError(f"{_WHAT}.status: {_FAILED}")
    if status in _UNENDED:
        raise ContentError(f"{_WHAT}.status: {status}; report the response once it has ended.")
    details = field(root, "incomplete_details")
    reason = None if details is None else optional_text(details, "reason", _WHAT)
    return _content(
        root,
        ContentFormat.OPENAI_RESPONSES,
        output.raw,
        reason or status,
    )


def _google(root: Node) -> ResponseContent:
    """A candidate's content; one that was stopped before it said anything, or a blocked prompt, has none."""
    candidates, blocked = field(root, "candidates"), _blocked(root)
    first = None if candidates is None else next(iter(candidates), None)
    if first is None and blocked is None:
        raise ContentError(f"{_WHAT}.candidates[0]: missing; report a failure as `error`.")
    content = None if first is None else field(first, "content")
    reason = blocked if first is None else _text_of(first, "finishReason", "finish_reason")
    if reason is None:
        raise ContentError(
            f"{_WHAT}.candidates[0].finishReason: missing; join the chunks of a stream first."
        )
    usage = _member(root, "usageMetadata", "usage_metadata")
    return ResponseContent(
        format=ContentFormat.GOOGLE,
        body="{}" if content is None else content.raw,
        stop_reason=reason,
        usage_raw=None if usage is None else usage.raw,
        model=_text_of(root, "modelVersion", "model_version"),
        response_id=_text_of(root, "responseId", "response_id"),
    )


def _blocked(root: Node) -> str | None:
    """Why Gemini let a prompt not through; None where it says nothing of that."""
    feedback = _member(root, "promptFeedback", "prompt_feedback")
    return None if feedback is None else _text_of(feedback, "blockReason", "block_reason")


def _bedrock(root: Node, output: Node) -> ResponseContent:
    message = field(output, "message")
    content = None if message is None else field(message, "content")
    if content is None:
        raise ContentError(f"{_WHAT}.output.message.content: missing.")
    reason = optional_text(root, "stopReason", _WHAT)
    return _content(root, ContentFormat.BEDROCK, content.raw, reason)


_OLLAMA_USAGE = ("prompt_eval_count", "eval_count")


def _ollama(root: Node) -> ResponseContent:
    done, message = field(root, "done"), field(root, "message")
    if done is None or done.kind is not NodeKind.TRUE or message is None:
        raise ContentError(f"{_WHAT}.done: not true; join the chunks of a stream first.")
    counts = [(name, field(root, name)) for name in _OLLAMA_USAGE]
    usage = [f'"{name}":{node.raw}' for name, node in counts if node is not None]
    return ResponseContent(
        format=ContentFormat.OLLAMA,
        body=message.raw,
        stop_reason=optional_text(root, "done_reason", _WHAT),
        usage_raw="{" + ",".join(usage) + "}" if usage else None,
        model=optional_text(root, "model", _WHAT),
        response_id=None,
    )


def _member(node: Node, one: str, other: str) -> Node | None:
    found = field(node, one)
    return found if found is not None else field(node, other)


def _text_of(node: Node, one: str, other: str) -> str | None:
    found = _member(node, one, other)
    return None if found is None else found.text()
