"""What a failed call says: our words, a safe code of the provider's, when to come back, and nothing of the prompt."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.providers.adapters.refusals import MOST_RETRY_AFTER_S, of_status

CANARY = "canary-9f3b"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "99999999"}, MOST_RETRY_AFTER_S),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "1e999"}, MOST_RETRY_AFTER_S),
        ({}, None),
    ],
)
def test_when_to_come_back(headers: dict[str, str], seconds: float | None) -> None:
    assert of_status("openai", 429, {}, headers).retry_after_s == seconds


def test_a_date_to_come_back_at() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    seconds = of_status("openai", 503, "", {"retry-after": later}).retry_after_s
    assert seconds is not None and 90 < seconds <= 100


@pytest.mark.parametrize(
    "body",
    [
        CANARY,
        {"error": {"message": CANARY, "type": f"{CANARY} words"}},
        {"error": {"message": "x", "code": CANARY + "\n"}},
        [{"error": {"status": CANARY + "!"}}],
        {"message": CANARY, "__type": ["ValidationException", CANARY]},
    ],
)
def test_no_text_of_the_provider_comes_through(body: Any) -> None:
    error = of_status("openai", 400, body)
    assert CANARY not in repr(error) + error.detail + str(error.args)
    assert error.__cause__ is None and error.__context__ is None


@pytest.mark.parametrize(
    ("body", "code", "status"),
    [
        ({"type": "error", "error": {"type": "overloaded_error"}}, "transient", 529),
        ({"type": "error", "error": {"type": "rate_limit_error"}}, "rate_limited", 429),
        ({"type": "error", "error": {"type": "authentication_error"}}, "auth", 401),
        ({"error": {"code": 502, "message": "upstream"}}, "transient", 502),
        ({"error": {"code": "context_length_exceeded"}}, "over_length", 400),
        ({"code": "server_error", "message": "x"}, "transient", 500),
        ({"surprise": 1}, "transient", 500),
        (None, "transient", 500),
    ],
)
def test_an_error_in_a_stream_is_judged_by_its_kind(body: Any, code: str, status: int) -> None:
    error = of_status("anthropic", 200, body)
    assert (error.code, error.status) == (code, status)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "code", "type", "details", "message", "status"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.integers(200, 599), json_values)
def test_any_body_gives_a_classified_error(status: int, body: Any) -> None:
    error = of_status("anthropic", status, body, {})
    assert error.code and 400 <= (error.status or 0) < 600
    assert error.retryable == (error.code in ("rate_limited", "transient"))
