"""Which format a file is in, judged by its content alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ctxengine.engine.importers.codex_rollout import RECORD_TYPES as CODEX_TYPES
from ctxengine.engine.importers.exchanges import api_of, exchanges_of
from ctxengine.engine.importers.members import format_by_members, line_format_by_members
from ctxengine.engine.importers.vcr_yaml import FORMAT as VCR_YAML
from ctxengine.engine.importers.vcr_yaml import looks_like_cassette
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

SAMPLE = 50
"""Values of a list or lines of a file that are looked at."""

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
_ROLES = frozenset(("user", "assistant", "system", "developer"))
"""Roles of more than one API: they tell that something is a message, not whose."""
_GOOGLE_ROLES = frozenset(("user", "model", "function"))
_BEDROCK_BLOCKS = frozenset(("text", "toolUse", "toolResult", "reasoningContent", "cachePoint"))
_BARE_CODEX_HEAD = frozenset(("id", "timestamp", "instructions"))
"""What the first line of Codex' first rollouts holds."""
_SAID = frozenset(("messages", "role", "input", "contents", "prompt", "content"))
"""Members that say something: whoever has one is no mere head or state of a session."""
_HINTS = (
    ("openai_responses", re.compile(r'"uri":\s*"[^"]*/responses|"function_call_output"')),
    ("anthropic_messages", re.compile(r'"uri":\s*"[^"]*/messages|"tool_use"|"tool_use_id"')),
    ("openai_chat", re.compile(r'"uri":\s*"[^"]*/chat/completions|"tool_calls"|"traj"')),
)
"""What tells a document whose beginning alone is known."""


def detect(head: str | bytes) -> str | None:
    """Name of the format a file is in, from (the beginning of) its content; None when it is none that is known."""
    if isinstance(head, bytes):
        if b"\0" in head:
            return None
        head = head.decode("utf-8", "replace")
    text = head.lstrip("\ufeff \t\r\n")
    if looks_like_cassette(text):
        return VCR_YAML
    if not text.startswith(("{", "[")):
        return None
    values = values_of_lines(text)
    if len(values) > 1:
        return format_of_lines(values)
    try:
        root = parse(text)
    except LexemeError:
        return _guess(text)
    return format_of_document(root) or format_of_records(root)


def format_of_records(root: Node) -> str | None:
    """Format of a document whose records stand on lines of their own elsewhere: one record, or a list of them."""
    votes = Counter(name for name in _record_votes(records_of(root)) if name)
    return votes.most_common(1)[0][0] if votes else None


def _record_votes(records: list[Node]) -> list[str | None]:
    samples = (sample_of(record, 3) for record in records[:SAMPLE])
    return [_line_format(sample) if isinstance(sample, dict) else None for sample in samples]


def _are_records(root: Node) -> bool:
    """Whether a list holds a tool's records: most of them say so, or the first one is the head of a rollout."""
    votes = _record_votes(list(root))
    named = [name for name in votes if name]
    return len(named) * 2 > len(votes) or votes[:1] == ["codex_rollout"]


def records_of(root: Node) -> list[Node]:
    """Records of a document: its elements, those of a page of results, or itself."""
    if root.kind is NodeKind.ARRAY:
        return list(root)
    page = root.get("items") if root.kind is NodeKind.OBJECT else None
    return list(page) if page is not None and page.kind is NodeKind.ARRAY else [root]


def values_of_lines(text: str) -> list[Any]:
    """Samples of the lines that are JSON by themselves; nothing when the first line is not."""
    values: list[Any] = []
    for line in text.split("\n", SAMPLE + 1)[:SAMPLE]:
        if not line.strip():
            continue
        try:
            values.append(sample_of(parse(line.strip())))
        except LexemeError:
            if not values:
                return []
    return values


def format_of_lines(values: list[Any]) -> str | None:
    """Format of a file of JSON lines, from samples of some of them."""
    votes = Counter(
        name for value in values if isinstance(value, dict) and (name := _line_format(value))
    )
    return votes.most_common(1)[0][0] if votes else _format_of_values(values)


def sample_of(node: Node, depth: int = 6) -> Any:
    """What a value looks like: arrays cut to their first elements, numbers and deep values as their text."""
    if node.kind is NodeKind.OBJECT and depth:
        return {key: sample_of(member, depth - 1) for key, member in node.items()}
    if node.kind is NodeKind.ARRAY and depth:
        return [sample_of(element, depth - 1) for element in list(node)[:SAMPLE]]
    if node.kind is NodeKind.STRING:
        return node.text()
    return None if node.kind is NodeKind.NULL else node.raw


def format_of_document(root: Node) -> str | None:
    """Format of a whole JSON document."""
    named = format_by_members(root)
    if named is not None:
        return named
    if root.get("exchanges") is not None:
        names = [name for name in map(api_of, exchanges_of(root)) if name is not None]
        counted = Counter(names)
        return max(counted, key=lambda n: (counted[n], n == names[-1]), default=None)
    if root.kind is NodeKind.ARRAY:
        # Records that a tool writes on lines are its own though they look like somebody's messages.
        return None if _are_records(root) else _format_of_values(sample_of(root))
    return _format_of_values([sample_of(root)]) if root.kind is NodeKind.OBJECT else None


