"""Material that lies beside the repository: cases and transcripts. Absent material is a skip that says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FORMATS = (
    "openai_chat",
    "anthropic_messages",
    "openai_responses",
    "claude_code",
    "codex_rollout",
)
"""Formats whose every file must import."""


def case_input(folder: Path, number: str) -> Any:
    """The input of a development case, its shorthands written out."""
    path = folder / "dev_cases.jsonl"
    if not path.is_file():
        pytest.skip(f"cases: no {path.name} in the folder of cases")
    for line in path.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if case["id"].startswith(f"dev-{number}-"):
            return written_out(case["input"])
    pytest.skip(f"cases: dev-{number} is not in {path.name}")


def written_out(value: Any) -> Any:
    """`$repeat`, `$concat` and `$codepoints` as what they stand for."""
    if isinstance(value, list):
        return [written_out(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if "$repeat" in value:
        what, times = value["$repeat"]
        repeated: Any = written_out(what) * times
        return repeated
    if "$concat" in value:
        return "".join(written_out(part) for part in value["$concat"])
    if "$codepoints" in value:
        return "".join(chr(code) for code in value["$codepoints"])
    return {key: written_out(entry) for key, entry in value.items()}


def transcripts(folder: Path, format: str) -> list[Path]:
    """Files of one format, in name order."""
    return sorted(path for path in (folder / format).iterdir() if path.is_file())
