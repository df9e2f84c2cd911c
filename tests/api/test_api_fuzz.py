"""Generated calls against the API's own schema: no input makes the server fail or answer off the record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, settings

from tests.api.door import Door, api_document

schemathesis = pytest.importorskip(
    "schemathesis", reason="generated API calls need schemathesis, which is not installed"
)
checks = pytest.importorskip("schemathesis.checks")

EXAMPLES_OF_EACH = 9


class SiteInOneTransaction(WSGIHandler):
    """The site as it is served, on the test's own connection, as Django's test client does it."""

    def __call__(self, environ: Any, start_response: Any) -> Any:
        for signal in (request_started, request_finished):
            signal.disconnect(close_old_connections)
        return super().__call__(environ, start_response)


def described() -> Any:
    """The schema, bound to the site."""
    schema = schemathesis.openapi.from_dict(api_document())
    schema.app = SiteInOneTransaction()
    return schema


schema = described()


@pytest.fixture(autouse=True)
def _signals_are_put_back() -> Iterator[None]:
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def places(door: Door) -> dict[str, str]:
    """A session with everything in it, for addresses that would else lead nowhere."""
    session = door.open()
    first = door.run(session)
    request = door.assemble(first)["request_id"]
    door.says(first, "Done.")
    run = door.run(session)
    other = door.assemble(run)["request_id"]
    return {
        "session": session,
        "run": run,
        "wanted": request,
        "other": other,
        "item": "3.0",
        "epoch": "1",
    }


@schema.parametrize()  # type: ignore[untyped-decorator]
@settings(
    max_examples=EXAMPLES_OF_EACH,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_a_generated_call_is_answered_as_described(
    case: Any, door: Door, places: dict[str, str]
) -> None:
    for name in case.path_parameters or {}:
        # An address of another shape is a 404 whatever else is sent; tests of their own cover that.
        case.path_parameters[name] = places.get(name, "0" * 64)
    headers = {"Authorization": f"Bearer {door.key}", "Host": "testserver"}
    response = case.call(base_url="http://testserver", headers=headers)
    case.validate_response(
        response,
        checks=[
            checks.not_a_server_error,
            checks.status_code_conformance,
            checks.content_type_conformance,
            checks.response_schema_conformance,
        ],
    )
