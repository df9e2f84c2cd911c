"""Real turns teach their model's profile, tighten it only, and have it probed again when it is idle (capacity spec 1)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from ctxengine.engine.capacity.profile import CapacityProfile, Horizon, Provenance
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.models import CapacityRow, Job, JobState
from ctxengine.service.clock import utc_now
from ctxengine.service.end_run import end_run
from ctxengine.service.probe.job import KIND, step_aside
from ctxengine.service.probe.profiles import keep_profile
from ctxengine.service.probe.when_idle import probe_when_idle
from ctxengine.service.revoke_tool import revoke_tool
from ctxengine.service.specs import EndRun, ToolSpec
from tests.cast import AT, TOOLS, Call, Runtime, answer, tool

pytestmark = pytest.mark.django_db

MODEL = "strict-local-model"


def opened(engine: str = "working_set", **fields: Any) -> Runtime:
    return Runtime(
        provider="openai", model=MODEL, window=64_000, extra={"engine": engine}, **fields
    )


def reported(
    runtime: Runtime, prompt: int, *, cached: int = 0, calls: tuple[Call, ...] = (), **more: Any
) -> None:
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    runtime.hear(
        answer("openai", "" if calls else "Done.", calls), usage_raw=json.dumps(usage), **more
    )


def turn(runtime: Runtime, prompt: int, **report: Any) -> None:
    runtime.ask("Do it.")
    runtime.assemble()
    reported(runtime, prompt, **report)


def rows(runtime: Runtime) -> list[CapacityRow]:
    return list(
        CapacityRow.objects.filter(tenant_id=runtime.actor.tenant_id).order_by("created_at")
    )


def profile(runtime: Runtime) -> CapacityProfile:
    return CapacityProfile.model_validate(rows(runtime)[-1].profile)


def probed(runtime: Runtime, horizon: int, *, at: str = "") -> None:
    keep_profile(
        tenant_id=runtime.actor.tenant_id,
        profile=CapacityProfile(
            provider="openai",
            model=MODEL,
            declared_window=64_000,
            horizon=Horizon(tokens=horizon, confidence=0.9, confirmed_at=AT.isoformat()),
            provenance=Provenance(source="probe", probed_at=at or utc_now().isoformat()),
        ),
    )


def test_a_turn_moves_the_ratio_by_all_billed_tokens_over_all_characters() -> None:
    runtime = opened()
    turn(runtime, 1_000, cached=900)
    (request,) = runtime.requests
    assert request.body_chars > 0
    ratio = profile(runtime).tokens_per_char_millionths
    assert ratio == round(1_000 * 1_000_000 / request.body_chars)
    turn(runtime, 1_000)
    assert len(rows(runtime)) == 1
    assert profile(runtime).tokens_per_char_millionths != ratio


def test_speed_is_learnt_on_turns_that_missed_the_cache_alone() -> None:
    runtime = opened()
    turn(runtime, 2_000, cached=1_500, first_token_ms=10)
    assert profile(runtime).prefill_tokens_per_s is None
    turn(runtime, 2_000, first_token_ms=500)
    assert profile(runtime).prefill_tokens_per_s == 4_000.0


def test_other_engines_and_odd_reports_teach_nothing() -> None:
    plain = opened("suffix")
    turn(plain, 1_000)
    assert rows(plain) == []
    odd = opened()
    turn(odd, 9_000_000)
    assert rows(odd) == []


def judged(runtime: Runtime, guard: str = "freshness-check", verdict: str = "repair") -> None:
    """A guard stops the newest response of the run."""
    response = runtime.events(EventType.RESPONSE_COMPLETED)[-1].sequence
    told = {
        "guard": guard,
        "verdict": verdict,
        "strike": 1,
        "next": "redo",
        "response": response,
        "evidence": {},
    }
    draft = EventDraft(EventType.GUARD_JUDGED, Trust.PLATFORM, told, run=str(runtime.run))
    runtime.log.append([draft], expected=None, at=utc_now())


def stopped(runtime: Runtime, prompt: int, **judgement: Any) -> None:
    """A turn whose only response a guard stopped."""
    runtime.ask("What is it now?")
    runtime.assemble()
    reported(runtime, prompt, calls=(Call("c1", "read"),))
    judged(runtime, **judgement)
    end_run(actor=runtime.actor, run_id=runtime.run, spec=EndRun(outcome="failed"))


def test_a_failed_instruction_near_the_horizon_lowers_it_and_asks_for_a_probe() -> None:
    runtime = opened()
    probed(runtime, 10_000)
    stopped(runtime, 9_000)
    found = profile(runtime)
    assert (found.horizon.tokens, found.horizon.confidence) == (9_000, 0.6)
    assert found.provenance.probed_at == ""
    assert [row.source for row in rows(runtime)] == ["probe", "feedback"]


@pytest.mark.parametrize(
    ("prompt", "judgement"),
    [
        (7_000, {}),
        (9_000, {"verdict": "passed"}),
        (9_000, {"guard": "repeated-card"}),
    ],
)
def test_nothing_else_lowers_it(prompt: int, judgement: dict[str, str]) -> None:
    runtime = opened()
    probed(runtime, 10_000)
    stopped(runtime, prompt, **judgement)
    assert profile(runtime).horizon.tokens == 10_000


def tried(runtime: Runtime, *calls: Call, prompt: int = 9_000, **report: Any) -> str:
    """One step whose calls the platform refuses; gives what follows."""
    runtime.assemble()
    usage = {"prompt_tokens": prompt, "completion_tokens": 5}
    said = answer("openai", "", calls, **report)
    return runtime.hear(said, usage_raw=json.dumps(usage)).next


METRIC = ToolSpec(
    name="emit_metric",
    description="Shows a figure.",
    input_schema_raw='{"type":"object","properties":{"value":{"type":"number"}},"required":["value"]}',
    presentation="metric",
)
AGAIN: dict[str, tuple[Call, Call]] = {
    "arguments cut off": (Call("a", "read", '{"n": 1'), Call("b", "read", '{"m"')),
    "no tool": (Call("a", "nowhere"), Call("b", "elsewhere")),
    "no card": (Call("a", "emit_metric"), Call("b", "emit_metric", '{"value":"x"}')),
    "listed tool": (
        Call("a", "tool_call", '{"name":"notes","arguments":{}}'),
        Call("b", "tool_call", '{"name":"notes","arguments":{"text":1}}'),
    ),
    "revoked tool": (Call("a", "gone"), Call("b", "gone")),
}
NOTES = ToolSpec(
    name="notes",
    description="Takes a note.",
    input_schema_raw='{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}',
    deferred=True,
)


def refusing_runtime() -> Runtime:
    runtime = opened(tools=(*TOOLS, METRIC, NOTES, tool("gone")))
    revoke_tool(actor=runtime.actor, session_id=runtime.session, name="gone", note="no")
    probed(runtime, 10_000)
    runtime.ask("Do it.")
    return runtime


def ended(runtime: Runtime) -> int:
    """The horizon after the run."""
    end_run(actor=runtime.actor, run_id=runtime.run, spec=EndRun(outcome="failed"))
    return profile(runtime).horizon.tokens


@pytest.mark.parametrize("kind", AGAIN)
def test_what_was_refused_and_is_done_again_is_a_failed_instruction(kind: str) -> None:
    runtime = refusing_runtime()
    for call in AGAIN[kind]:
        assert tried(runtime, call) == "redo"
    assert len(runtime.events(EventType.CALL_REFUSED)) == 2
    assert ended(runtime) == 9_000


@pytest.mark.parametrize("kind", AGAIN)
def test_the_first_refusal_is_a_mistake_and_so_are_two_of_one_answer(kind: str) -> None:
    runtime = refusing_runtime()
    assert tried(runtime, *AGAIN[kind]) == "redo"
    assert len(runtime.events(EventType.CALL_REFUSED)) == 2
    assert ended(runtime) == 10_000


@pytest.mark.parametrize("kind", AGAIN)
def test_a_refusal_of_an_earlier_run_is_no_instruction_of_this_one(kind: str) -> None:
    runtime = refusing_runtime()
    for number, call in enumerate(AGAIN[kind]):
        if number:
            end_run(actor=runtime.actor, run_id=runtime.run, spec=EndRun(outcome="failed"))
            runtime.ask("Do it again.")
        tried(runtime, call)
    assert ended(runtime) == 10_000


def test_refusals_of_different_kinds_are_mistakes() -> None:
    runtime = refusing_runtime()
    for first, _ in AGAIN.values():
        tried(runtime, first)
    assert ended(runtime) == 10_000


def test_a_failure_far_from_the_horizon_teaches_nothing() -> None:
    runtime = refusing_runtime()
    for call in AGAIN["no tool"]:
        tried(runtime, call, prompt=7_000)
    assert ended(runtime) == 10_000


def test_an_answer_that_was_cut_off_failed_nothing() -> None:
    runtime = refusing_runtime()
    tried(runtime, Call("a", "read", '{"n": 1'))
    tried(runtime, Call("b", "read", '{"m"'), stop="length")
    assert ended(runtime) == 10_000


def test_a_fence_that_is_refused_twice_was_never_told() -> None:
    runtime = refusing_runtime()
    for _ in range(2):
        runtime.assemble()
        fence = "```card metric\n{}\n```"
        usage = json.dumps({"prompt_tokens": 9_000, "completion_tokens": 5})
        call = (Call("c", "find_tools", '{"query":"notes"}'),)
        runtime.hear(answer("openai", fence, call), usage_raw=usage)
    assert len(runtime.events(EventType.CALL_REFUSED)) == 2
    assert ended(runtime) == 10_000


def test_a_second_empty_step_failed_the_nudge_before_it() -> None:
    runtime = opened()
    probed(runtime, 10_000)
    runtime.ask("Do it.")
    assert tried(runtime, prompt=7_000) == "redo"
    assert tried(runtime, prompt=9_500) == "finish"
    assert profile(runtime).horizon.tokens == 9_500


def test_nothing_raises_it() -> None:
    runtime = opened()
    probed(runtime, 10_000)
    turn(runtime, 12_000)
    stopped(runtime, 13_000)
    assert profile(runtime).horizon.tokens == 10_000


def test_what_a_run_taught_holds_from_the_next_run_on() -> None:
    runtime = opened()
    probed(runtime, 10_000)
    stopped(runtime, 9_000)
    runtime.ask("Again.")
    horizons = [
        event.payload["profile"]["horizon"]
        for event in runtime.events(EventType.WORKING_SET_PLANNED)
    ]
    assert horizons == [10_000, 9_000]


@pytest.fixture
def local(settings: Any) -> None:
    settings.CTX_PROVIDER_URLS = {"openai": "http://127.0.0.1:9/v1"}


def jobs(runtime: Runtime) -> list[Job]:
    return list(
        Job.objects.filter(tenant_id=runtime.actor.tenant_id, kind=KIND).order_by("created_at")
    )


@pytest.mark.usefixtures("local")
def test_a_model_nobody_measured_is_probed_once_its_turn_has_ended() -> None:
    runtime = opened()
    runtime.ask("Do it.")
    runtime.assemble()
    assert jobs(runtime) == []
    reported(runtime, 900)
    (job,) = jobs(runtime)
    assert (job.subject, job.state) == (f"openai/{MODEL}", JobState.QUEUED)
    assert probe_when_idle(runtime.row) == job
    runtime.ask("And again.")
    (job,) = jobs(runtime)
    assert job.state == JobState.CANCELLED
    runtime.assemble()
    reported(runtime, 900)
    assert [job.state for job in jobs(runtime)] == [JobState.CANCELLED, JobState.QUEUED]


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize(("age", "due"), [(timedelta(hours=1), False), (timedelta(hours=25), True)])
def test_a_fresh_profile_is_left_alone(age: timedelta, due: bool) -> None:
    runtime = opened()
    probed(runtime, 30_000, at=(utc_now() - age).isoformat())
    turn(runtime, 900)
    assert bool(jobs(runtime)) is due


@pytest.mark.usefixtures("local")
def test_a_lowered_horizon_is_probed_again() -> None:
    runtime = opened()
    probed(runtime, 10_000)
    stopped(runtime, 9_000)
    assert len(jobs(runtime)) == 1


@pytest.mark.usefixtures("local")
def test_a_probe_that_failed_is_not_asked_for_at_every_turn() -> None:
    runtime = opened()
    turn(runtime, 900)
    Job.objects.filter(tenant_id=runtime.actor.tenant_id).update(
        state=JobState.FAILED, finished_at=utc_now()
    )
    turn(runtime, 900)
    assert len(jobs(runtime)) == 1
    Job.objects.filter(tenant_id=runtime.actor.tenant_id).update(
        finished_at=utc_now() - timedelta(hours=2)
    )
    turn(runtime, 900)
    assert len(jobs(runtime)) == 2


@pytest.mark.usefixtures("local")
def test_a_model_that_another_run_uses_is_not_idle() -> None:
    runtime = opened()
    other = opened(actor=runtime.actor)
    other.ask("Busy.")
    turn(runtime, 900)
    assert jobs(runtime) == []


def test_a_hosted_model_is_probed_only_where_the_operator_agreed(settings: Any) -> None:
    runtime = opened()
    turn(runtime, 900)
    assert jobs(runtime) == []
    settings.CTX_PROBE_HOSTED = "full"
    turn(runtime, 900)
    assert len(jobs(runtime)) == 1
    step_aside(runtime.actor.tenant_id, "openai", MODEL)
