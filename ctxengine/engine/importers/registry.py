"""The one way in: any text, from its content to sessions, or a refusal that says why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from io import StringIO
from itertools import chain

from ctxengine.engine.importers import (
    bodies,
    claude_code,
    cline,
    codex_rollout,
    gemini_cli,
    inspect_ai,
    langfuse,
    openhands,
    otel_genai,
    pi_session,
    swe_agent,
    vcr_yaml,
)
from ctxengine.engine.importers.detect import (
    SAMPLE,
    describe,
    detect,
    format_of_document,
    format_of_lines,
    format_of_records,
    records_of,
    sample_of,
    values_of_lines,
)
from ctxengine.engine.importers.errors import NotATranscript
from ctxengine.engine.importers.report import all_repairs
from ctxengine.engine.importers.shelf import Shelf
from ctxengine.engine.importers.transcript import Transcript
from ctxengine.engine.importers.vcr_yaml import looks_like_cassette
from ctxengine.engine.lexeme import LexemeError, Node, parse

__all__ = ["FORMATS", "NotATranscript", "detect", "read"]

FORMATS = (
    "openai_chat",
    "anthropic_messages",
    "openai_responses",
    "claude_code",
    "codex_rollout",
    gemini_cli.FORMAT,
    "google_generate_content",
    "bedrock_converse",
    swe_agent.MINI_SWE_AGENT,
    swe_agent.SWE_AGENT,
    openhands.EVENTS,
    openhands.LLM_LOG,
    pi_session.FORMAT,
    inspect_ai.FORMAT,
    langfuse.FORMAT,
    vcr_yaml.FORMAT,
    otel_genai.FORMAT,
    cline.FORMAT,
)
"""Names of all formats that can be read."""

HEAD = 65_536
"""Characters that are looked at to tell lines from a document."""
LONGEST_HEAD = 16 * HEAD
"""Characters that are looked at where fewer lines than a sample are shorter than that."""

_SHELVING: dict[str, Callable[[Iterable[str], Shelf | None], Transcript]] = {
    "claude_code": claude_code.read_lines,
    "codex_rollout": codex_rollout.read_lines,
    pi_session.FORMAT: pi_session.read_lines,
}
"""Those whose long texts may lie on a shelf; bodies of the APIs, one message a line, are read so too."""
_LINES: dict[str, Callable[[Iterable[str]], Transcript]] = {
    gemini_cli.FORMAT: gemini_cli.read_lines,
    openhands.EVENTS: openhands.read_events,
    otel_genai.FORMAT: otel_genai.read_lines,
}

_DOCUMENTS: dict[str, Callable[[Node], Transcript]] = {
    codex_rollout.FORMAT: codex_rollout.read_document,
    gemini_cli.FORMAT: gemini_cli.read_document,
    swe_agent.MINI_SWE_AGENT: swe_agent.read_mini,
    swe_agent.SWE_AGENT: swe_agent.read_trajectory,
    openhands.LLM_LOG: openhands.read_log,
    inspect_ai.FORMAT: inspect_ai.read_document,
    langfuse.FORMAT: langfuse.read_document,
    otel_genai.FORMAT: otel_genai.read_document,
    cline.FORMAT: cline.read_document,
}


def read(source: str | Iterable[str], *, name: str, shelf: Shelf | None = None) -> Transcript:
    """Read a transcript.

    Args:
        source: The whole text, or its lines with their ends. Lines are consumed once; formats that are JSON lines are
            read from them one by one.
        name: What to call the file in a refusal; it never decides the format.
        shelf: Where long texts of formats that are JSON lines may lie; it must outlive the transcript.

    Raises:
        NotATranscript: the text is empty, binary, broken, or no transcript that is known; `reason` says which.
    """
    lines = _lines_of(source) if isinstance(source, str) else iter(source)
    taken = _take_head(lines)
    head = "".join(taken)
    if looks_like_cassette(head):
        text = source if isinstance(source, str) else _joined(taken, lines)
        return _checked(vcr_yaml.read_text(text.lstrip("\ufeff"), name=name), name)
    _refuse_unreadable(head, name)
    filled = sum(not line.isspace() for line in taken)
    values = values_of_lines(head.lstrip("\ufeff \t\r\n")) if filled > 1 else []
    if values:
        # The first line is a whole value and another follows: that one may be the broken end of a killed program.
        format_name = format_of_lines(values)
        if format_name is None:
            raise _unknown(f"{name} is JSON lines", sample=values[0])
        first = taken[0].lstrip("\ufeff")
        return _checked(_by_lines(format_name, chain([first], taken[1:], lines), shelf), name)
    text = source if isinstance(source, str) else _joined(taken, lines)
    return _checked(_read_document(text.lstrip("\ufeff"), name), name)


def _read_document(text: str, name: str) -> Transcript:
    root = _document(text, name)
    format_name = format_of_document(root)
    if format_name is not None:
        reader = _DOCUMENTS.get(format_name)
        try:
            return reader(root) if reader else bodies.read_document(root, format_name)
        except NotATranscript as refusal:
            raise NotATranscript(f"{name} looks like {format_name}: {refusal.reason}") from refusal
    format_name = format_of_records(root)
    if format_name is None:
        raise _unknown(f"{name} is valid JSON", sample=sample_of(root))
    return _by_lines(format_name, (record.raw for record in records_of(root)), None)


def _unknown(what: str, *, sample: object) -> NotATranscript:
    return NotATranscript(
        f"{what} but no known transcript: {describe(sample)}. Known formats: {', '.join(FORMATS)}."
    )


def _by_lines(format_name: str, lines: Iterable[str], shelf: Shelf | None) -> Transcript:
    reader = _LINES.get(format_name)
    if reader is not None:
        return reader(lines)
    shelving = _SHELVING.get(format_name)
    return shelving(lines, shelf) if shelving else bodies.read_lines(lines, format_name, shelf)


def _checked(transcript: Transcript, name: str) -> Transcript:
    if not any(session.entries for session in transcript.sessions):
        reported = all_repairs(transcript)
        first = f"; the first: {reported[0].where}, {reported[0].detail}" if reported else "."
        raise NotATranscript(
            f"{name} looks like {transcript.format} but holds no message that can be read "
            f"(set aside: {len(reported)}){first}"
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
            f"{name} is no transcript: it begins with {first!r}. Transcripts begin with a brace, a bracket or (for "
            "recorded cassettes) the word interactions."
        )


def _take_head(lines: Iterator[str]) -> list[str]:
    """Enough lines to judge by: two at least, where there are two, and more where the first ones are long."""
    taken: list[str] = []
    size = filled = 0
    for line in lines:
        taken.append(line)
        size += len(line)
        filled += not line.isspace()
        if filled > 1 and size >= (HEAD if filled >= SAMPLE else LONGEST_HEAD):
            break
    return taken


def _joined(taken: list[str], lines: Iterator[str]) -> str:
    """The lines that were taken and all others as one text."""
    another = next(lines, None)
    if another is None:
        return "".join(taken)
    # A list of all lines would be many times as long as what they say where they are short.
    text = StringIO(newline="\n")
    text.writelines(taken)
    text.write(another)
    text.writelines(lines)
    return text.getvalue()


def _lines_of(text: str) -> Iterator[str]:
    """Lines with their ends; only a line feed ends a line (JSON strings may hold other separators)."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end
