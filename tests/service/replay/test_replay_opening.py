"""A conversation that the assistant opens: every engine sends it, with a line of the platform in front (providers 2.1)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ctxengine.service.replay.many import Matrix, replay_file
from ctxengine.service.replay.models import lab_model
from ctxengine.service.replay.wanted import ReplaySettings

SAID = [
    ("system", "You sort post."),
    ("assistant", "Good morning. What is there to sort?"),
    ("user", "Three letters."),
    ("assistant", "Two are for you."),
    ("user", "And the third?"),
    ("assistant", "For the neighbour."),
]


@pytest.mark.parametrize("engine", ["suffix", "working_set", "boundary"])
@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-4-6", "openai/gpt-5.4"])
@pytest.mark.parametrize("first", [1, 3])
def test_no_engine_refuses_it(tmp_path: Path, engine: str, model: str, first: int) -> None:
    """The assistant's message stands alone before the user, or is all there is before the step."""
    said = [SAID[0], *SAID[1 : 2 + first], SAID[-1]]
    lines = [{"role": role, "content": text} for role, text in said]
    path = tmp_path / "post.json"
    path.write_text(json.dumps({"messages": lines}), encoding="utf-8")
    matrix = Matrix(
        (engine,), (lab_model(model),), (ReplaySettings(),), at=datetime(2026, 11, 29, tzinfo=UTC)
    )
    done = replay_file(path, matrix)
    assert not done.refused
    for _, (totals,) in done.sessions:
        assert totals.steps and not totals.refusals, totals.refusals
