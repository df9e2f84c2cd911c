"""Errors of a call in our own words: classified once, without the provider's text (providers.md 3)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from ctxengine.providers.adapters.contract import ProviderError
from ctxengine.providers.failures import Failure, read_failure, status_in_stream
from ctxengine.providers.spoken import words_of

MOST_RETRY_AFTER_S = 3_600.0
_RETRY_DELAY = re.compile(r'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"')
_SAYS: Mapping[str, str] = {
    "over_length": "the prompt is longer than the model takes",
    "rate_limited": "too many calls or tokens for the moment",
    "transient": "it could not serve the call just now",
    "auth": "it refused the key, or what the key may do",
    "invalid_request": "it refused the request as invalid",
    "too_large": "the request has more bytes than it takes",
}


def of_status(
    provider: str, status: int, body: object, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """What an error status means; `body` is the decoded body, or its text.

    An error that arrives inside a stream of status 200 is judged by its type.
    """
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)
    judged = status if status >= 400 else status_in_stream(body, text)
    failure = read_failure(judged, text)
    return ProviderError(
        failure.code,
        _detail(provider, judged, failure, words_of(body)),
        status=judged,
        retryable=failure.code in ("rate_limited", "transient"),
        retry_after_s=_retry_after(headers or {}, text),
        actual=failure.actual,
        maximum=failure.maximum,
    )


def redirected(provider: str, status: int) -> ProviderError:
    """An answer that points elsewhere, which is not followed."""
    return ProviderError(
        "not_allowed",
        f"{provider} answered with a redirect ({status}); keys follow none. List the final address.",
        status=status,
    )


def unreachable(provider: str) -> ProviderError:
    """No connection, or one that broke off."""
    return ProviderError(
        "transient",
        f"{provider} could not be reached, or the connection broke off.",
        retryable=True,
    )


def timed_out(provider: str) -> ProviderError:
    """Nothing, or not all, arrived in time."""
    return ProviderError("transient", f"{provider} did not answer in time.", retryable=True)


def cut_off(provider: str) -> ProviderError:
    """A stream that ended before its answer did."""
    return ProviderError(
        "transient", f"The answer of {provider} broke off before its end.", retryable=True
    )


def unreadable(provider: str) -> ProviderError:
    """An answer of another shape than the API's."""
    return ProviderError("bad_answer", f"The answer of {provider} could not be read.")


def _detail(provider: str, status: int, failure: Failure, words: list[str]) -> str:
    says = _SAYS[failure.code]
    if failure.code == "over_length" and failure.maximum is not None:
        found = f"{failure.actual:,} tokens" if failure.actual is not None else "the prompt"
        says = f"{found} do not fit the {failure.maximum:,} that it takes"
    named = f", {words[0]}" if words else ""
    return f"{provider} answered {status}{named}: {says}."


def _retry_after(headers: Mapping[str, str], text: str) -> float | None:
    if (exact := headers.get("retry-after-ms")) is not None:
        return _bounded(exact, 1_000)
    stated = headers.get("retry-after")
    if stated is None:
        match = _RETRY_DELAY.search(text)
        return _bounded(match[1]) if match else None
    return _bounded(stated) if re.match(r"\s*\d", stated) else _until(stated)


def _bounded(number: str, parts: float = 1.0) -> float | None:
    try:
        seconds = float(number) / parts
    except ValueError:
        return None
    return min(max(seconds, 0.0), MOST_RETRY_AFTER_S) if seconds == seconds else None


def _until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    left = (aware - datetime.now(UTC)).total_seconds()
    return min(max(left, 0.0), MOST_RETRY_AFTER_S)
