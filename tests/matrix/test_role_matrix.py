"""The role matrix: every address of the console x method x who asks, each with its one expected status.

The addresses come from the URL table itself. One that is not listed here fails, so that nobody adds a page without saying who
may do what on it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client

from ctxengine.ledger.models import AuditEntry, Event, Role
from tests.factories import make_person, make_tenant
from tests.matrix.test_console_access import ACTS
from tests.matrix.world import World, a_world, client, constraint_of, tenant_patterns

pytestmark = pytest.mark.django_db


class Row(NamedTuple):
    """What each role gets: one status for all, or one for (viewer, operator, admin)."""

    get: int | tuple[int, int, int] = 200
    post: int | tuple[int, int, int] = 405


PAGE = Row()
LEADS_ON = Row(302)
OPERATE = Row(200, (403, 303, 303))
POST_ONLY = Row(405, 200)

MATRIX: dict[str, Row] = {
    **dict.fromkeys(
        (
            "overview", "overview-twin", "sessions", "session", "session-events", "event-body", "event-raw",
            "session-plan", "session-epochs", "epoch-diff", "session-state", "session-compactions", "item",
            "item-fragment", "requests", "request", "request-items", "request-json", "request-raw", "json-part",
            "request-change", "request-events", "request-take-away", "request-ticket", "request-curl", "diff", "metrics",
            "personas", "providers", "models", "model-ladder", "agents", "policies", "import-job", "import", "repair-text",
            "event-body-twin", "item-twin", "request-json-twin", "request-events-twin", "request-take-away-twin",
            "configure-twin", "import-job-twin", "repair-text-twin", "lab-step-twin",
            "jobs", "search", "audit", "glossary", "tour", "styleguide", "keys",
            "session-turns", "session-checkpoints", "turns-seen-by", "evidence",
            "session-peek", "request-peek", "request-markdown", "session-event-rows",
            "lab-replay", "lab-matrix", "lab-cell", "lab-step", "lab-step-raw",
        ),
        PAGE,
    ),
    **dict.fromkeys(("overview-news", "sessions-news", "requests-news", "session-news"), Row(204)),
    "jump": LEADS_ON,
    "diff-pick": LEADS_ON,
    "prove": POST_ONLY,
    "prove-newest": POST_ONLY,
    "persona-preview": POST_ONLY,
    "tool-act": OPERATE,
    "rotate": OPERATE,
    "lift-constraint": OPERATE,
    "compact-now": Row(200, (403, 303, 303)),
    "mark": OPERATE,
    "undo-compaction": OPERATE,
    "undo-checkpoint": OPERATE,
    "persona": OPERATE,
    "job": OPERATE,
    "configure": OPERATE,
    "alerts": OPERATE,
    "model": PAGE,
    "probe": OPERATE,
    "imports": Row(200, (403, 400, 400)),
    "api-keys": Row(200, (403, 403, 200)),
    "members": Row(200, (403, 403, 303)),
    "retention": Row(200, (403, 403, 303)),
    "lab": OPERATE,
    "save-view": Row(405, 303),
    "load-samples": Row(405, (403, 303, 303)),
    "remove-view": Row(405, 404),
}  # fmt: skip
"""Everything under a tenant. Refusals by the form's content (400, 404) are told by what each form below holds."""

FORMS: dict[str, dict[str, Any]] = {
    **ACTS,
    "configure": {"ttl": "1h", "compaction": "deterministic", "summary_model": "cheapest"},
    "alerts": {"act": "add", "name": "a", "measure": "cost", "bound": "1", "window": "60"},
    "api-keys": {"name": "k", "scope": "read", "days": "30"},
    "members": {"act": "add", "name": "newcomer", "role": "viewer", "password": "a long enough password"},
    "retention": {"act": "change", "kind": "content", "days": "90"},
    "save-view": {"page": "sessions", "name": "v", "query": ""},
    "persona": {"revision": "1", "entry": "Prefers large commits."},
    "probe": {"hosted": "1"},
}  # fmt: skip
_ANONYMOUS, _STRANGER = 302, 404


def form_of(world: World, name: str) -> dict[str, Any]:
    """A form that an entitled person could send."""
    form = dict(FORMS.get(name, {}), reason="To see who may.")
    if name == "lift-constraint":
        form["id"] = constraint_of(world.session)
    if name == "lab":
        form |= {
            "session": str(world.session.id),
            "engine": "suffix",
            "models": "claude-sonnet-4-6",
        }
    return form


def ask(one: Client, method: str, address: str, form: dict[str, Any]) -> HttpResponse:
    """The answer, with everything undone that was done."""
    with transaction.atomic():
        answer: HttpResponse = one.get(address) if method == "get" else one.post(address, form)
        transaction.set_rollback(True)
    return answer


def unsafe_headers(answer: HttpResponse) -> list[str]:
    """What of an answer's headers would let it be kept by a cache, or let content act."""
    kept, policy = answer["Cache-Control"], answer["Content-Security-Policy"]
    wrong = [] if "no-cache" in kept or "no-store" in kept else [kept]
    strict = all(f"{kind}-src 'self'" in policy for kind in ("script", "style"))
    return wrong if strict and "unsafe" not in policy else [*wrong, policy]


def expected(row: Row, method: str, role: Role) -> int:
    """The status that a member of a role gets."""
    wanted = row.get if method == "get" else row.post
    return wanted if isinstance(wanted, int) else wanted[list(Role).index(role)]


def test_every_address_is_in_the_matrix() -> None:
    names = {str(pattern.name) for pattern in tenant_patterns()}
    assert names - set(MATRIX) == set(), "say in MATRIX who may do what there"
    assert set(MATRIX) <= names, "these are gone"


@pytest.mark.parametrize("role", list(Role))
def test_members_get_what_their_role_says(role: Role) -> None:
    world = a_world()
    member = client(make_person(world.tenant, role))
    wrong, unsafe = {}, {}
    for pattern in tenant_patterns():
        name, address = str(pattern.name), world.address(pattern)
        for method in ("get", "post"):
            answer = ask(member, method, address, form_of(world, name))
            if answer.status_code != expected(MATRIX[name], method, role):
                wrong[name, method] = answer.status_code
            if answer.status_code == 200 and unsafe_headers(answer):
                unsafe[name] = unsafe_headers(answer)
    assert wrong == {}
    assert unsafe == {}


def test_strangers_are_sent_to_sign_in_and_members_of_others_learn_nothing() -> None:
    world, own = a_world(), make_tenant()
    nobody = client()
    other = client(make_person(own, Role.ADMIN))
    events, acts = Event.objects.count(), AuditEntry.objects.count()
    wrong = {}
    for pattern in tenant_patterns():
        name, address = str(pattern.name), world.address(pattern)
        for method in ("get", "post"):
            form = form_of(world, name)
            refused = expected(MATRIX[name], method, Role.ADMIN) == 405
            for who, one, status in (("nobody", nobody, _ANONYMOUS), ("other", other, _STRANGER)):
                found = ask(one, method, address, form).status_code
                if found != (405 if refused else status):
                    wrong[name, method, who] = found
    assert wrong == {}
    assert (Event.objects.count(), AuditEntry.objects.count()) == (events, acts)


def test_other_methods_are_refused_everywhere() -> None:
    world = a_world()
    admin = client(make_person(world.tenant, Role.ADMIN))
    for pattern in tenant_patterns():
        for method in ("put", "delete", "patch"):
            status = getattr(admin, method)(world.address(pattern)).status_code
            assert status == 405, (pattern.name, method, status)
