"""Server-sent events, as recorded text."""

from __future__ import annotations

from collections.abc import Iterator


def is_event_stream(text: str) -> bool:
    """Whether a recorded response body is a stream of events rather than JSON."""
    head = text[:200].lstrip()
    return head.startswith(("data:", "event:", ":"))


def event_data(text: str) -> Iterator[str]:
    """The data of each event; lines of one event are joined as the format says, comments and `[DONE]` skipped."""
    data: list[str] = []
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield from _complete(data)
            data = []
    yield from _complete(data)


def _complete(data: list[str]) -> Iterator[str]:
    text = "\n".join(data)
    if text and text != "[DONE]":
        yield text
