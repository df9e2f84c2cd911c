"""Whatever stands in an address or a form, a page answers: what cannot be kept is no failure of ours."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ctxengine.ledger.models import AuditEntry, Job
from ctxengine.service.audit import record_audit
from ctxengine.service.jobs.enqueue import enqueue
from ctxengine.service.specs import Actor
from inspector.filters import read_whole
from tests.inspector.conftest import Cast
from tests.inspector.test_page_filters import LISTS, address

HUGE = ("9" * 5_000, "0" * 20 + "9" * 5_000, "000000000000000001" + "9" * 5_000, "²")
_HAS = re.compile(r"It has: (.*?)\.(?:<|$)", re.DOTALL)


@pytest.mark.parametrize("path", LISTS)
def test_every_filter_of_every_list_takes_or_refuses_whatever_is_given(
    cast: Cast, path: str
) -> None:
    here = address(cast, path)
    refused = cast.operator.get(here, {"colour": "red"}).content.decode()
    known = _HAS.search(refused)
    assert known
    names = [] if known[1] == "none" else known[1].split(", ")
    for name in names:
        for value in (HUGE[1], "a\0b"):
            assert cast.operator.get(here, {name: value}).status_code in (
                200,
                303,
                400,
                404,
                422,
            ), name


@pytest.mark.parametrize("value", HUGE)
def test_a_number_of_thousands_of_digits_is_no_number(value: str) -> None:
    assert read_whole(value) is None


def test_numbers_are_read_up_to_their_bound() -> None:
    assert read_whole("0012") == 12
    assert read_whole(str(2**62)) == 2**62
    assert read_whole(str(2**62 + 1)) is None
    assert read_whole("501", most=500) is None
    assert read_whole("") is None


def forms(cast: Cast) -> list[tuple[str, dict[str, str]]]:
    """Every form of the console with values that it takes."""
    s = f"sessions/{cast.session.id}"
    why = {"reason": "because"}
    return [
        (f"{s}/compactions/new/", why | {"through": "3", "merge": "", "unforced": ""}),
        (f"{s}/compactions/mark/", why | {"target": "3", "form": "pinned", "scope": "unit"}),
        (f"{s}/compactions/3/undo/", why),
        (f"{s}/epochs/rotate/", why | {"why": "operator", "epoch": "1"}),
        (f"{s}/state/lift/", why | {"id": "c1"}),
        (f"{s}/plan/tool/", why | {"tool": "web_fetch", "act": "revoke"}),
        ("personas/of/ann/", why | {"entry": "Likes tea.", "revision": "1", "act": "save"}),
        ("models/probe/anthropic/claude-sonnet-4-6/", why | {"most": "8000", "hosted": ""}),
    ]


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("value", ["a\0b", *HUGE[:2]], ids=["nul", "huge", "huge_after_noughts"])
def test_every_field_of_every_form_takes_or_refuses_whatever_is_given(
    cast: Cast, number: int, value: str
) -> None:
    path, data = forms(cast)[number]
    for name in data:
        answer = cast.operator.post(cast.url(path), data | {name: value})
        assert answer.status_code in (200, 302, 303, 400, 404, 409, 422), (path, name)


@pytest.mark.parametrize("act", ["cancel", "retry"])
def test_a_job_s_form_takes_any_reason(cast: Cast, act: str) -> None:
    actor = Actor(cast.tenant.id, "x")
    job = enqueue(actor=actor, kind="upkeep.expire", arguments={})
    if act == "retry":
        Job.objects.filter(id=job.id).update(state="failed")
    answer = cast.operator.post(cast.url(f"jobs/{job.id}/"), {"act": act, "reason": "a\0b"})
    assert answer.status_code in (302, 303), answer.content
    assert AuditEntry.objects.get(target=str(job.id)).reason == "a\u2400b"


@pytest.mark.parametrize(
    "typed", ["a\0b", "\ud800", {"name\0": ["\udfff", ("\0",)], "n": 3, "none": None}]
)
def test_an_audit_entry_keeps_whatever_was_typed_as_it_can_be_shown(cast: Cast, typed: Any) -> None:
    text = typed if isinstance(typed, str) else "\0"
    actor = Actor(cast.tenant.id, "x")
    record_audit(
        actor=actor,
        action="t.t",
        target=text,
        reason=text,
        before={"a": typed},
        after={text: typed},
    )
    kept = AuditEntry.objects.get(action="t.t")
    assert kept.reason
    assert "\0" not in repr((kept.before, kept.after, kept.reason))
