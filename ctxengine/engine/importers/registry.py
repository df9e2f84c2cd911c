"""The one way in: any text, from its content to sessions, or a refusal that says why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from ctxengine.engine.importers import bodies, claude_code, codex_rollout
from ctxengine.engine.importers.detect import (
    describe,
    detect,
    format_of_document,
    format_of_lines,
    sample_of,
    values_of_lines,
)
from ctxengine.engine.importers.errors import NotATranscript
from ctxengine.engine.importers.transcript import Transcript
from ctxengine.engine.lexeme import LexemeError, Node, parse

__all__ = ["FORMATS", "NotATranscript", "detect", "read"]

FORMATS = (
    "openai_chat",
    "anthropic_messages",
    "openai_responses",
    "claude_code",
    "codex_rollout",
)
"""Names of all formats that can be read."""

HEAD = 65_536
"""Characters that are looked at to tell lines from a document."""

_LINES: dict[str, Callable[[Iterable[str]], Transcript]] = {
    "claude_code": claude_code.read_lines,
    "codex_rollout": codex_rollout.read_lines,
}


def read(source: str | Iterable[str], *, name: str) -> Transcript:
    """Read a transcript.

    Args:
        source: The whole text, or its lines with their ends. Lines are consumed once; formats that are JSON lines are
            read from them one by one.
        name: What to call the file in a refusal; it never decides the format.

    Raises:
        NotATranscript: the text is empty, binary, broken, or no transcript that is known; `reason` says which.
    """
    lines = _lines_of(source) if isinstance(source, str) else iter(source)
    taken = _take_head(lines)
    head = "".join(taken)
    _refuse_unreadable(head, name)
    values = values_of_lines(head.lstrip("\ufeff \t\r\n")) if len(taken) > 1 else []
    if len(values) > 1:
        format_name = format_of_lines(values)
        if format_name is None:
            raise _unknown(f"{name} is JSON lines", sample=values[0])
        first = taken[0].lstrip("\ufeff")
        return _checked(_by_lines(format_name, chain([first], taken[1:], lines)), name)
    text = source if isinstance(source, str) else "".join(chain(taken, lines))
    return _checked(_read_document(text.lstrip("\ufeff"), name), name)


def _read_document(text: str, name: str) -> Transcript:
    root = _document(text, name)
    format_name = format_of_document(root)
    if format_name is not None:
        return bodies.read_document(root, format_name)
    format_name = format_of_lines([sample_of(root)])
    if format_name is None:
        raise _unknown(f"{name} is valid JSON", sample=sample_of(root))
    return _by_lines(format_name, [text])


def _unknown(what: str, *, sample: object) -> NotATranscript:
    return NotATranscript(
        f"{what} but no known transcript: {describe(sample)}. Known formats: {', '.join(FORMATS)}."
    )


def _by_lines(format_name: str, lines: Iterable[str]) -> Transcript:
    reader = _LINES.get(format_name)
    return reader(lines) if reader else bodies.read_lines(lines, format_name)


def _checked(transcript: Transcript, name: str) -> Transcript:
    if not any(session.entries for session in transcript.sessions):
        reported = sum(len(session.repairs) for session in transcript.sessions)
        raise NotATranscript(
            f"{name} looks like {transcript.format} but holds no message that can be read "
            f"({reported + len(transcript.repairs)} thing(s) were set aside)."
        )
    return transcript


def _document(text: str, name: str) -> Node:
    try:
        return parse(text)
    except LexemeError as error:
        hint = " The text breaks off; the file may be cut short." if _is_cut(text, error) else ""
        raise NotATranscript(f"{name} is no JSON and no JSON lines: {error}{hint}") from error


def _is_cut(text: str, error: LexemeError) -> bool:
    """Whether the reader ran out of text, rather than met something wrong in it."""
    return "Unterminated string" in str(error) or error.position >= len(text.rstrip()) - 1


def _refuse_unreadable(head: str, name: str) -> None:
    if not head.strip("\ufeff \t\r\n"):
        raise NotATranscript(f"{name} is empty.")
    if "\0" in head:
        raise NotATranscript(f"{name} is a binary file: it holds zero bytes.")
    first = head.lstrip("\ufeff \t\r\n")[:1]
    if first not in "{[":
        raise NotATranscript(
            f"{name} is no JSON: it begins with {first!r}. Transcripts begin with a brace or a bracket."
        )


def _take_head(lines: Iterator[str]) -> list[str]:
    """Enough lines to judge by: two at least, where there are two."""
    taken: list[str] = []
    size = filled = 0
    for line in lines:
        taken.append(line)
        size += len(line)
        filled += not line.isspace()
        if size >= HEAD and filled > 1:
            break
    return taken


def _lines_of(text: str) -> Iterator[str]:
    """Lines with their ends; only a line feed ends a line (JSON strings may hold other separators)."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end
