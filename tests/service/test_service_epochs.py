"""Rotations: every reason, all of them together at a run's start, and when there is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.engine.plan.plan import BUILDER_VERSION, Plan, plan_of, plan_text
from ctxengine.ledger.models import (
    AuditEntry,
    Body,
    ItemRow,
    PlanRow,
    RunRow,
    SessionRow,
    UnitRow,
)
from ctxengine.service.configure_session import configure_session
from ctxengine.service.edit_persona import edit_persona
from ctxengine.service.plan_specs import Configure, EditPersona, SetAuthority
from ctxengine.service.prove import replay_request
from ctxengine.service.rotate_epoch import rotate_epoch
from ctxengine.service.set_authority import set_authority
from ctxengine.service.specs import (
    AgentRef,
    ModelRef,
    PolicySpec,
    PrincipalSpec,
    ServiceError,
    SnapshotSpec,
)
from ctxengine.service.verify import verify_session
from tests.cast import Call, Runtime, tool

pytestmark = pytest.mark.django_db

MARA = PrincipalSpec(id="mara", scopes=("files",))
MAIL = tool("mail", required_scopes=("mail",))


def turn(runtime: Runtime, **fields: Any) -> None:
    runtime.ask("Go", **fields)
    runtime.assemble()
    runtime.say("Done.")


def rotations(runtime: Runtime) -> list[list[str]]:
    return [event.payload["reasons"] for event in runtime.events(EventType.EPOCH_ROTATED)]


def configure(runtime: Runtime, **fields: Any) -> None:
    configure_session(actor=runtime.actor, session_id=runtime.session, spec=Configure(**fields))


def authority(runtime: Runtime, *scopes: str, **fields: Any) -> None:
    set_authority(
        actor=runtime.actor,
        session_id=runtime.session,
        spec=SetAuthority(scopes=scopes, **fields),
    )


def proven(runtime: Runtime) -> bool:
    return all(
        replay_request(actor=runtime.actor, request_id=row.id).identical for row in runtime.requests
    )


# --- together, at a run's start ---------------------------------------------------------------------------------------


def test_changes_of_every_kind_become_one_rotation_with_all_reasons() -> None:
    runtime = Runtime(principal=MARA, tools=(tool("read"), MAIL))
    turn(runtime)
    edit_persona(
        actor=runtime.actor, principal="mara", spec=EditPersona(revision=0, entries=("Be brief.",))
    )
    configure(runtime, model=ModelRef(provider="anthropic", name="claude-haiku-4-5"))
    configure(runtime, agent=AgentRef(name="scout", version="2", instructions="Other."))
    configure(runtime, policy=PolicySpec(low_water=0.5), environment={"profile": "work"})
    configure(runtime, snapshot=SnapshotSpec(trace_id="t2", items=("Likes tea.",)))
    turn(runtime, scopes=("files", "mail"))
    assert rotations(runtime) == [
        [
            "model_changed",
            "persona_changed",
            "agent_changed",
            "run_authority_changed",
            "environment_changed",
            "snapshot_missing",
            "policy_changed",
        ]
    ]
    row = SessionRow.objects.get(tenant_id=runtime.actor.tenant_id, id=runtime.session)
    assert (row.epoch, row.model, row.agent_version) == (2, "claude-haiku-4-5", "2")
    turn(runtime)
    assert len(rotations(runtime)) == 1
    assert proven(runtime)
    row.refresh_from_db()
    assert verify_session(row).problem is None


def test_nothing_changed_is_no_rotation() -> None:
    runtime = Runtime(principal=MARA)
    for _ in range(3):
        turn(runtime)
    assert rotations(runtime) == []
    assert {row.prefix_sha256 for row in runtime.requests} == {runtime.opened.plan.prefix_sha256}


def test_a_change_reaches_no_open_run() -> None:
    runtime = Runtime()
    runtime.ask("Go")
    before = runtime.assemble()
    configure(runtime, policy=PolicySpec(low_water=0.5), environment={"a": "b"})
    runtime.look("c1", "x")
    assert runtime.assemble().wire_prefix_sha256 == before.wire_prefix_sha256
    assert rotations(runtime) == []


def test_a_start_that_is_refused_rotates_nothing() -> None:
    runtime = Runtime()
    runtime.ask("Go")
    configure(runtime, environment={"a": "b"})
    with pytest.raises(ServiceError, match="still open"):
        runtime.ask("Again")
    assert rotations(runtime) == []


def test_a_rotation_that_does_not_fit_refuses_the_run_and_leaves_the_old_plan() -> None:
    runtime = Runtime()
    turn(runtime)
    configure(runtime, persona=("word " * 4_000,))
    with pytest.raises(ServiceError) as caught:
        runtime.ask("Go")
    assert caught.value.extra["budget_class"] == "persona"
    configure(runtime, persona=("Short.",))
    turn(runtime)
    assert rotations(runtime) == [["persona_changed"]]


def test_another_environment_is_an_epoch_whose_bytes_cost_nothing() -> None:
    runtime = Runtime(extra={"environment": {"profile": "home"}})
    turn(runtime)
    configure(runtime, environment={"profile": "work"})
    turn(runtime)
    (event,) = runtime.events(EventType.EPOCH_ROTATED)
    assert event.payload["reasons"] == ["environment_changed"]
    assert event.payload["recached_tokens"] == 0
    assert "price_usd" not in event.payload
    assert len({row.wire_prefix_sha256 for row in runtime.requests}) == 1


def test_the_same_configuration_again_is_no_change() -> None:
    runtime = Runtime(extra={"environment": {"profile": "home"}})
    configure(runtime, environment={"profile": "home"}, policy=PolicySpec())
    turn(runtime)
    assert rotations(runtime) == []


def test_an_agent_version_with_other_instructions_is_refused_when_it_is_chosen() -> None:
    runtime = Runtime()
    with pytest.raises(ServiceError) as caught:
        configure(runtime, agent=AgentRef(name="scout", version="1", instructions="Other."))
    assert caught.value.code == "agent_changed"


# --- authority --------------------------------------------------------------------------------------------------------


def test_only_newly_granted_scopes_rotate_and_the_new_run_sees_its_tools() -> None:
    runtime = Runtime(principal=MARA, tools=(tool("read"), MAIL))
    turn(runtime)
    assert "mail" not in runtime.opened.plan.tool_names
    authority(runtime, "files", "mail")
    turn(runtime)
    assert rotations(runtime) == [["run_authority_changed"]]
    authority(runtime, "files")
    turn(runtime)
    authority(runtime)
    turn(runtime)
    assert len(rotations(runtime)) == 1


def test_a_grant_never_widens_the_open_run() -> None:
    runtime = Runtime(principal=MARA, tools=(tool("read"), MAIL))
    runtime.ask("Go")
    before = runtime.assemble()
    authority(runtime, "files", "mail")
    after = runtime.assemble()
    assert after.wire_prefix_sha256 == before.wire_prefix_sha256
    run = RunRow.objects.get(tenant_id=runtime.actor.tenant_id, id=runtime.run)
    assert run.settings["scopes"] == ["files"]
    assert runtime.say("", Call("c1", "mail")).calls[0].action == "refused"


def test_late_input_never_refreshes_authority() -> None:
    from ctxengine.service.specs import Content, TakeInput
    from ctxengine.service.take_input import take_input

    runtime = Runtime(principal=MARA, tools=(tool("read"), MAIL))
    runtime.ask("Go")
    authority(runtime, "files", "mail")
    take_input(actor=runtime.actor, run_id=runtime.run, spec=TakeInput(message=Content(raw="Yes.")))
    runtime.assemble()
    assert rotations(runtime) == []


def test_initialised_and_empty_pins_are_pins_and_missing_ones_are_filled_once() -> None:
    empty = Runtime(principal=PrincipalSpec(id="mara", scopes=()))
    turn(empty)
    turn(empty)
    assert rotations(empty) == []
    unknown = Runtime(principal=PrincipalSpec(id="mara"))
    turn(unknown)
    assert rotations(unknown) == []
    turn(unknown, scopes=())
    turn(unknown, scopes=())
    assert rotations(unknown) == [["run_authority_changed"]]


def test_a_resolved_missing_access_makes_new_pins_for_its_run_once() -> None:
    runtime = Runtime(principal=MARA, tools=(tool("read"), MAIL))
    runtime.ask("Send it.")
    authority(runtime, "files", "mail", resolves_run=runtime.run)
    assert rotations(runtime) == [["run_authority_changed"]]
    runtime.assemble()
    assert runtime.say("", Call("c1", "mail")).calls[0].action == "execute"
    with pytest.raises(ServiceError) as caught:
        authority(runtime, "files", "mail", "more", resolves_run=runtime.run)
    assert caught.value.code == "access_not_awaited"


def test_a_run_that_has_done_model_work_is_not_resolved() -> None:
    runtime = Runtime(principal=MARA, tools=(tool("read"), MAIL))
    runtime.ask("Send it.")
    runtime.look("c1", "x")
    with pytest.raises(ServiceError) as caught:
        authority(runtime, "files", "mail", resolves_run=runtime.run)
    assert caught.value.code == "access_not_awaited"
    assert runtime.events(EventType.AUTHORITY_CHANGED) == []


# --- by hand, at the next step ----------------------------------------------------------------------------------------


def test_an_operator_rotates_for_the_next_step_and_the_audit_says_what_it_costs() -> None:
    runtime = Runtime()
    runtime.ask("Go")
    runtime.assemble()
    view = rotate_epoch(
        actor=runtime.actor, session_id=runtime.session, reason="operator", note="check"
    )
    assert view.epoch == 2
    # The bytes are the same, so nothing is cached anew.
    assert view.recached_tokens == 0
    runtime.assemble()
    assert [row.epoch for row in runtime.requests] == [1, 2]
    entry = AuditEntry.objects.get(tenant_id=runtime.actor.tenant_id, action="epoch.rotated")
    assert entry.after["reasons"] == ["operator"]
    assert entry.after["recached_tokens"] == 0


def test_a_tool_removed_for_security_leaves_the_prompt_at_the_next_step_and_stays_away() -> None:
    runtime = Runtime()
    runtime.ask("Go")
    runtime.look("c1", "text")
    view = rotate_epoch(
        actor=runtime.actor,
        session_id=runtime.session,
        reason="tool_removed_for_security",
        note="leak",
        tools=("shell.run",),
    )
    assert "shell.run" not in view.tool_names
    assert view.recached_tokens == view.prefix_tokens
    body = json.loads(runtime.assemble().body)
    assert "shell_run" not in [entry["name"] for entry in body["tools"]]
    refused = runtime.say("", Call("c2", "shell_run")).calls[0]
    assert json.loads(refused.result or "")["error"] == "tool_removed"
    runtime.assemble()
    runtime.say("Done.")
    configure(runtime, environment={"a": "b"})
    turn(runtime)
    current = PlanRow.objects.filter(session_id=runtime.session).order_by("-epoch")[0]
    kept = plan_of(
        bytes(Body.objects.get(session_id=runtime.session, id=current.body_id).data).decode()
    )
    assert kept.tool("shell.run").group == "hidden"  # type: ignore[union-attr]
    (event, _) = runtime.events(EventType.EPOCH_ROTATED)
    assert event.payload["removed_tool_names"] == ["shell.run"]
    assert proven(runtime)


@pytest.mark.parametrize(
    ("reason", "tools", "code"),
    [
        ("tool_removed_for_security", (), "unknown_tool"),
        ("tool_removed_for_security", ("nowhere",), "unknown_tool"),
        ("tool_removed_for_security", ("recall",), "unknown_tool"),
        ("operator", ("read",), "unknown_tool"),
        ("persona_changed", (), "unknown_reason"),
    ],
)
def test_what_cannot_be_rotated_by_hand_is_refused(
    reason: str, tools: tuple[str, ...], code: str
) -> None:
    runtime = Runtime()
    with pytest.raises(ServiceError) as caught:
        rotate_epoch(
            actor=runtime.actor, session_id=runtime.session, reason=reason, note="x", tools=tools
        )
    assert caught.value.code == code


def test_a_rotation_inside_a_run_drops_its_reasoning_once_and_says_how_much() -> None:
    thinking = '{"type":"thinking","thinking":"hm","signature":"c2lnbmF0dXJl"}'
    runtime = Runtime()
    runtime.ask("Go")
    runtime.assemble()
    runtime.say("", Call("c1", "read"), reasoning=(thinking,))
    runtime.results(("c1", "text"))
    assert "c2lnbmF0dXJl" in runtime.assemble().body.decode()
    rotate_epoch(
        actor=runtime.actor,
        session_id=runtime.session,
        reason="tool_removed_for_security",
        note="x",
        tools=("web.fetch",),
    )
    assert "c2lnbmF0dXJl" not in runtime.assemble().body.decode()
    (event,) = runtime.events(EventType.EPOCH_ROTATED)
    assert event.payload["opaque_dropped"] == 1
    assert proven(runtime)


# --- older builders ---------------------------------------------------------------------------------------------------


def made_by(runtime: Runtime, **changes: Any) -> Plan:
    """Rewrite the session's plan as if an older builder had pinned it."""
    row = PlanRow.objects.get(session_id=runtime.session, epoch=1)
    body = Body.objects.get(session_id=runtime.session, id=row.body_id)
    plan = plan_of(bytes(body.data).decode()).model_copy(update=changes)
    Body.objects.filter(session_id=runtime.session, id=row.body_id).update(
        data=plan_text(plan).encode()
    )
    PlanRow.objects.filter(session_id=runtime.session, epoch=1).update(
        builder_version=plan.builder,
        prefix_sha256=plan.prefix_sha256,
        wire_prefix_sha256=plan.wire_prefix_sha256,
    )
    return plan


