"""`manage.py replay`: one line for each engine, model and budget, whatever the transcript; a clear word where it cannot."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from ctxengine.service.replay.engines import LAB_ENGINES
from tests.cast import Runtime

FIXED = {"engine", "model", "cost", "cached_ratio", "peak_tokens", "compactions", "fidelity"}


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    """A conversation with tools in OpenAI's form."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You look things up."}]
    for turn in range(6):
        call = {
            "id": f"c{turn}",
            "type": "function",
            "function": {"name": "read", "arguments": json.dumps({"path": f"/srv/app/p{turn}.py"})},
        }
        messages += [
            {"role": "user", "content": f"What is in /srv/app/p{turn}.py?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": f"limit = {turn}4242\n" * 400},
            {"role": "assistant", "content": f"/srv/app/p{turn}.py sets the limit to {turn}4242."},
        ]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"model": "gpt-5.4", "messages": messages}))
    return path


def replayed(*words: str, **options: Any) -> list[dict[str, Any]]:
    out = StringIO()
    call_command("replay", *words, stdout=out, stderr=StringIO(), json=True, **options)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_every_engine_on_every_model_gives_one_line_with_the_fixed_fields(transcript: Path) -> None:
    lines = replayed(
        str(transcript),
        engine=",".join(LAB_ENGINES),
        model="claude-sonnet-4-6,openai/gpt-5.4",
        budget="32000",
    )
    assert len(lines) == 2 * len(LAB_ENGINES)
    assert {(line["engine"], line["model"]) for line in lines} == {
        (engine, model) for engine in LAB_ENGINES for model in ("claude-sonnet-4-6", "gpt-5.4")
    }
    for line in lines:
        assert line.keys() >= FIXED
        assert line["steps"] == 12 and line["refused"] == 0
        assert 0 <= line["cached_ratio"] < 1 and 0 <= line["fidelity"] <= 1
        assert line["read"] + line["written"] <= line["input_tokens"]


def test_the_same_replay_gives_the_same_figures(transcript: Path) -> None:
    def figures() -> list[dict[str, Any]]:
        lines = replayed(str(transcript), engine="suffix,working_set", model="gpt-5.4")
        return [{k: v for k, v in line.items() if k != "seconds"} for line in lines]

    assert figures() == figures()


def test_a_long_pause_is_worth_an_hour_of_life(transcript: Path) -> None:
    (short,) = replayed(str(transcript), model="claude-sonnet-4-6", gap=900.0)
    (long,) = replayed(str(transcript), model="claude-sonnet-4-6", gap=900.0, ttl="1h")
    assert short["clocks"] == {"what if": 1}
    assert long["cached_ratio"] > short["cached_ratio"]


def test_a_folder_is_summed_up_and_each_conversation_can_be_told(transcript: Path) -> None:
    (transcript.parent / "second.json").write_text(transcript.read_text())
    (transcript.parent / "notes.txt").write_text("no transcript")
    lines = replayed(str(transcript.parent), model="gpt-5.4", each=True, processes=1)
    assert [line.get("transcript") is None for line in lines] == [False, False, True]
    assert lines[-1]["sessions"] == 2
    assert lines[-1]["input_tokens"] == sum(line["input_tokens"] for line in lines[:-1])


@pytest.mark.django_db
def test_a_session_is_replayed_by_its_id() -> None:
    runtime = Runtime()
    runtime.turn("Hello?", "Hello.")
    slug = _slug(runtime)
    (line,) = replayed(str(runtime.session), model=runtime.model, tenant=slug)
    assert (line["steps"], line["engine"]) == (1, "suffix")


def _slug(runtime: Runtime) -> str:
    from ctxengine.ledger.models import Tenant

    return Tenant.objects.get(id=runtime.actor.tenant_id).slug


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"engine": "tarot"}, "it knows suffix"),
        ({"model": "kimi"}, "PROVIDER/NAME"),
        ({"budget": "few"}, "whole numbers"),
        ({"budget": "5"}, "greater than or equal"),
        ({"gap": -1.0}, "greater than or equal"),
    ],
)
def test_what_cannot_be_replayed_is_told_in_a_line(
    transcript: Path, options: dict[str, Any], word: str
) -> None:
    with pytest.raises(CommandError, match=word):
        replayed(str(transcript), **{"model": "gpt-5.4", **options})


@pytest.mark.django_db
def test_a_session_s_own_window_holds_for_engines_and_peers_alike() -> None:
    runtime = Runtime(window=48_000)
    runtime.turn("Hello?", "Hello.")
    lines = replayed(
        str(runtime.session),
        engine=",".join(LAB_ENGINES),
        model=f"{runtime.row.provider}/{runtime.row.model},openai/gpt-5.4",
        tenant=_slug(runtime),
    )
    assert {line["window"] for line in lines if line["model"] == runtime.row.model} == {48_000}
    (others,) = {line["window"] for line in lines if line["model"] == "gpt-5.4"}
    assert others != 48_000


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("engine", ["suffix", "working_set", "sliding_window"])
def test_a_cell_without_room_says_why_and_a_replay_of_nothing_fails(
    transcript: Path, engine: str, as_json: bool
) -> None:
    big = json.loads(transcript.read_text())
    big["messages"][0]["content"] = "You look things up. " * 2_000
    transcript.write_text(json.dumps(big))
    out = StringIO()
    asked = {"engine": engine, "model": "gpt-5.4", "budget": "6000", "json": as_json}
    with pytest.raises(CommandError, match="Nothing could be replayed"):
        call_command("replay", str(transcript), stdout=out, stderr=StringIO(), **asked)
    if as_json:
        (line,) = map(json.loads, out.getvalue().splitlines())
        assert line["skipped"] and line["steps"] == 0
    else:
        assert "not replayed." in out.getvalue() and "100.0%" not in out.getvalue()
    lines = replayed(str(transcript), engine=engine, model="gpt-5.4", budget="6000,200000")
    assert [bool(line["skipped"]) for line in lines] == [True, False]


def test_what_is_no_transcript_is_told_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no file, folder or session"):
        replayed(str(tmp_path / "nothing"), model="gpt-5.4")
    (tmp_path / "notes.txt").write_text("no transcript")
    with pytest.raises(CommandError, match="No transcript was replayed"):
        replayed(str(tmp_path / "notes.txt"), model="gpt-5.4")
