"""P7: the roster with its reasons, and revoking a tool."""

from __future__ import annotations

from ctxengine.ledger.models import AuditEntry, PlanRow
from ctxengine.service.specs import Actor, PolicySpec, SkillSpec, SnapshotSpec
from tests.cast import Runtime
from tests.factories import LiveSession, tool
from tests.inspector.conftest import Cast
from tests.inspector.sessions import opened_with


def test_the_roster_stands_in_groups_with_reasons(cast: Cast) -> None:
    session = LiveSession(
        cast.tenant,
        tools=(
            tool("shell.run"),
            tool("wiki.find", deferred=True),
            tool("clock.tick", model_visible=False),
        ),
    )
    page = cast.page(f"sessions/{session.id}/plan/")
    for text in (
        "Defined, ",
        "Deferred, 1",
        "deferred by configuration",
        "not model-visible",
        "the platform&#x27;s own",
    ):
        assert text in page, text
    rows = b"".join(cast.viewer.get(cast.url(f"sessions/{session.id}/plan.csv"))).decode()
    assert "wiki.find,wiki_find,deferred,deferred by configuration," in rows


def test_skills_snapshot_and_persona_are_shown(cast: Cast) -> None:
    session = opened_with(
        cast.tenant,
        skills=(SkillSpec(name="brewing", description="How to brew.", body="Boil water."),),
        snapshot=SnapshotSpec(trace_id="trace-7", watermark=12, items=("Likes tea.",)),
    )
    page = cast.page(f"sessions/{session}/plan/")
    for text in ("brewing", "How to brew.", "trace-7, watermark 12", "Likes tea.", "revision 0"):
        assert text in page, text


def test_a_window_that_was_assumed_is_said_to_be(cast: Cast) -> None:
    actor = Actor(cast.tenant.id, "system")
    opened = Runtime(actor=actor, provider="openai", model="nobody-knows")
    page = cast.page(f"sessions/{opened.session}/plan/")
    assert "a window of 128,000 tokens is assumed" in page
    assert "model.window" in page


def test_a_tool_is_revoked_and_restored_without_a_new_epoch(cast: Cast) -> None:
    address = cast.url(f"sessions/{cast.session.id}/plan/tool/")
    form = {"tool": "web.fetch", "act": "revoke", "reason": "It leaks."}
    asked = cast.operator.get(address, {"tool": "web.fetch"}).content.decode()
    assert "Revoke web.fetch" in asked
    assert "0 tokens" in asked
    assert cast.viewer.post(address, form).status_code == 403
    assert cast.operator.post(address, {**form, "reason": ""}).status_code == 422
    done = cast.operator.post(address, form)
    assert done.status_code == 303
    page = cast.operator.get(done["Location"]).content.decode()
    assert "are refused from now on" in page
    assert "✕ revoked: calls are refused" in page
    assert "Restore…" in page
    assert "Restore web.fetch" in cast.operator.get(address, {"tool": "web.fetch"}).content.decode()
    back = cast.operator.post(address, {**form, "act": "restore", "reason": "Mended."})
    assert "may be called again" in cast.operator.get(back["Location"]).content.decode()
    acts = AuditEntry.objects.filter(tenant_id=cast.tenant.id).order_by("at")
    assert [(act.action, act.reason) for act in acts][-2:] == [
        ("tool.revoked", "It leaks."),
        ("tool.restored", "Mended."),
    ]
    assert cast.data(f"sessions/{cast.session.id}/plan.json")["plan"]["line"]["epoch"] == 1


def test_no_viewer_and_no_older_epoch_offers_an_act(cast: Cast, kept: LiveSession) -> None:
    assert "Revoke…" in cast.page(f"sessions/{kept.id}/plan/")
    assert "Revoke…" not in cast.page(f"sessions/{kept.id}/plan/", epoch=1)
    seen = cast.viewer.get(cast.url(f"sessions/{kept.id}/plan/")).content.decode()
    assert "Revoke…" not in seen


def test_a_tool_that_is_not_there_is_404(cast: Cast) -> None:
    address = cast.url(f"sessions/{cast.session.id}/plan/tool/")
    assert cast.operator.get(address, {"tool": "no.such"}).status_code == 404


def test_a_measured_prefix_stands_beside_what_was_pinned(cast: Cast) -> None:
    address = f"sessions/{cast.session.id}/plan/"
    assert "By the provider" not in cast.page(address)
    rows = PlanRow.objects.filter(session_id=cast.session.id, epoch=1)
    pinned = rows.get().prefix_tokens
    told = {"tokens": pinned + 7, "pinned_tokens": pinned, "provider": "anthropic"}
    rows.update(measured=told | {"model": "m", "at": "2026-11-29T10:00:00+00:00"})
    page = cast.page(address)
    for text in ("By the provider", f"{pinned + 7:,} <small>measured", "29 Nov 2026", "+7"):
        assert text in page, text
    twin = cast.viewer.get(cast.url(f"sessions/{cast.session.id}/plan.json")).json()
    assert twin["plan"]["measured"]["difference"] == 7


def test_natively_deferred_tools_are_not_said_to_be_in_an_index(cast: Cast) -> None:
    session = LiveSession(
        cast.tenant,
        tools=(tool("shell.run"), tool("wiki.find", deferred=True)),
        policy=PolicySpec(deferral="native"),
    )
    page = cast.page(f"sessions/{session.id}/plan/")
    assert "until the provider&#x27;s own search finds them" in page
    assert "tool.call" not in page
