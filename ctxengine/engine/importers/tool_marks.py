"""Tools whose files are known by the members they write; everything else is judged by its messages."""

from __future__ import annotations

from typing import Any

from ctxengine.engine.importers.dialect import array_at, object_at, text_at
from ctxengine.engine.importers.members import first_given
from ctxengine.engine.importers.message_marks import is_given
from ctxengine.engine.lexeme import Node, NodeKind

_ALL_OF: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset(("trace", "observations")), "langfuse_otel_trace"),
    (frozenset(("resourceSpans",)), "otel_genai"),
    (frozenset(("session", "items")), "codex_rollout"),
    (frozenset(("eval", "status", "version")), "inspect_ai_log"),
    (frozenset(("messages", "projectHash")), "gemini_cli"),
    (frozenset(("messages", "sessionId", "startTime")), "gemini_cli"),
    (frozenset(("messages", "trajectory_format")), "mini_swe_agent"),
    (frozenset(("messages", "response", "kwargs")), "openhands_llm_log"),
    (frozenset(("messages", "response", "latency_sec")), "openhands_llm_log"),
    (frozenset(("history", "trajectory")), "swe_agent_traj"),
    (frozenset(("trajectory", "info")), "swe_agent_traj"),
)
"""Members that together name a tool."""

_MINI_MARKS = ("<returncode>", "mswea_bash_command")
_CLINE_MARKS = ("<environment_details>", "<task>")
_LOOKED_AT = 8


def format_by_members(root: Node) -> str | None:
    """Name of the tool that wrote a JSON document; None when its members do not tell."""
    if root.kind is NodeKind.ARRAY:
        return _format_of_list(root)
    if root.kind is not NodeKind.OBJECT:
        return None
    keys = {key for key, node in root.items() if node.kind is not NodeKind.NULL}
    for members, name in _ALL_OF:
        if members <= keys:
            return name
    if object_at(root, "trace") is not None and array_at(
        object_at(root, "trace") or root, "observations"
    ):
        return "langfuse_otel_trace"
    history = array_at(root, "history")
    if history and text_at(history[0], "agent") is not None:
        return "swe_agent_traj"
    return "otel_genai" if _is_span(root) else None


def line_format_by_members(record: dict[str, Any]) -> str | None:
    """Name of the tool that wrote a JSON line; None when its members do not tell."""
    kind = record.get("type")
    if "source" in record and "timestamp" in record:
        if isinstance(record.get("kind"), str):
            return "openhands_events"
        if isinstance(record.get("action") or record.get("observation"), str):
            return "openhands_events"
    if is_given(record, "projectHash") or (kind == "gemini" and "content" in record):
        return "gemini_cli"
    message = record.get("message")
    if kind == "session" and "cwd" in record:
        return "pi_session"
    if kind == "message" and isinstance(message, dict) and "role" in message:
        return "pi_session"
    attributes = record.get("attributes")
    if is_given(record, "resourceSpans") or (
        isinstance(attributes, dict) and _names_genai(attributes)
    ):
        return "otel_genai"
    return None


def _format_of_list(root: Node) -> str | None:
    head = list(root)[:_LOOKED_AT]
    if any(_is_span(node) for node in head):
        return "otel_genai"
    users = [node for node in head if text_at(node, "role") == "user"]
    texts = [_text_of(node) for node in users]
    if any(text.lstrip().startswith("<returncode>") for text in texts):
        return "mini_swe_agent"
    said = [_text_of(node) for node in head if text_at(node, "role") == "assistant"]
    if any(_MINI_MARKS[1] in text for text in said):
        return "mini_swe_agent"
    stamped = head and all(first_given(node, "ts") is not None for node in head)
    if users and (stamped or all(mark in texts[0] for mark in _CLINE_MARKS)):
        return "cline_history"
    return None


def _text_of(message: Node) -> str:
    content = message.get("content")
    if content is None:
        return ""
    if content.kind is NodeKind.ARRAY:
        return "\n".join(text_at(part, "text") or "" for part in content)
    return content.text() or ""


def _is_span(node: Node) -> bool:
    attributes = first_given(node, "attributes")
    if attributes is None:
        return False
    if attributes.kind is NodeKind.OBJECT:
        return _names_genai(dict.fromkeys(key for key, _ in attributes.items()))
    return _names_genai(dict.fromkeys(text_at(entry, "key") or "" for entry in attributes))


def _names_genai(names: dict[str, Any]) -> bool:
    return any(name.startswith(("gen_ai.", "llm.input_messages.")) for name in names)