def test_a_plan_of_an_older_builder_with_the_same_bytes_stays_current() -> None:
    runtime = Runtime()
    made_by(runtime, builder="builder@0")
    turn(runtime)
    assert rotations(runtime) == []
    # The plan is the older one's, the request is not: it can be proven.
    assert {row.inputs["builder"] for row in runtime.requests} == {BUILDER_VERSION}


def test_a_plan_whose_bytes_this_builder_renders_otherwise_is_rebuilt() -> None:
    runtime = Runtime()
    made_by(runtime, builder="builder@0", policy_text="Older rules.", wire_prefix_sha256="0" * 64)
    turn(runtime)
    assert rotations(runtime) == [["builder_changed"]]
    assert runtime.requests[-1].epoch == 2


def test_a_hash_that_followed_an_unstable_order_is_renamed_without_rebuilding_anything() -> None:
    from ctxengine.engine.plan.hashes import neutral_sha256, recorded_order_sha256

    runtime = Runtime(tools=(tool("read", required_scopes=("a", "b")),))
    plan = made_by(runtime)
    unsorted = tuple(
        entry.model_copy(update={"required_scopes": tuple(reversed(entry.required_scopes))})
        for entry in plan.tools
    )
    older = plan.model_copy(update={"tools": unsorted, "builder": "builder@0"})
    named = recorded_order_sha256(older)
    assert named != neutral_sha256(older) == plan.prefix_sha256
    made_by(runtime, tools=unsorted, builder="builder@0", prefix_sha256=named)
    turn(runtime)
    turn(runtime)
    (event,) = runtime.events(EventType.EPOCH_ROTATED)
    assert event.payload["reasons"] == ["prefix_hash_canonicalized"]
    assert event.payload["recached_tokens"] == 0
    assert event.payload["wire_prefix_sha256"] == plan.wire_prefix_sha256
    assert event.payload["prefix_sha256"] == plan.prefix_sha256
    row = PlanRow.objects.get(session_id=runtime.session, epoch=2)
    assert row.builder_version == BUILDER_VERSION
    assert {r.wire_prefix_sha256 for r in runtime.requests} == {plan.wire_prefix_sha256}


