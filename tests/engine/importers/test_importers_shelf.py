"""A transcript whose texts lie on a shelf is the transcript that is held whole."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxengine.engine.importers.registry import NotATranscript, read
from ctxengine.engine.importers.shelf import LONG_CHARS, Shelved
from ctxengine.engine.importers.transcript import Transcript
from tests.corpus import transcripts


class Pile:
    """A shelf in memory."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def put(self, text: str) -> Shelved:
        place = len(self.texts)
        self.texts.append(text)
        return lambda: self.texts[place]


def seen(transcript: Transcript) -> list[Any]:
    """All that a transcript says."""
    return [
        (
            replace(session, entries=[]),
            [(replace(entry, text="", value=None), entry.body) for entry in session.entries],
        )
        for session in transcript.sessions
    ] + [transcript.repairs, transcript.items_in]


@pytest.mark.corpus
@pytest.mark.parametrize(
    "format", ["claude_code", "codex_rollout", "pi_session", "openai_chat", "anthropic_messages"]
)
def test_files_of_lines_are_the_same_from_a_shelf(corpus_folder: Path, format: str) -> None:
    used = 0
    for path in transcripts(corpus_folder, format):
        if path.suffix != ".jsonl":
            continue
        text, pile = path.read_text(encoding="utf-8", errors="surrogatepass"), Pile()
        lines = text.splitlines(keepends=True) if "\u2028" not in text else text
        try:
            whole = read(text, name=path.name)
        except NotATranscript:
            continue
        assert seen(read(lines, name=path.name, shelf=pile)) == seen(whole), path.name
        used += len(pile.texts)
    assert used or format in ("openai_chat", "anthropic_messages")


def test_of_a_chat_in_lines_only_what_is_short_is_held() -> None:
    long = "long " * LONG_CHARS
    said = [
        {"role": "user", "content": long},
        {"role": "assistant", "content": "short"},
        {"role": "user", "content": "\ud83d" + long},
        {"role": "assistant", "content": long},
    ]
    lines, pile = [json.dumps(message) + "\n" for message in said], Pile()
    transcript = read(lines, name="chat.jsonl", shelf=pile)
    entries = transcript.sessions[0].entries
    assert [isinstance(entry.text, str) for entry in entries] == [False, True, False, False]
    assert all(entry.value is None for entry in entries)
    assert seen(transcript) == seen(read(lines, name="chat.jsonl"))