def describe(sample: object) -> str:
    """What a JSON value is, for people, when it is no transcript."""
    if isinstance(sample, dict):
        keys = list(sample)
        shown = ", ".join(repr(key)[:40] for key in keys[:8]) + (", ..." if len(keys) > 8 else "")
        return f"top-level keys {shown}" if keys else "an empty object"
    if isinstance(sample, list):
        kinds = sorted({_KINDS.get(type(value), "a number or a word") for value in sample})
        first = f" (the first: {describe(sample[0])})" if kinds == ["objects"] else ""
        return f"a list of {', '.join(kinds)}{first}" if kinds else "an empty list"
    return f"a single value, {_KINDS.get(type(sample), 'a number or a word')}"


_KINDS = {dict: "objects", list: "lists", str: "texts or numbers", type(None): "nulls"}


def _line_format(record: dict[str, Any]) -> str | None:
    if "role" in record:
        # A message that somebody decorated stays a message: no tool's own record has a role beside its type.
        return None
    kind = _word(record.get("type"))
    named = line_format_by_members(record)
    if named is not None:
        return named
    if kind in CODEX_TYPES and isinstance(record.get("payload"), dict):
        return "codex_rollout"
    if "record_type" in record or (not kind and record.keys() >= _BARE_CODEX_HEAD):
        return "codex_rollout" if _SAID.isdisjoint(record) else None
    if "parentUuid" in record or "leafUuid" in record or kind == "file-history-snapshot":
        return "claude_code"
    if kind in ("user", "assistant") and ("sessionId" in record or "session_id" in record):
        return "claude_code" if isinstance(record.get("message"), dict) else None
    return None


def _format_of_values(values: Iterable[Any]) -> str | None:
    votes: Counter[str] = Counter()
    for value in values:
        if isinstance(value, dict):
            votes.update(_evidence(value))
    strong = {name: n for name, n in votes.items() if n > 0 and name != "plain"}
    if strong:
        return max(sorted(strong), key=lambda name: strong[name])
    return "openai_chat" if votes["plain"] else None


def _evidence(value: dict[str, Any]) -> list[str]:
    if isinstance(value.get("request"), dict) and value.get("response") is not None:
        return _evidence(value["request"]) or []
    if isinstance(value.get("contents"), list) or isinstance(value.get("candidates"), list):
        return ["google_generate_content"]
    for key in ("messages", "traj", "history"):
        if isinstance(value.get(key), list):
            return _evidence_of_messages(value, value[key])
    if isinstance(value.get("choices"), list):
        return ["openai_chat"]
    given = value.get("input")
    if isinstance(given, list | str) and ("model" in value or isinstance(given, list)):
        return ["openai_responses"]
    if isinstance(value.get("output"), list) and "object" in value:
        return ["openai_responses"]
    return _evidence_of_message(value)


def _evidence_of_messages(body: dict[str, Any], messages: list[Any]) -> list[str]:
    votes = [
        vote
        for message in messages[:SAMPLE]
        if isinstance(message, dict)
        for vote in _evidence_of_message(message)
    ]
    strong = [vote for vote in votes if vote != "plain"]
    if not strong and "system" in body:
        return ["anthropic_messages"]
    if not strong and any("input_schema" in tool for tool in _dicts(body.get("tools"))):
        return ["anthropic_messages"]
    return strong or votes


def _evidence_of_message(message: dict[str, Any]) -> list[str]:
    kind, role = _word(message.get("type")), _word(message.get("role"))
    if kind in _RESPONSES_ITEMS:
        return ["openai_responses"]
    if role in _GOOGLE_ROLES and _holds_google_parts(message):
        return ["google_generate_content"]
    if role in ("tool", "function") or "tool_calls" in message or "tool_call_id" in message:
        return ["openai_chat"]
    blocks = _dicts(message.get("content"))
    if any("type" not in block and _BEDROCK_BLOCKS & block.keys() for block in blocks):
        return ["bedrock_converse"]
    parts = {_word(part.get("type")) for part in blocks}
    if parts & _RESPONSES_PARTS:
        return ["openai_responses"]
    if parts & _ANTHROPIC_BLOCKS or (
        kind == "message" and role == "assistant" and "usage" in message
    ):
        return ["anthropic_messages"]
    if kind == "message" and role:
        return ["openai_responses"]
    return ["plain"] if role in _ROLES and "content" in message else []


def _holds_google_parts(message: dict[str, Any]) -> bool:
    """Parts that are told by their members: whoever names their types has another kind of part."""
    parts = message.get("parts")
    if not isinstance(parts, list) or "content" in message:
        return False
    return not any("type" in part for part in _dicts(parts))


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _dicts(values: Any) -> list[dict[str, Any]]:
    return [v for v in values if isinstance(v, dict)] if isinstance(values, list) else []


def _guess(text: str) -> str | None:
    """A document whose end is not known: the first telling words decide."""
    counted = {name: len(pattern.findall(text)) for name, pattern in _HINTS}
    best = max(counted, key=lambda name: counted[name])
    if counted[best]:
        return best
    if re.search(r'"(?:messages|traj|role)"\s*:', text):
        return "openai_chat"
    return None
