"""How long a result stands whole, in which unit, and that everything which says so says the same (capacity spec 3)."""

from __future__ import annotations

import json
import re

import pytest

from ctxengine.engine.budget.policy import DEFAULT_POLICY, BudgetPolicy, default_policy
from ctxengine.engine.ids import EventSeq, ItemId
from ctxengine.ledger.models import ItemRow
from ctxengine.service import plans
from ctxengine.service.configure_session import configure_session
from ctxengine.service.erase import erase_person
from ctxengine.service.plan_specs import Configure
from ctxengine.service.policy_edit import edit_policy
from ctxengine.service.specs import PolicySpec, PrincipalSpec, ServiceError
from ctxengine.service.turns.evidence import Evidence, evidence_of
from tests.cast import Call, Runtime
from tests.service.working_set.test_loop import body, verdicts

pytestmark = pytest.mark.django_db

LIMIT = 30_000
LINE = "这一行写的是汉字而不是拉丁字母。\n"
SHORT_CJK = (LINE * 1_000)[:12_299]
OLD = DEFAULT_POLICY


def opened(engine: str = "working_set", policy: PolicySpec | None = None) -> Runtime:
    return Runtime(
        extra={"engine": engine}, policy=policy, principal=PrincipalSpec(id="mara"), window=200_000
    )


def opened_before(monkeypatch: pytest.MonkeyPatch) -> Runtime:
    """A session from before characters were counted."""
    with monkeypatch.context() as before:
        before.setattr(plans, "default_policy", lambda engine: OLD)
        return opened()


def read(runtime: Runtime, text: str, call: str = "c1") -> str:
    """The request that holds a result of this text."""
    runtime.ask("Read it.")
    runtime.look(call, text)
    runtime.assemble()
    return body(runtime)


def result(runtime: Runtime) -> ItemRow:
    rows = ItemRow.objects.filter(session_id=runtime.session, kind="tool_result")
    return rows.order_by("-sequence")[0]


def evidence(runtime: Runtime) -> Evidence:
    item = ItemId(EventSeq(result(runtime).sequence), 0)
    return evidence_of(actor=runtime.actor, session_id=runtime.session, item=item)


def stands_in(text: str, sent: str) -> bool:
    escaped = json.dumps(text, ensure_ascii=False)[1:-1]
    return escaped in sent or json.dumps(text)[1:-1] in sent


@pytest.mark.parametrize("family", ["a line of Latin letters\n", LINE, "🦊 füchse\n"])
def test_a_result_stands_whole_up_to_so_many_characters_whatever_they_are(family: str) -> None:
    whole = (family * LIMIT)[:LIMIT]
    runtime = opened()
    assert stands_in(whole, read(runtime, whole))
    assert result(runtime).excerpt_limit == 0
    more = opened()
    sent = read(more, f"{whole}x")
    assert not stands_in(whole, sent)
    assert result(more).excerpt_limit == LIMIT
    named = re.search(r"lines (\d+-\d+) \(([\d,]+) characters\) are not shown", sent)
    assert named is not None
    asked = json.dumps({"id": f"{result(more).sequence}.0", "range": named[1]})
    first, last = map(int, named[1].split("-"))
    answer = more.say("", Call("r1", "recall", asked)).calls[0].result or ""
    assert answer.partition("\n")[2] == "\n".join(f"{whole}x".split("\n")[first - 1 : last])
    assert verdicts(runtime) | verdicts(more) == {"identical"}