# --- another model ----------------------------------------------------------------------------------------------------


def test_a_session_routed_to_another_family_is_counted_anew_and_still_proven() -> None:
    runtime = Runtime()
    runtime.ask("Read " + "things " * 50)
    runtime.look("c1", "Zahlen, 数字, числа " * 300)
    runtime.assemble()
    runtime.say("Read.")
    before = sums(runtime)
    configure(runtime, model=ModelRef(provider="openai", name="gpt-5.4"))
    runtime.ask("Go on.")
    row = SessionRow.objects.get(tenant_id=runtime.actor.tenant_id, id=runtime.session)
    plan = PlanRow.objects.get(session_id=runtime.session, epoch=2)
    assert (row.provider, row.model, row.counter) == ("openai", "gpt-5.4", plan.counter)
    after = sums(runtime)
    assert after["items"] != before["items"]
    for figures in (before, after):
        assert sum(figures["items"]) == sum(figures["units"]) == figures["session"]
        assert figures["before"] == [
            sum(figures["units"][:n]) for n in range(len(figures["units"]))
        ]
    assert "messages" in json.loads(runtime.assemble().body)
    assert proven(runtime)


def sums(runtime: Runtime) -> dict[str, Any]:
    items = ItemRow.objects.filter(session_id=runtime.session).order_by("sequence", "ordinal")
    units = UnitRow.objects.filter(session_id=runtime.session).order_by("sequence")
    return {
        "items": list(items.values_list("tokens", flat=True)),
        "units": list(units.values_list("tokens", flat=True)),
        "before": list(units.values_list("before_tokens", flat=True)),
        "session": SessionRow.objects.get(id=runtime.session).tokens,
    }


def test_a_model_of_the_same_family_needs_no_new_counts() -> None:
    runtime = Runtime()
    turn(runtime)
    before = sums(runtime)["items"]
    configure(
        runtime, model=ModelRef(provider="anthropic", name="claude-sonnet-4-6", window=50_000)
    )
    turn(runtime)
    assert rotations(runtime) == [["model_changed"]]
    assert sums(runtime)["items"][: len(before)] == before
