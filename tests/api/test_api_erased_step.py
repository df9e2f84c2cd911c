"""A step that was built before some of its content was erased is not handed out broken, and the session goes on."""

from __future__ import annotations

from uuid import UUID

import pytest

from api.v1.assemble import assembled_json
from ctxengine.service.specs import Assembled, ServiceError
from tests.api.door import Door


def test_a_step_whose_content_was_erased_since_is_gone_and_the_next_one_is_built(
    door: Door,
) -> None:
    session = door.open(principal={"id": "p"})
    run = door.run(session, "Which port, asks somebody who will be forgotten?")
    door.assemble(run)
    door.post("people/p/erase", {"note": "asked for"}).ok()
    again = door.post(f"runs/{run}/assemble")
    assert (again.status, again.code) in {(410, "content_gone"), (409, "run_ended")}
    next_run = door.run(session, "And now?")
    assert door.assemble(next_run)["request"]["messages"]


def test_an_answer_never_holds_a_request_that_is_not_there() -> None:
    gone = Assembled(
        request_id=UUID(int=1), body=b"", manifest={}, budget={}, cache={}, prefix_sha256="",
        wire_prefix_sha256="", request_sha256="",
    )  # fmt: skip
    with pytest.raises(ServiceError, match="Append a message"):
        assembled_json(gone)


def test_an_address_with_a_line_end_is_a_problem_document_too(door: Door) -> None:
    for path in ("sessions/%0A%25", "people/a%0A/erase", "sessions/x%0A/plans", "%0A"):
        answer = door.get(path)
        assert (answer.status, answer.code) == (404, "not_found"), path
