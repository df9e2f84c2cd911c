"""Gate: every code that a boundary compaction can fail with is brought about, told with its remedy, and changes nothing.

The provider's own codes come from the strict provider's rules: a gateway between it and the product meddles with what is sent.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.db import OperationalError

from ctxengine.engine.boundary.failures import FAILURE_OF
from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Job, SideCallRow
from ctxengine.providers.strict_local.script import Reply, ScriptedCall
from ctxengine.service.boundary import ask, install, job
from ctxengine.service.boundary.read import checkpoints_of
from ctxengine.service.clock import utc_now
from ctxengine.service.end_run import end_run
from ctxengine.service.jobs.cancel import cancel_job
from ctxengine.service.pin import set_presentation
from ctxengine.service.specs import Content, EndRun, Present, ServiceError, TakeInput
from ctxengine.service.summaries.ask import AnswerLater
from ctxengine.service.take_input import take_input
from tests.gates.test_boundary_strictness import LONG
from tests.service.boundary.staging import KIND, Body, Meddle, Stage, provided
from tests.service.boundary.talking import MODELS, send, unproven
from tests.work_off import work_off

pytestmark = [pytest.mark.gate, pytest.mark.django_db]

SONNET, GPT = MODELS["anthropic"], MODELS["openai-responses"]


@dataclass(frozen=True)
class Case:
    """How a code comes about."""

    act: Callable[[Stage], None]
    refused: bool = True
    """Whether the next request is refused with it; else it ends the operation, and the next request asks anew."""
    how: dict[str, Any] = field(default_factory=dict)
    """The kind of strict provider that it takes."""


def scripted(provider: str, reply: Reply, **policy: Any) -> Case:
    """The provider answers the compaction, or the request for a note, so."""

    def act(stage: Stage) -> None:
        stage.due(provider, **policy)
        stage.strict.provider.script.add([reply])
        stage.work_off()

    return Case(act)


def meddled(meddle: Meddle, *, again: bool = False) -> Case:
    """Something on the way changes what is to be compacted; the strict provider's rules find it."""

    def act(stage: Stage) -> None:
        stage.due_again() if again else stage.due("anthropic")
        stage.gateway.meddle = meddle
        stage.work_off()

    return Case(act)


def unserved(provider: str, *paths: str) -> Case:
    """The address serves a part of the provider's API only."""

    def act(stage: Stage) -> None:
        stage.due(provider)
        stage.work_off()

    return Case(act, how={"without": paths})


def window_of(body: Body) -> Body:
    """The compaction block that a body begins with."""
    block: Body = body["messages"][0]["content"][0]
    assert block["type"] == "compaction"
    return block


def second_block(body: Body) -> None:
    body["messages"][0]["content"].append(dict(window_of(body)))


def block_behind(body: Body) -> None:
    content = body["messages"][0]["content"]
    content.append(content.pop(0))
    if len(content) == 1:
        body["messages"].insert(0, {"role": "user", "content": "In front of it."})


def other_text(body: Body) -> None:
    window_of(body)["content"] += " And more."


def other_tools(body: Body) -> None:
    window_of(body)["tool_changes"] = [{"type": "tool_addition", "name": "rm"}]


def other_seal(body: Body) -> None:
    window_of(body)["signature"] = "c2lnbmVk"


def open_call(body: Body) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
    body["messages"].append({"role": "assistant", "content": [call]})


def nothing(body: Body) -> None:
    body["messages"] = []


def many_tools(body: Body) -> None:
    references = [{"type": "tool_reference", "tool_name": f"tool_{n}"} for n in range(101)]
    found = {"type": "tool_search_tool_search_result", "tool_references": references}
    block = {"type": "tool_search_tool_result", "tool_use_id": "s_1", "content": found}
    body["messages"].append({"role": "assistant", "content": [block]})


def keyless(stage: Stage) -> None:
    stage.settings.CTX_PROVIDER_KEYS = {}
    stage.due("anthropic")
    stage.before = stage.standing()


def keyless_worker(provider: str) -> Case:
    """Whoever enqueues has a key, and the worker has none."""

    def act(stage: Stage) -> None:
        stage.due(provider)
        keys = stage.settings.CTX_PROVIDER_KEYS
        with pytest.raises(AnswerLater):
            stage.runtime.assemble()
        stage.before = stage.standing()
        stage.settings.CTX_PROVIDER_KEYS = {}
        work_off(stage.runtime.actor.tenant_id, kind=KIND)
        stage.settings.CTX_PROVIDER_KEYS = keys

    return Case(act)


def much_larger(stage: Stage) -> None:
    stage.due("anthropic", turns=20)
    stage.work_off()


def too_much_required(stage: Stage) -> None:
    stage.due("anthropic", turns=0, archive_recovery=True)
    for number in range(9):
        rule = Content(raw=f"Never forget rule {number}. " + "It holds for ever and ever. " * 200)
        take_input(
            actor=stage.runtime.actor,
            run_id=stage.runtime.run,
            spec=TakeInput(message=rule, retain="reminder"),
        )
        end_run(
            actor=stage.runtime.actor, run_id=stage.runtime.run, spec=EndRun(outcome="completed")
        )
        stage.runtime.ask("And now?")
    stage.work_off()


