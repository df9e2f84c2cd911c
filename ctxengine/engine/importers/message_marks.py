"""Whose API a message is of, judged by the message alone: its type, its role, and the kinds of its parts."""

from __future__ import annotations

from typing import Any

OPENAI_CHAT = "openai_chat"
OPENAI_RESPONSES = "openai_responses"
ANTHROPIC = "anthropic_messages"
GOOGLE = "google_generate_content"
BEDROCK = "bedrock_converse"
PLAIN = "plain"
"""A message that several APIs would take."""

_RESPONSES_ITEMS = frozenset(
    (
        "function_call",
        "function_call_output",
        "reasoning",
        "web_search_call",
        "mcp_call",
        "mcp_list_tools",
        "item_reference",
        "custom_tool_call",
        "custom_tool_call_output",
    )
)
_RESPONSES_PARTS = frozenset(("input_text", "output_text", "input_image", "input_file"))
_ANTHROPIC_BLOCKS = frozenset(
    ("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "compaction")
)
_FRAMEWORK_BLOCKS = frozenset(
    ("tool-call", "tool-result", "toolCall", "tool_call", "tool_call_response")
)
"""Calls and results as the AI SDK, the OpenTelemetry conventions and others write them."""
_ROLES = frozenset(("user", "assistant", "system", "developer"))
"""Roles of more than one API: they tell that something is a message, not whose."""
RESULT_ROLES = ("tool", "function")
"""Roles in which results stand; a tuple, since a role may be any value."""
_GOOGLE_ROLES = frozenset(("user", "model", "function"))
_BEDROCK_BLOCKS = frozenset(("text", "toolUse", "toolResult", "reasoningContent", "cachePoint"))


def api_of_message(message: dict[str, Any]) -> str | None:
    """Name of the API whose message this is, `PLAIN` for one of several; None for what is no message."""
    kind, role = word(message.get("type")), word(message.get("role"))
    if kind in _RESPONSES_ITEMS:
        return OPENAI_RESPONSES
    if role in _GOOGLE_ROLES and _holds_google_parts(message):
        return GOOGLE
    if role in RESULT_ROLES or any(is_given(message, k) for k in ("tool_calls", "tool_call_id")):
        return OPENAI_CHAT
    blocks = _blocks(message)
    if any(map(_is_untyped, blocks)):
        return BEDROCK
    parts = {word(block.get("type")) for block in blocks}
    if parts & _RESPONSES_PARTS:
        return OPENAI_RESPONSES
    if parts & _ANTHROPIC_BLOCKS or (
        kind == "message" and role == "assistant" and is_given(message, "usage")
    ):
        return ANTHROPIC
    if kind == "message" and role:
        return OPENAI_RESPONSES
    return PLAIN if role in _ROLES and "content" in message else None


def api_of_stray(message: Any) -> str | None:
    """Name of the API whose reader must read a message that stands among chat messages; None for a chat message.

    A file may begin with any number of messages that say nothing about their API.
    """
    if not isinstance(message, dict):
        return None
    kind, role = word(message.get("type")), word(message.get("role"))
    if not role:
        return OPENAI_RESPONSES if _is_item(kind) else None
    content = message.get("content")
    if isinstance(content, str) or (role == "assistant" and message.get("tool_calls")):
        return None
    if content is None:
        return GOOGLE if role in _GOOGLE_ROLES and _holds_google_parts(message) else None
    return api_of_parts(role, message)


def api_of_parts(role: str, message: dict[str, Any]) -> str | None:
    """Name of the API whose calls, results or texts the parts of a message are, where no chat message holds such."""
    blocks = _blocks(message)
    parts = {word(block.get("type")) for block in blocks}
    if parts & _FRAMEWORK_BLOCKS or any(map(_is_untyped, blocks)):
        return BEDROCK
    if role in RESULT_ROLES and is_given(message, "tool_call_id"):
        return None
    if any(map(_is_anthropic_block, blocks)):
        return ANTHROPIC
    return OPENAI_RESPONSES if parts & _RESPONSES_PARTS and role in _ROLES else None


def word(value: Any) -> str:
    """The value, if it is a text; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def dicts(values: Any) -> list[dict[str, Any]]:
    """The objects of a list; none of anything else."""
    return [v for v in values if isinstance(v, dict)] if isinstance(values, list) else []


def is_given(record: dict[str, Any], name: str) -> bool:
    """Whether a member is there and not null."""
    return record.get(name) is not None


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return [content] if isinstance(content, dict) else dicts(content)


def _is_item(kind: str) -> bool:
    """Whether a value without a role is an item of the Responses API."""
    return kind in _RESPONSES_ITEMS or kind.endswith(("_call", "_call_output"))


def _is_untyped(block: dict[str, Any]) -> bool:
    """Whether a block is one of Bedrock's, which are told by their members."""
    return not is_given(block, "type") and any(is_given(block, name) for name in _BEDROCK_BLOCKS)


def _is_anthropic_block(block: dict[str, Any]) -> bool:
    """Whether a block is of a kind that only Anthropic's reader understands; chat servers write bare thinking too."""
    kind = word(block.get("type"))
    if kind == "thinking":
        return is_given(block, "signature")
    return kind in _ANTHROPIC_BLOCKS or kind.endswith("_tool_result")


def _holds_google_parts(message: dict[str, Any]) -> bool:
    """Parts that are told by their members: whoever names their types has another kind of part."""
    parts = message.get("parts")
    if not isinstance(parts, list) or is_given(message, "content"):
        return False
    return not any(is_given(part, "type") for part in dicts(parts))