@pytest.mark.parametrize(
    ("engine", "policy"),
    [
        ("working_set", None),
        ("working_set", PolicySpec(inline_maximum_chars=2_000)),
        ("working_set", PolicySpec(inline_maximum_bytes=2_000)),
        ("suffix", None),
        ("suffix", PolicySpec(inline_maximum_bytes=2_000)),
        ("boundary", PolicySpec(inline_maximum_bytes=2_000)),
    ],
)
@pytest.mark.parametrize("text", [SHORT_CJK, LINE * 3_000, "line of Latin letters\n" * 1_000])
def test_evidence_shows_the_very_form_that_was_sent(
    engine: str, policy: PolicySpec | None, text: str
) -> None:
    runtime = opened(engine, policy)
    sent = read(runtime, text)
    found = evidence(runtime)
    assert stands_in(found.window.strip("\n"), sent)
    limit = 30_000 if policy is None else 2_000
    in_chars = engine == "working_set" and (policy is None or not policy.inline_maximum_bytes)
    assert (found.limit, found.limit_unit) == (limit, "characters" if in_chars else "bytes")
    over = (len(text) if in_chars else len(text.encode())) > limit
    assert (found.window != text) == over == bool(result(runtime).excerpt_limit)


def test_a_session_that_counted_bytes_goes_on_with_them_and_its_requests_are_proven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = opened_before(monkeypatch)
    first = read(runtime, SHORT_CJK)
    assert "are not shown" in first
    runtime.say("Read.")
    for spec in (PolicySpec(), PolicySpec(low_water=0.5)):
        configure_session(
            actor=runtime.actor, session_id=runtime.session, spec=Configure(policy=spec)
        )
        again = read(runtime, SHORT_CJK, f"again{spec.low_water}")
        assert len(re.findall(r"are not shown", again)) >= 1
        assert result(runtime).excerpt_limit == LIMIT
        assert evidence(runtime).limit_unit == "bytes"
        runtime.say("Read again.")
    edit_policy(
        actor=runtime.actor,
        session_id=runtime.session,
        history_ttl="5m",
        compaction="none",
        summary_model="cheapest",
        note="",
    )
    assert "are not shown" in read(runtime, SHORT_CJK, "last")
    runtime.say("Read.")
    assert verdicts(runtime) == {"identical"}
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    assert verdicts(runtime) <= {"identical", "identical_except"}


def test_a_session_that_counts_characters_keeps_them_and_outlives_an_erasure() -> None:
    runtime = opened()
    sent = read(runtime, LINE * 3_000)
    runtime.say("Read.")
    edit_policy(
        actor=runtime.actor,
        session_id=runtime.session,
        history_ttl="5m",
        compaction="none",
        summary_model="cheapest",
        note="",
    )
    assert stands_in(SHORT_CJK, read(runtime, SHORT_CJK, "c2"))
    assert "are not shown" in sent
    runtime.say("Read.")
    erase_person(actor=runtime.actor, principal="mara", note="asked for it")
    assert verdicts(runtime) <= {"identical", "identical_except"}


@pytest.mark.parametrize(
    ("engine", "policy", "said"),
    [
        ("suffix", PolicySpec(inline_maximum_chars=9_000), "by its bytes"),
        ("boundary", PolicySpec(inline_maximum_chars=9_000), "by its bytes"),
        (
            "working_set",
            PolicySpec(inline_maximum_chars=9_000, inline_maximum_bytes=9_000),
            "one of",
        ),
    ],
)
def test_a_limit_that_no_request_could_keep_is_refused(
    engine: str, policy: PolicySpec, said: str
) -> None:
    with pytest.raises(ServiceError, match=said) as refused:
        opened(engine, policy)
    assert refused.value.status == 422


def test_the_unit_is_for_the_sessions_life() -> None:
    runtime = opened()
    spec = Configure(policy=PolicySpec(inline_maximum_bytes=9_000))
    with pytest.raises(ServiceError, match="counted in characters"):
        configure_session(actor=runtime.actor, session_id=runtime.session, spec=spec)


def test_a_policy_from_before_the_field_counts_bytes() -> None:
    stored = default_policy("working_set").as_json() | {"inline_maximum_bytes": 20_000}
    del stored["inline_maximum_chars"]
    assert BudgetPolicy.model_validate(stored).inline == (20_000, "bytes")


def test_another_engine_replays_under_the_same_figure_in_its_own_unit() -> None:
    usual = default_policy("working_set")
    assert usual.for_engine("suffix").inline == DEFAULT_POLICY.inline
    assert DEFAULT_POLICY.for_engine("working_set").inline == usual.inline
