"""Search: items of any session by their words, behind the loop and never across tenants."""

from __future__ import annotations

from typing import Any

import pytest

from ctxengine.ledger.models import Job, SearchEntry, SearchHead, SessionRow
from ctxengine.ledger.search_words import places, spaced, wanted
from ctxengine.service.erase import erase_person
from ctxengine.service.search.index_session import index_session
from ctxengine.service.search.job import ask_for_index, behind
from ctxengine.service.search.texts import MOST_BYTES
from tests.factories import LiveSession, make_tenant
from tests.inspector.conftest import Cast
from tests.work_off import work_off

SECRET = "sk-ant-api03-" + "Ab3" * 31 + "AA"


def indexed(cast: Cast) -> Cast:
    ask_for_index()
    assert ("search.index", "done") in work_off(cast.tenant.id)
    return cast


def hits(cast: Cast, **query: str) -> list[tuple[str, str]]:
    """(role, item) of every hit."""
    return [
        (hit["role"], f"{hit['sequence']}.{hit['ordinal']}")
        for hit in cast.data("search.json", **query)
    ]


def test_words_phrases_and_scopes_find_items(cast: Cast) -> None:
    indexed(cast)
    roles = {role for role, _ in hits(cast, q="flaky")}
    assert roles == {"user"}
    assert hits(cast, q="FLAKY which") == hits(cast, q="which is flaky")
    assert hits(cast, q='"flaky which"') == []
    assert hits(cast, q='"Which test"')
    assert hits(cast, q="git") and not hits(cast, q="gi")
    assert {role for role, _ in hits(cast, q="git -repository")} == {"assistant"}
    assert hits(cast, q="repository role:tool") == hits(cast, q="repository", role="tool")
    assert hits(cast, q="notes trust:external")
    assert not hits(cast, q="notes trust:user")
    assert hits(cast, q="tool:shell.run kind:tool_call")
    assert hits(cast, q="row:10") and not hits(cast, q="row:9")
    assert hits(cast, q=f"flaky session:{cast.session.id}") == hits(cast, q="flaky")


def test_parts_of_paths_and_identifiers_are_words(cast: Cast) -> None:
    session = LiveSession(cast.tenant, title="Paths")
    session.ask("Look at src/billing/tax_rates.py, v1.2.3, and 締め切り.").answer("I looked.")
    indexed(cast)
    for text in (
        "billing",
        "tax_rates.py",
        "src/billing/tax_rates.py",
        "rates",
        "v1.2.3",
        "締め切り",
    ):
        assert hits(cast, q=text), text
    assert not hits(cast, q="billing/src")


def test_a_page_marks_what_it_found_and_counts_facets(cast: Cast) -> None:
    indexed(cast)
    page = cast.page("search/", q="repository")
    assert "<mark>repository</mark>" in page
    assert "?q=repository&amp;role=tool" in page
    narrowed = cast.page("search/", q="repository", role="tool")
    assert "Drop the filter role" in narrowed


def test_the_index_holds_no_secret_and_no_markup_runs(cast: Cast) -> None:
    session = LiveSession(cast.tenant, title="Keys")
    session.ask(f"Use {SECRET} <script>alert(1)</script> with care").answer("I keep it.")
    indexed(cast)
    assert not SearchEntry.objects.filter(text__contains=SECRET).exists()
    page = cast.page("search/", q="care")
    assert SECRET not in page
    assert "[secret:" in page
    assert "<script>alert" not in page


def test_what_another_tenant_said_is_never_found(cast: Cast) -> None:
    other = LiveSession(make_tenant(), title="Theirs").ask("A zebra in the yard.").answer("Yes.")
    index_session(tenant_id=other.tenant.id, session_id=other.id)
    indexed(cast)
    assert SearchEntry.objects.filter(text__contains="zebra").exists()
    assert hits(cast, q="zebra") == []
    assert hits(cast, q=f"tenant{other.tenant.id.hex} zebra") == []


def test_erasure_takes_the_text_along_and_no_later_index_brings_it_back(cast: Cast) -> None:
    indexed(cast)
    assert hits(cast, q="flaky")
    erase_person(actor=cast.session.actor, principal="mara@acme", note="asked")
    assert hits(cast, q="flaky") == []
    assert not SearchEntry.objects.filter(session_id=cast.session.id, text__icontains="flaky")
    SearchHead.objects.filter(session_id=cast.session.id).delete()
    index_session(tenant_id=cast.tenant.id, session_id=cast.session.id)
    assert hits(cast, q="flaky") == []


def test_a_step_writes_nothing_into_the_index(cast: Cast) -> None:
    assert not SearchEntry.objects.filter(session_id=cast.session.id).exists()
    assert not SearchHead.objects.filter(session_id=cast.session.id).exists()
    assert behind(cast.tenant.id).count() == 1


def test_only_what_is_new_is_indexed_and_twice_is_once(cast: Cast) -> None:
    first = index_session(tenant_id=cast.tenant.id, session_id=cast.session.id)
    assert first > 0
    assert index_session(tenant_id=cast.tenant.id, session_id=cast.session.id) == 0
    cast.session.ask("One more.").answer("Gladly.")
    assert index_session(tenant_id=cast.tenant.id, session_id=cast.session.id) == 2
    assert behind(cast.tenant.id).count() == 0
    SearchHead.objects.all().delete()
    index_session(tenant_id=cast.tenant.id, session_id=cast.session.id)
    assert SearchEntry.objects.filter(session_id=cast.session.id).count() == first + 2


def test_a_lagging_index_says_so_and_asks_for_its_job_once(cast: Cast) -> None:
    page = cast.page("search/", q="flaky")
    assert "1 session went on since it was indexed" in page
    cast.page("search/", q="flaky")
    assert Job.objects.filter(tenant_id=cast.tenant.id, kind="search.index").count() == 1
    indexed(cast)
    assert "went on since" not in cast.page("search/", q="flaky")


def test_a_huge_text_is_searched_in_its_first_part_and_says_so(cast: Cast) -> None:
    session = LiveSession(cast.tenant, title="Big")
    text = "needle " + "wörter " * (MOST_BYTES // 6) + " thimble"
    session.ask("Read.").step("shell.run", text).answer("Read.")
    indexed(cast)
    assert "searched in its first part only" in cast.page("search/", q="needle")
    assert hits(cast, q="thimble") == []


@pytest.mark.parametrize("q", ["colour:red", "role:nobody", "row:x", "session:abc"])
def test_a_query_that_cannot_be_read_is_400_and_kept(cast: Cast, q: str) -> None:
    response = cast.operator.get(cast.url("search/"), {"q": q})
    assert response.status_code == 400
    assert q in response.content.decode()


def test_pages_and_facets_cost_the_same_whatever_was_found(
    cast: Cast, django_assert_num_queries: Any
) -> None:
    indexed(cast)
    cast.page("search/", q="repository")
    for q in ("repository", "shell"):
        with django_assert_num_queries(11):
            cast.page("search/", q=q)
    assert SessionRow.objects.count()


def test_words_are_cut_alike_on_both_sides() -> None:
    assert spaced("Src/Main_2.py  ÄB 締切") == "src main 2 py äb 締 切"
    asked = wanted('a/b -c "d e" ::')
    assert asked.asked == '"a b" -"c" "d e"'
    assert places("x A/B y", asked.phrases) == [(2, 5)]
    assert places("xa/b", asked.phrases) == []