def sealed_with_a_key_that_is_gone(stage: Stage) -> None:
    gone = Fernet(Fernet.generate_key())
    sealing = install.seal
    stage.patch.setattr(install, "seal", lambda text: gone.encrypt(text.encode()).decode())
    stage.due("anthropic")
    stage.work_off()
    stage.patch.setattr(install, "seal", sealing)
    stage.before = stage.standing()


def defect(stage: Stage) -> None:
    stage.due("anthropic")
    _breaks(stage, "make_window", ZeroDivisionError("prompt text"))


def database_away(stage: Stage) -> None:
    stage.due("anthropic")
    _breaks(stage, "install", OperationalError("gone"))


def _breaks(stage: Stage, name: str, error: Exception) -> None:
    def broken(*arguments: Any, **named: Any) -> Any:
        raise error

    stage.patch.setattr(job, name, broken)
    stage.work_off()


def fails_thrice(stage: Stage) -> None:
    stage.due("anthropic")
    for attempt in range(3):
        stage.strict.provider.script.add([Reply(status=529)])
        stage.work_off()
        later = utc_now() + timedelta(hours=attempt + 1)
        stage.patch.setattr(ask, "utc_now", lambda later=later: later)


def cancelled(stage: Stage) -> None:
    def cancel() -> None:
        row = Job.objects.get(kind=KIND, tenant_id=stage.runtime.actor.tenant_id)
        cancel_job(actor=stage.runtime.actor, job_id=row.id)

    _meanwhile(stage, cancel)


def superseded(stage: Stage) -> None:
    def leave_out() -> None:
        first = stage.runtime.events(EventType.USER_MESSAGE)[0].sequence
        spec = Present(target=f"{first}.0", form="excluded", scope="item")
        set_presentation(actor=stage.runtime.actor, session_id=stage.runtime.session, spec=spec)
        stage.before = stage.standing()

    _meanwhile(stage, leave_out)


def _meanwhile(stage: Stage, act: Callable[[], None]) -> None:
    """Something happens while the provider compacts."""
    real = job.make_window

    def made(*arguments: Any, **named: Any) -> Any:
        window = real(*arguments, **named)
        act()
        return window

    stage.patch.setattr(job, "make_window", made)
    stage.due("anthropic")
    stage.work_off()


CASES: dict[str, list[Case]] = {
    "missing_configuration": [Case(keyless)],
    "worker_unconfigured": [keyless_worker("anthropic"), keyless_worker("openai")],
    "redirected": [
        scripted("anthropic", Reply(status=301)),
        scripted("openai-responses", Reply(status=302)),
        scripted("openai", Reply(status=307)),
    ],
    "native_unsupported": [
        scripted("anthropic", Reply(status=405)),
        unserved("openai-responses", "/v1/responses/compact"),
    ],
    "count_unavailable": [
        unserved("anthropic", "/v1/messages/count_tokens"),
        unserved("openai-responses", "/v1/responses/input_tokens"),
    ],
    "native_input_oversized": [Case(much_larger)],
    "invalid_native_output": [
        scripted("anthropic", Reply(text="Noted.", broken="block")),
        scripted("openai-responses", Reply(broken="block")),
    ],
    "native_refused": [
        scripted("anthropic", Reply(refuse=True)),
        scripted("openai-responses", Reply(refuse=True)),
    ],
    "not_reducing": [
        scripted("anthropic", Reply(text=LONG)),
        scripted("openai", Reply(text=LONG)),
    ],
    "summary_empty": [scripted("openai", Reply(text="", plain=True))],
    "summary_output_limit": [scripted("openai", Reply(text=LONG, truncate_after_tokens=20))],
    "summary_tool_call": [scripted("openai", Reply(calls=(ScriptedCall("read"),)))],
    "summary_abnormal_stop": [scripted("openai", Reply(refuse=True))],
    "recovery_oversized": [Case(too_much_required)],
    "window_unreadable": [Case(sealed_with_a_key_that_is_gone)],
    "over_length": [
        replace(scripted("anthropic", Reply(text="Noted.")), how={"windows": {SONNET: 4_000}}),
        replace(scripted("openai-responses", Reply()), how={"windows": {GPT: 4_000}}),
    ],
    "rate_limited": [
        scripted("anthropic", Reply(status=429, retry_after=40)),
        scripted("openai-responses", Reply(status=429)),
        scripted("openai", Reply(status=429)),
    ],
    "transient": [
        scripted("anthropic", Reply(status=503)),
        scripted("openai-responses", Reply(status=500)),
        scripted("openai", Reply(status=500)),
    ],
    "compaction_unavailable": [scripted("anthropic", Reply(status=529))],
    "auth": [scripted("anthropic", Reply(status=401)), scripted("openai", Reply(status=403))],
    "invalid_request": [
        scripted("anthropic", Reply(status=400, message="No.")),
        scripted("anthropic", Reply(status=404, message="model: claude-unknown")),
    ],
    "too_large": [scripted("anthropic", Reply(status=413, message="Too large."))],
    "bad_answer": [
        scripted("anthropic", Reply(broken="body")),
        scripted("openai-responses", Reply(broken="body")),
    ],
    "compaction_block_misplaced": [meddled(block_behind, again=True)],
    "compaction_block_ambiguous": [meddled(second_block, again=True)],
    "compaction_signature_invalid": [meddled(other_seal, again=True)],
    "compaction_content_mismatch": [meddled(other_text, again=True)],
    "compaction_tool_changes_mismatch": [meddled(other_tools, again=True)],
    "compaction_incomplete_turn": [meddled(open_call)],
    "compaction_nothing_to_summarize": [meddled(nothing)],
    "compaction_too_many_tool_references": [meddled(many_tools)],
    "internal": [Case(defect)],
    "interrupted": [Case(database_away, refused=False)],
    "attempts_exhausted": [Case(fails_thrice)],
    "cancelled": [Case(cancelled, refused=False)],
    "superseded": [Case(superseded, refused=False)],
}
BY_THE_PROVIDER = {
    *("compaction_block_misplaced", "compaction_block_ambiguous", "compaction_signature_invalid"),
    *("compaction_content_mismatch", "compaction_tool_changes_mismatch"),
    *("compaction_incomplete_turn", "compaction_nothing_to_summarize"),
    *("compaction_too_many_tool_references", "compaction_unavailable"),
}
"""Codes of the provider's own, as its documentation lists them."""
WITHOUT_AN_OPERATION = {"missing_configuration", "window_unreadable"}
"""Found before a compaction begins."""


