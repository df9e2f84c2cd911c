"""Predicted cache reads equal those of the strict provider over real and made conversations, on each API and cache.

`bench/prediction.py` measures the whole corpus; this takes a sample of it, and sessions made for what the corpus lacks.
"""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from bench.prediction import NO_CORPUS, exit_code, main
from bench.replaying import TARGETS, Clock, Compared, Replaying, on_clock, replay, tools_of
from ctxengine.engine.importers.registry import NotATranscript, read
from ctxengine.providers.strict_local.script import Reply, ScriptedCall
from ctxengine.service.specs import Content, PolicySpec, ServiceError
from tests.cast import TOOLS, new_actor

pytestmark = pytest.mark.django_db

_SAMPLED = 6
_STEPS = 5
_LONG = "Word by word. " * 500
_GAPS = (2.0, 40.0, 9.0, 400.0, 5.0, 2_100.0)


def made(
    provider: str, model: str, policy: PolicySpec | None = None, **extra: object
) -> list[Compared]:
    """A session with parallel calls, pictureless runs, long gaps and pressure on its budget."""
    clock = Clock()
    with on_clock(clock):
        driver = Replaying(
            new_actor(),
            provider,
            model,
            name="made",
            instructions=_LONG,
            tools=TOOLS,
            policy=policy,
            clock=clock,
            extra=dict(extra),
        )
        for turn in range(5):
            driver.ask(Content(raw=f"Question {turn}, with some words of its own."))
            many = 1 + turn * 3
            driver.answer(Reply(calls=tuple(ScriptedCall("read", "{}") for _ in range(many))))
            for _ in range(many):
                driver.result(0, Content(raw=f"Found in turn {turn}. " * 60))
            clock.advance(_GAPS[turn % len(_GAPS)])
            driver.answer(Reply(text=f"Answer {turn}.", plain=True))
            clock.advance(_GAPS[(turn + 3) % len(_GAPS)])
    return driver.compared


@pytest.mark.parametrize(("provider", "model"), TARGETS)
def test_a_made_session_is_predicted_to_the_last_step(provider: str, model: str) -> None:
    steps = made(provider, model)
    assert [step for step in steps if not step.equal] == []
    assert {step.verdict["class"] for step in steps} == {"agrees"}
    assert any(step.reported for step in steps)


@pytest.mark.parametrize(
    ("provider", "model", "extra"),
    [
        ("anthropic", "claude-sonnet-4-6", {"thinking": {"type": "adaptive"}}),
        ("openai-responses", "gpt-5.6-terra", {"reasoning": {"effort": "medium"}}),
    ],
)
def test_a_session_that_reasons_is_predicted_too(
    provider: str, model: str, extra: dict[str, object]
) -> None:
    steps = made(provider, model, **extra)
    assert [step for step in steps if not step.equal] == []
    # Reasoning, or what stood still behind it for the run's sake, leaves with its run: one announced re-cache.
    assert any(step.cause == "run_boundary" for step in steps)


def test_a_run_of_many_reasoning_steps_ends_where_it_began() -> None:
    clock = Clock()
    with on_clock(clock):
        driver = Replaying(
            new_actor(), "openai-responses", "gpt-5.4", name="long", instructions=_LONG, tools=TOOLS,
            clock=clock, extra={"reasoning": {"effort": "medium"}},
        )  # fmt: skip
        driver.ask(Content(raw="Something first. " * 200))
        driver.answer(Reply(text="Yes.", plain=True))
        driver.ask(Content(raw="Compare all of these."))
        for step in range(14):
            driver.answer(Reply(calls=(ScriptedCall("read", "{}"),), thinking="Hm. " * 20))
            driver.result(0, Content(raw=f"Found in step {step}. " * 30))
        driver.answer(Reply(text="Compared.", plain=True))
        driver.ask(Content(raw="And the next question."))
        driver.answer(Reply(text="Yes.", plain=True))
    assert [step for step in driver.compared if not step.equal] == []
    assert driver.compared[-1].cause == "run_boundary"
    assert driver.compared[-1].verdict["class"] == "agrees"


_FORGOTTEN = pytest.mark.xfail(
    reason="A place just over the minimum, never counted by the provider itself, is forgotten at a run's boundary.",
    strict=True,
)
"""Two steps of the sample; the whole corpus is predicted at 99.64 % (`python -m bench.prediction`)."""


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("provider", "model"),
    [
        pytest.param(
            *target, marks=_FORGOTTEN if target == ("openai-responses", "gpt-5.6-terra") else ()
        )
        for target in TARGETS
    ],
)
def test_a_sample_of_the_corpus_is_predicted(
    provider: str, model: str, corpus_folder: Path
) -> None:
    steps: list[Compared] = []
    for path in _sample(corpus_folder, f"{provider}{model}"):
        try:
            sessions = read(path.read_text(encoding="utf-8", errors="replace"), name=path.name)
        except NotATranscript:
            continue
        foreign = max(sessions.sessions, key=lambda one: len(one.entries))
        clock = Clock()
        with on_clock(clock):
            try:
                driver = Replaying(
                    new_actor(),
                    provider,
                    model,
                    name=path.name,
                    instructions=foreign.instructions,
                    tools=tools_of(foreign),
                    clock=clock,
                )
            except ServiceError:
                continue
            for number, _ in enumerate(replay(foreign, driver, most_steps=_STEPS)):
                clock.advance(_GAPS[number % len(_GAPS)])
        steps += driver.compared
    assert steps
    # A sample is too small for a share: every difference must be the one kind that no estimate can avoid.
    assert [step for step in steps if not (step.equal or step.at_the_minimum)] == []
    assert sum(step.equal for step in steps) >= 0.9 * len(steps)


def compared(*reads: tuple[int, int]) -> list[Compared]:
    """Steps with these expected and reported reads."""
    return [
        Compared("s", number, expected, reported, 1, "", "", {"class": "agrees"})
        for number, (expected, reported) in enumerate(reads)
    ]


@pytest.mark.parametrize(
    ("wrong", "of", "code"), [(0, 100, 0), (1, 100, 0), (2, 100, 1), (1, 99, 1), (0, 0, 1)]
)
def test_the_benchmark_fails_below_its_threshold_on_any_target(
    wrong: int, of: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = compared(*[(500, 400)] * wrong, *[(500, 500)] * (of - wrong))
    assert exit_code({"one": compared((5, 5)), "two": steps}) == code
    assert ("two" in capsys.readouterr().out) == bool(code)


def test_the_benchmark_fails_where_nothing_was_measured(tmp_path: Path) -> None:
    assert exit_code({}) == 1
    assert main(["--corpus", str(tmp_path / "none")]) == NO_CORPUS != 0


def _sample(folder: Path, seed: str) -> list[Path]:
    """A few small files, another choice for each target, the same in every run."""
    files = [p for p in folder.rglob("*") if p.is_file() and p.stat().st_size < 200_000]
    files.sort(key=lambda path: zlib.crc32(f"{seed}{path.name}".encode()))
    return files[:_SAMPLED]
