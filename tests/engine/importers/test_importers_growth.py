"""Files twice as long are twice the work, whatever they are made of."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ctxengine.engine.importers.registry import read
from tests.engine.importers.work import lines_run

Records = list[dict[str, Any]]

HEAD = {"sessionId": "s", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z"}


def said(key: str) -> dict[str, Any]:
    return {"id": key, "type": "user", "content": f"word {key}"}


def chat(size: int) -> Records:
    return [HEAD, *(said(f"r{n}") for n in range(size))]


def rewinds(size: int) -> Records:
    pairs = ([said(f"x{n}"), {"$rewindTo": f"x{n}"}] for n in range(size))
    return [*chat(size), *(record for pair in pairs for record in pair)]


def checkpoints(size: int) -> Records:
    news = ({"$set": {"messages": [said(f"x{n}"), said(f"r{n}")]}} for n in range(size))
    return [*chat(size), *news]


def spoken(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content}
    return {"type": kind, "message": message, "sessionId": "s", "parentUuid": None, **more}


def prompted(size: int) -> Records:
    calls = (
        {"type": "tool_use", "id": f"t{n}", "name": "Task", "input": {"prompt": f"look {n}"}}
        for n in range(size)
    )
    return [spoken("assistant", [call], uuid=f"a{n}") for n, call in enumerate(calls)]


def side_chains(size: int) -> Records:
    sides = (spoken("user", f"find {n}", uuid=f"s{n}", isSidechain=True) for n in range(size))
    return [*prompted(size), *sides]


def unknown_callers(size: int) -> Records:
    words = (spoken("user", "look", parent_tool_use_id=f"nobody{n}") for n in range(size))
    return [spoken("user", "Go.", uuid="u"), *words]


def long_fork(size: int) -> Records:
    chain = [spoken("user", f"{n}", uuid=f"f{n}", parentUuid=f"f{n - 1}") for n in range(size)]
    chain[0]["parentUuid"] = "u"
    return [
        spoken("user", "Go.", uuid="u"),
        *chain,
        spoken("user", "Other way.", uuid="v", parentUuid="u"),
    ]


def one_id(size: int) -> Records:
    call = {"functionCall": {"id": "same", "name": "look", "args": {}}}
    results = [{"functionResponse": {"name": "look", "response": {"output": "k"}}}] * size
    return [
        {"role": "user", "parts": [{"text": "Go."}]},
        {"role": "model", "parts": [call] * size},
        {"role": "user", "parts": results},
    ]


@pytest.mark.parametrize(
    ("made", "format_name"),
    [
        (rewinds, "gemini_cli"),
        (checkpoints, "gemini_cli"),
        (side_chains, "claude_code"),
        (unknown_callers, "claude_code"),
        (long_fork, "claude_code"),
        (one_id, "google_generate_content"),
    ],
)
def test_work_grows_as_the_file_does(made: Callable[[int], Records], format_name: str) -> None:
    def work(size: int) -> int:
        text = "".join(json.dumps(record) + "\n" for record in made(size))
        formats: list[str] = []
        lines = lines_run(lambda: formats.append(read(text, name="x").format))
        assert formats == [format_name]
        return lines

    assert work(400) < 2.5 * work(200)