def test_every_code_there_is_has_a_case() -> None:
    assert CASES.keys() == FAILURE_OF.keys()
    assert CASES.keys() >= BY_THE_PROVIDER


ALL = [(code, number) for code, cases in CASES.items() for number in range(len(cases))]


@pytest.mark.parametrize(("code", "number"), ALL, ids=[f"{c}-{n}" for c, n in ALL])
def test_a_failure_says_what_to_do_and_leaves_everything_as_it_was(
    code: str, number: int, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, kind = CASES[code][number], FAILURE_OF[code]
    with provided(settings, monkeypatch, **case.how) as stage:
        case.act(stage)
        if case.refused:
            problem = stage.refusal()
            assert (problem.code, problem.status) == ("compaction_failed", 409)
            assert problem.extra["reason"] == code
            assert problem.extra["remedy"] == kind.remedy
            assert kind.remedy in problem.detail and "strict" not in problem.detail
            if not kind.retryable:
                assert problem.extra["retryable"] is False
            not_tried_again(stage, problem)
        assert stage.standing() == stage.before
        runtime = stage.runtime
        assert not unproven(runtime)
        assert not runtime.events(EventType.BOUNDARY_FRAGMENT), "no part of a note was begun"
        operations = checkpoints_of(actor=runtime.actor, session_id=runtime.session).operations
        if code == "attempts_exhausted":
            assert {line.as_json()["code"] for line in operations} == {"compaction_unavailable"}
        elif code not in WITHOUT_AN_OPERATION:
            shown = operations[0].as_json()
            assert (shown["code"], shown["says"], shown["remedy"]) == (
                *(code, kind.says, kind.remedy),
            )
            assert shown["outcome"] == (code if code in {"cancelled", "superseded"} else "failed")


def not_tried_again(stage: Stage, problem: ServiceError) -> None:
    """Another request for the same history costs nothing and says the same."""
    asked = SideCallRow.objects.count()
    again = stage.refusal()
    assert (again.extra["reason"], again.extra["remedy"]) == (
        *(problem.extra["reason"], problem.extra["remedy"]),
    )
    assert work_off(stage.runtime.actor.tenant_id, kind=KIND) == []
    assert SideCallRow.objects.count() == asked
    if stage.runtime.provider != "openai":
        purposes = set(SideCallRow.objects.values_list("purpose", flat=True))
        assert purposes <= {"count", "compaction"}, "nothing else was written in its place"
    if problem.extra["reason"] in {"count_unavailable", "native_input_oversized"}:
        assert not SideCallRow.objects.filter(purpose="compaction").exists()


MEDDLED: list[tuple[str, Meddle]] = [
    ("compaction_block_misplaced", block_behind),
    ("compaction_block_ambiguous", second_block),
    ("compaction_signature_invalid", other_seal),
    ("compaction_content_mismatch", other_text),
    ("compaction_tool_changes_mismatch", other_tools),
]


def test_a_window_that_a_runtime_meddled_with_is_refused_by_its_code_and_stands_as_assembled(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provided(settings, monkeypatch) as stage:
        stage.due("anthropic")
        stage.work_off()
        runtime = stage.runtime
        built = runtime.assemble()
        before = stage.standing()
        for code, meddle in MEDDLED:
            body = json.loads(built.body)
            meddle(body)
            status, answer = send(runtime, stage.strict, json.dumps(body).encode())
            assert status == 400
            reported = runtime.fail(status, answer)
            assert (reported.next, reported.code) == ("fail", code)
            assert stage.standing() == before
            assert runtime.assemble().body == built.body
        assert send(runtime, stage.strict, built.body)[0] == 200
