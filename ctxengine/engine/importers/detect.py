"""Which format a file is in, judged by its content alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ctxengine.engine.importers.claude_notes import is_about_a_session
from ctxengine.engine.importers.codex_rollout import RECORD_TYPES as CODEX_TYPES
from ctxengine.engine.importers.exchanges import api_of, exchanges_of
from ctxengine.engine.importers.members import first_given
from ctxengine.engine.importers.message_marks import PLAIN, api_of_message, dicts, is_given, word
from ctxengine.engine.importers.tool_marks import format_by_members, line_format_by_members
from ctxengine.engine.importers.vcr_yaml import FORMAT as VCR_YAML
from ctxengine.engine.importers.vcr_yaml import looks_like_cassette
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse

SAMPLE = 50
"""Lines of a file that are looked at."""

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
    if values and "\n" in text.rstrip():
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
    values = (record.peek() for record in records)
    return [_line_format(value) if isinstance(value, dict) else None for value in values]


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
    """Values of the first lines that are JSON by themselves; nothing when the first line is not."""
    values: list[Any] = []
    for line in text.split("\n", SAMPLE + 1)[:SAMPLE]:
        if not line.strip():
            continue
        try:
            values.append(parse(line.strip()).peek())
        except LexemeError:
            if not values:
                return []
    return values


def format_of_lines(values: list[Any]) -> str | None:
    """Format of a file of JSON lines, from some of them."""
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
    """Format of a whole JSON document, judged by every message in it: many may be said before one tells its API."""
    named = format_by_members(root)
    if named is not None:
        return named
    if first_given(root, "exchanges") is not None:
        names = [name for name in map(api_of, exchanges_of(root)) if name is not None]
        counted = Counter(names)
        return max(counted, key=lambda n: (counted[n], n == names[-1]), default=None)
    if root.kind is NodeKind.ARRAY:
        # Records that a tool writes on lines are its own though they look like somebody's messages.
        return None if _are_records(root) else _format_of_values(root.peek())
    return _format_of_values([root.peek()]) if root.kind is NodeKind.OBJECT else None


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
    if is_given(record, "role"):
        # A message that somebody decorated stays a message: no tool's own record has a role beside its type.
        return None
    kind = word(record.get("type"))
    named = line_format_by_members(record)
    if named is not None:
        return named
    if kind in CODEX_TYPES and isinstance(record.get("payload"), dict):
        return "codex_rollout"
    if is_given(record, "record_type") or (not kind and record.keys() >= _BARE_CODEX_HEAD):
        return "codex_rollout" if _SAID.isdisjoint(record) else None
    if "parentUuid" in record or "leafUuid" in record or kind == "file-history-snapshot":
        return "claude_code"
    if kind in ("user", "assistant") and ("sessionId" in record or "session_id" in record):
        return "claude_code" if isinstance(record.get("message"), dict) else None
    return "claude_code" if is_about_a_session(record) else None


def _format_of_values(values: Iterable[Any]) -> str | None:
    votes: Counter[str] = Counter()
    for value in values:
        if isinstance(value, dict):
            votes.update(_evidence(value))
    strong = {name: n for name, n in votes.items() if n > 0 and name != PLAIN}
    if strong:
        return max(sorted(strong), key=lambda name: strong[name])
    return "openai_chat" if votes[PLAIN] else None


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
    is_one = isinstance(given, str) or (isinstance(given, dict) and api_of_message(given))
    if isinstance(given, list) or (is_one and is_given(value, "model")):
        return ["openai_responses"]
    if isinstance(value.get("output"), list) and is_given(value, "object"):
        return ["openai_responses"]
    vote = api_of_message(value)
    return [] if vote is None else [vote]


def _evidence_of_messages(body: dict[str, Any], messages: list[Any]) -> list[str]:
    votes = [
        vote
        for message in messages
        if isinstance(message, dict) and (vote := api_of_message(message)) is not None
    ]
    strong = [vote for vote in votes if vote != PLAIN]
    if not strong and is_given(body, "system"):
        return ["anthropic_messages"]
    if not strong and any("input_schema" in tool for tool in dicts(body.get("tools"))):
        return ["anthropic_messages"]
    return strong or votes


def _guess(text: str) -> str | None:
    """A document whose end is not known: the first telling words decide."""
    counted = {name: len(pattern.findall(text)) for name, pattern in _HINTS}
    best = max(counted, key=lambda name: counted[name])
    if counted[best]:
        return best
    if re.search(r'"(?:messages|traj|role)"\s*:', text):
        return "openai_chat"
    return None
