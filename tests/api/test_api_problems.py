"""Every refusal is a problem document with a stable code, and no input makes the server fail."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError
from django.test import override_settings

from api import problems
from api.problems import PROBLEMS, Problem, problem_document
from ctxengine.engine.errors import BudgetExceeded, PlanOverflow, PrefixDrift
from ctxengine.service.specs import ServiceError
from tests.api.door import Door

ROOT = Path(__file__).parents[2]
NOBODY = UUID("5f7a3c1e-0000-4000-8000-000000000000")
"""An id that nothing has; constant, so that every worker collects the same tests."""
DEEP = b'{"title":' + b"[" * 450 + b"]" * 450 + b"}"


@pytest.mark.parametrize(
    ("raw", "code", "status"),
    [
        (b"{", "invalid_json", 400),
        (b"", "missing_field", 422),
        (b"[]", "invalid_json", 400),
        (b'"text"', "invalid_json", 400),
        (b"{} {}", "invalid_json", 400),
        (b"\xef\xbb\xbf{}", "invalid_json", 400),
        (b'{"title":"\xff"}', "invalid_utf8", 400),
        (b'{"title":"\xed\xa0\x80"}', "invalid_utf8", 400),
        (DEEP, "too_deep", 400),
        (b'{"titel":"x"}', "unknown_field", 400),
        (b'{"title":"a","title":"b"}', "duplicate_field", 400),
        (b'{"title":"a"}', "missing_field", 422),
        (b'{"title":1}', "invalid_field", 422),
    ],
)
def test_a_body_that_cannot_be_read_says_what_is_wrong_with_it(
    door: Door, raw: bytes, code: str, status: int
) -> None:
    answer = door.send("POST", "sessions", raw=raw)
    assert (
        (answer.status, answer.code) in {(status, code), (422, "missing_field")}
        if status == 422
        else [(status, code)]
    )


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "",
        "application/json; charset=latin-1",
        "a/b;c",
    ],
)
def test_a_body_of_another_type_is_refused(door: Door, content_type: str) -> None:
    answer = door.send("POST", "sessions", raw=b"{}", content_type=content_type)
    assert (answer.status, answer.code) == (415, "unsupported_media_type")


def test_a_json_type_with_parameters_is_read(door: Door) -> None:
    answer = door.send(
        "POST", "sessions", raw=b"{}", content_type="Application/JSON; Charset=UTF-8"
    )
    assert answer.code == "missing_field"


def test_a_packed_body_is_refused(door: Door) -> None:
    answer = door.send("POST", "sessions", raw=b"{}", HTTP_CONTENT_ENCODING="gzip")
    assert (answer.status, answer.code) == (415, "unsupported_media_type")


@override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=100)
@pytest.mark.parametrize("path", ["sessions", "imports"])
def test_a_body_beyond_the_limit_is_refused_before_it_is_read(door: Door, path: str) -> None:
    answer = door.send("POST", path, raw=b"x" * 101)
    assert (answer.status, answer.code) == (413, "too_large")
    assert answer.json["limit"] == 100


@pytest.mark.parametrize(("length", "code"), [("abc", "unreadable_body"), ("9" * 30, "too_large")])
def test_a_wrong_content_length_is_no_failure_of_the_server(
    door: Door, length: str, code: str
) -> None:
    assert door.send("POST", "sessions", raw=b"{}", CONTENT_LENGTH=length).code == code


def test_a_body_in_chunks_needs_a_length(door: Door) -> None:
    answer = door.send(
        "POST", "sessions", raw=b"", HTTP_TRANSFER_ENCODING="chunked", CONTENT_LENGTH=""
    )
    assert (answer.status, answer.code) == (411, "length_required")


def test_unknown_fields_are_named_with_their_path(door: Door) -> None:
    body = {
        "model": {"provider": "anthropic", "name": "m", "flavour": 1},
        "agent": {"name": "a", "version": "1"},
        "tools": [{"name": "t", "schema": {}}],
        "colour": [],
    }
    answer = door.post("sessions", body)
    assert answer.code == "unknown_field"
    assert [error["field"] for error in answer.json["errors"]] == [
        "model.flavour",
        "tools[0].schema",
        "colour",
    ]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "nowhere", 404, "not_found"),
        ("POST", "sessions/not-a-uuid/runs", 404, "not_found"),
        ("GET", "sessions/", 404, "not_found"),
        ("GET", f"sessions/{NOBODY}", 404, "not_found"),
        ("GET", f"sessions/{NOBODY}/events", 404, "not_found"),
        ("GET", f"sessions/{NOBODY}/requests", 404, "not_found"),
        ("GET", f"sessions/{NOBODY}/plan", 404, "not_found"),
        ("GET", f"sessions/{NOBODY}/plans/1", 404, "not_found"),
        ("GET", f"sessions/{NOBODY}/items/1.0", 404, "not_found"),
        ("GET", f"sessions/{NOBODY}/items/999999999999999999.999999999", 404, "not_found"),
        ("GET", f"sessions/{NOBODY}/items/1", 404, "not_found"),
        ("GET", f"requests/{NOBODY}", 404, "not_found"),
        ("GET", f"requests/{NOBODY}/body", 404, "not_found"),
        ("GET", f"requests/{NOBODY}/replay", 404, "not_found"),
        ("GET", f"requests/{NOBODY}/diff/{NOBODY}", 404, "not_found"),
        ("GET", "imports/" + "0" * 64, 404, "not_found"),
        ("PUT", "sessions", 405, "method_not_allowed"),
        ("DELETE", f"sessions/{NOBODY}", 405, "method_not_allowed"),
        ("OPTIONS", "sessions", 405, "method_not_allowed"),
        ("GET", "sessions?colour=red", 400, "unknown_parameter"),
        ("GET", "sessions?limit=0", 400, "invalid_parameter"),
        ("GET", "sessions?limit=5&limit=6", 400, "invalid_parameter"),
        ("GET", "sessions?engine=best", 400, "invalid_parameter"),
        ("GET", "sessions?q=%00", 400, "invalid_parameter"),
        ("GET", "sessions?cursor=abc", 400, "invalid_cursor"),
        ("POST", "sessions?name=x", 400, "unknown_parameter"),
    ],
)
def test_an_address_or_query_that_leads_nowhere(
    door: Door, method: str, path: str, status: int, code: str
) -> None:
    answer = door.send(method, path)
    assert (answer.status, answer.code) == (status, code)
    if status == 405:
        assert answer.headers["Allow"]


@pytest.mark.parametrize(
    "path",
    ["assemble", "responses", "tool-results", "input", "end"],
)
def test_writes_to_a_run_that_is_not_there(door: Door, path: str) -> None:
    bodies: dict[str, Any] = {
        "responses": {"response": {"content": []}},
        "tool-results": {"results": [{"call_id": "a", "content": "b"}]},
        "input": {"message": "x"},
    }
    answer = door.post(f"runs/{NOBODY}/{path}", bodies.get(path, {}))
    assert (answer.status, answer.code) == (404, "not_found")


def test_no_accept_header_is_asked(door: Door) -> None:
    answer = door.send("GET", "sessions", HTTP_ACCEPT="text/html")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"


def test_our_own_failures_tell_nothing_and_log_no_content(
    door: Door, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("secret inside")

    monkeypatch.setattr("api.v1.sessions.session_page", fail)
    answer = door.get("sessions?q=private-words")
    assert (answer.status, answer.code) == (500, "internal_error")
    assert b"secret" not in answer.raw
    logged = [record for record in caplog.records if record.name == "api.problems"]
    assert logged
    assert "private-words" not in " ".join(record.getMessage() for record in logged)


def test_a_database_that_is_away_is_a_503(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise OperationalError("gone")

    monkeypatch.setattr("api.v1.sessions.session_page", fail)
    answer = door.get("sessions")
    assert (answer.status, answer.code) == (503, "unavailable")
    assert answer.headers["Retry-After"] == "1"


def test_engine_errors_about_the_input_are_refusals_and_others_are_not() -> None:
    overflow = problems.refusal_of(PlanOverflow("tool_definitions", 9412, 9000, "Defer one."))
    assert overflow is not None
    assert overflow.status_code == 422
    exceeded = problems.refusal_of(BudgetExceeded("never_yield", 12500, 11129, "Shorten it."))
    assert exceeded is not None
    assert exceeded.status_code == 409
    assert problems.refusal_of(PrefixDrift("hash differs")) is None


def test_extra_members_never_displace_the_standard_ones() -> None:
    document = problem_document("x_code", 409, "what", {"code": "other", "status": 1, "needed": 5})
    assert document == {
        "type": "urn:ctxengine:problem:x_code",
        "title": "Conflict",
        "status": 409,
        "detail": "what",
        "code": "x_code",
        "needed": 5,
    }


def test_a_service_refusal_keeps_its_figures() -> None:
    response = problems.refusal_of(ServiceError("stale_head", 409, "Again.", head=4))
    assert response is not None
    assert b'"head":4' in response.content


def test_codes_are_unique_and_the_reference_page_lists_them_all() -> None:
    codes = [kind.code for kind in PROBLEMS]
    assert len(set(codes)) == len(codes)
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = [line for line in page.splitlines() if line.startswith("| `")]
    for kind in PROBLEMS:
        assert f"| `{kind.code}` | {kind.status} | {kind.title} | {kind.remedy} |" in listed


def test_a_door_problem_takes_its_status_from_the_table() -> None:
    assert Problem("run_open", "x").kind.status == 409
    with pytest.raises(KeyError):
        Problem("no_such_code", "x")


def codes_raised_by_services() -> set[str]:
    """First arguments of `ServiceError(...)`, and codes in the table of engine refusals."""
    found = set()
    for path in (ROOT / "ctxengine" / "service").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id == "ServiceError" and isinstance(node.args[0], ast.Constant):
                found.add(str(node.args[0].value))
    return found


def test_every_code_that_a_service_raises_is_in_the_table() -> None:
    known = {kind.code for kind in PROBLEMS}
    of_key_management = {"invalid_key", "invalid_scope"}
    of_the_console = {"last_admin", "name_taken", "too_many"}
    assert codes_raised_by_services() - known - of_key_management - of_the_console == set()
