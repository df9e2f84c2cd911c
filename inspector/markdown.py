"""A recorded request as Markdown, for an issue or a chat: what its page explains, and its body in a fence it cannot close."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ctxengine.engine.manifest import Span
from inspector.figures import number, signed, size, told
from inspector.request_contexts import RequestFrame, RowLine
from inspector.visible import one_line, plain

_MARKS = re.compile(r"([\\`*_\[\]<>|#!~&])")
_LEADS = re.compile(r"(?<=[@#])(?=\w)|(?<=\bGH-)(?=\d)|(?<=:)(?=//)|(?<=\bwww)(?=\.)", re.I)
"""Inside of what a tracker makes a mention or a link of, escaped or not."""
_BREAK = "<!-- -->"
_LEAST_FENCE = 3


def markdown_of(
    frame: RequestFrame,
    *,
    rows: Sequence[RowLine],
    out: Iterable[tuple[Span, str]],
    body: str,
    note: str,
    masked: int,
) -> str:
    """The text.

    Args:
        frame: the request and what surrounds it, with recognised secrets masked.
        rows: the fifteen, their reasons masked as all that follows.
        out: what was left out, with what it lost to.
        body: as it was handed out, but masked; empty where `note` says why.
        note: why there is no body; empty where there is.
        masked: secrets that were masked in all of it.
    """
    made = frame.request
    parts = [
        f"## Request {made.label}",
        "\n".join(f"- {name}: {value}" for name, value in _facts(frame)),
        _table(
            ("#", "Row", "Tokens", "Cap", "Why"),
            [
                (
                    str(line.row.number),
                    line.row.title,
                    f"{line.source}{number(line.total.tokens)}",
                    number(line.cap),
                    "; ".join(line.words),
                )
                for line in rows
            ]
            + [("", "Sum", number(made.total_tokens), "", "")],
        ),
    ]
    lost = [
        f"- {span.from_item} to {span.to_item}, {number(span.tokens)} tokens: {text(words)}"
        for span, words in out
    ]
    parts += ["### Left out", "\n".join(lost) or "Nothing."]
    parts.append("### Body")
    if note:
        parts.append(text(note))
    if body:
        parts.append("As it was handed out, but for masked secrets.")
    secrets = f"{number(masked)} recognised" if masked else "none recognised"
    parts.append(f"Secrets masked in what this was made of: {secrets}.")
    if body:
        parts.append(fenced(body, "json"))
    return "\n\n".join(parts) + "\n"


def text(words: str) -> str:
    """Words that may hold anything, in one line, without a meaning in Markdown and naming nobody in a tracker."""
    unled = (_MARKS.sub(r"\\\1", piece) for piece in _LEADS.split(one_line(words)))
    return _BREAK.join(unled)


def code(words: str) -> str:
    """Words that may hold anything, as code in a line."""
    shown = one_line(words)
    fence = "`" * (_longest(shown) + 1)
    return f"{fence} {shown} {fence}" if "`" in shown else f"`{shown}`"


def fenced(block: str, language: str = "") -> str:
    """A block of code whose fence is longer than any row of backticks in it."""
    fence = "`" * max(_LEAST_FENCE, _longest(block) + 1)
    lines = "\n".join(plain(line) for line in block.split("\n"))
    return f"{fence}{language}\n{lines}\n{fence}"


def _facts(frame: RequestFrame) -> Iterable[tuple[str, str]]:
    made, usage = frame.request, frame.request.usage
    title = code(frame.session.title) if frame.session.title else "without title"
    yield "session", f"{title}, `{made.session_id}`"
    yield "request", f"`{made.id}`, {made.status}, built {made.created_at:%Y-%m-%d %H:%M:%S} UTC"
    yield "model", f"{code(f'{made.provider}/{made.model}')}, engine {made.engine}"
    yield "epoch", f"{made.epoch}, prefix `{made.prefix_sha256}`"
    yield "hash", f"`{made.request_sha256}`, {size(made.body_bytes)}"
    predicted = made.cache.predicted
    expected = (
        f"≈ {number(predicted.read)} read predicted" if predicted.reported else "not predicted"
    )
    reported = (
        f"reported {told(usage.read)} read, {told(usage.write)} written, {told(usage.fresh)} fresh,"
        f" {number(usage.prompt)} in all"
        if usage.reported
        else "not reported"
    )
    yield "cache", f"{expected}; {reported}"
    if frame.unattributed is not None:
        yield "billed less what the rows explain", signed(frame.unattributed)
    yield "history", text(frame.cut)
    for title, outcome, words, given in frame.ladder:
        if outcome == "ran":
            yield "yielded", f"{title}, {number(given)} tokens: {text(words)}"


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *([text(cell) for cell in line] for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _longest(block: str) -> int:
    return max(map(len, re.findall(r"`+", block)), default=0)
