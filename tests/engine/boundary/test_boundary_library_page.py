"""`docs/library.md` shows what runs: its example holds a conversation, compacts, and goes on after a restart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ctxengine.engine.boundary.context import BoundaryContext
from ctxengine.providers.strict_local.server import StrictServer

PAGE = Path(__file__).resolve().parents[3] / "docs" / "library.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_example_compacts_and_goes_on_after_a_restart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict[str, object] = {"__name__": "example"}
    with StrictServer() as strict:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", strict.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "local")
        for part in parts:
            exec(compile(part, str(PAGE), "exec"), names)
        statuses = {entry.status for entry in strict.provider.log.entries()}
    told = capsys.readouterr().out.splitlines()
    assert len(parts) == 2 and statuses == {200}
    assert told[:2] == ["started native", "finished completed"]
    assert any(line.startswith("checkpoints that still hold: ") for line in told)
    later = names["later"]
    assert isinstance(later, BoundaryContext) and later.checkpoint is not None
    assert later.get_messages()[-1]["role"] == "assistant"


def test_every_public_name_of_the_context_is_told() -> None:
    public = {name for name in vars(BoundaryContext) if not name.startswith("_")}
    assert not {name for name in public if f"`{name}" not in TEXT and f" {name}" not in TEXT}
