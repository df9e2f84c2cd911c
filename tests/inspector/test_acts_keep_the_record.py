"""What operators do: a preview first, a reason without which nothing happens, an audit row, and a record that still proves.

The table is compared with the addresses that act, so that a new act without a case fails.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from ctxengine.ledger.models import AuditEntry, Event
from ctxengine.service.prove import prove_all
from inspector import urls
from tests.factories import LiveSession
from tests.inspector.conftest import Cast
from tests.inspector.sessions import PRINCIPAL, compaction_of
from tests.matrix.world import constraint_of

HELD_ELSEWHERE = {
    "undo-checkpoint": "tests/inspector/test_page_checkpoints.py",
    "job": "tests/inspector/test_page_jobs.py",
}
NAMED = {
    "rotate", "tool-act", "lift-constraint", "compact-now", "mark", "undo-compaction", "persona", "configure",
}  # fmt: skip
"""Addresses that act on a session or a person."""


class Act(NamedTuple):
    """One act: its preview, what the form holds, and words of the preview."""

    route: str
    path: str
    form: dict[str, Any]
    says: tuple[str, ...]


COST = ("Re-cached", "Price")
ACTS = (
    Act("rotate", "{s}epochs/rotate/?why=operator", {"why": "operator", "epoch": "2"}, (*COST, "Sessions touched")),
    Act("tool-act", "{s}plan/tool/?tool=shell.run", {"tool": "shell.run", "act": "revoke"}, ()),
    Act("tool-act", "{s}plan/tool/?tool=web.fetch", {"tool": "web.fetch", "act": "restore"}, ()),
    Act("lift-constraint", "{s}state/lift/?id={constraint}", {"id": "{constraint}"}, ()),
    Act("compact-now", "{s}compactions/new/?through={seed}", {"through": "{seed}"}, (*COST, "Net cost")),
    Act("undo-compaction", "{s}compactions/{compaction}/undo/", {}, COST),
    Act("mark", "{s}compactions/mark/?target=3&form=pinned", {"target": "3", "form": "pinned"}, ()),
    Act("mark", "{s}compactions/mark/?target=3&form=folded", {"target": "3", "form": "folded"}, ()),
    Act("persona", "personas/of/{person}/", {"revision": "1", "entry": "Prefers large ones."}, ("Sessions",)),
    Act("configure", "{s}settings/", {"ttl": "1h", "compaction": "deterministic", "summary_model": "cheapest"}, ()),
)  # fmt: skip


def filled(text: str, session: LiveSession) -> str:
    return text.format(
        s=f"sessions/{session.id}/",
        constraint=constraint_of(session),
        compaction=compaction_of(session),
        person=PRINCIPAL,
        seed=before_the_last_run(session),
    )


def before_the_last_run(session: LiveSession) -> int:
    asked = Event.objects.filter(session_id=session.id, type="user.message.created")
    return max(asked.values_list("sequence", flat=True)) - 1


def differing(session: LiveSession) -> list[str]:
    return [str(one) for one in prove_all(session_id=session.id) if not one.identical]


def test_every_act_is_in_the_table() -> None:
    names = {str(pattern.name) for pattern in urls.urlpatterns}
    assert NAMED | set(HELD_ELSEWHERE) <= names
    assert {act.route for act in ACTS} == NAMED


@pytest.mark.parametrize("act", ACTS, ids=lambda act: f"{act.route} {act.form}")
def test_an_act_is_previewed_reasoned_audited_and_proven(
    cast: Cast, kept: LiveSession, act: Act
) -> None:
    path, _, query = filled(act.path, kept).partition("?")
    address = cast.url(path)
    preview = cast.operator.get(f"{address}?{query}").content.decode()
    for words in ("Reason, required", *act.says):
        assert words in preview, words
    form = {name: filled(value, kept) for name, value in act.form.items()}
    before = Event.objects.count(), AuditEntry.objects.count()
    refused = cast.operator.post(f"{address}?{query}", form)
    assert refused.status_code in {400, 409, 422}, refused.status_code
    assert (Event.objects.count(), AuditEntry.objects.count()) == before
    done = cast.operator.post(f"{address}?{query}", form | {"reason": "To see it happen."})
    assert done.status_code == 303, done.content.decode()[:2000]
    (entry,) = AuditEntry.objects.order_by("at")[before[1] :]
    assert entry.reason == "To see it happen."
    assert entry.actor.startswith("user:")
    assert entry.before != entry.after
    assert differing(kept) == []
    kept.ask("Does it still stand?").build()
    assert differing(kept) == []
