"""One call over the network: time, cancelling, and every kind of failure turned into `ProviderError`.

The error is raised outside the handler that caught the SDK's, so that no traceback leads to a request, its headers or its
prompt.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from types import ModuleType
from typing import Any, TypeVar

import httpx2

from ctxengine.providers.adapters import refusals
from ctxengine.providers.adapters.contract import Cancelled, ProviderError, never_cancelled

T = TypeVar("T")

CONNECT_SECONDS = 10.0


class Clockwork:
    """The time of one call: when it began, when it must end, whether somebody cancelled it."""

    def __init__(self, provider: str, timeout_s: float, cancelled: Cancelled) -> None:
        self._provider = provider
        self._cancelled = cancelled
        self._start = time.monotonic()
        self._end = self._start + timeout_s
        self._first: float | None = None

    def check(self) -> None:
        """Go on, or stop.

        Raises:
            ProviderError: cancelled, or out of time.
        """
        if self._cancelled():
            raise ProviderError("cancelled", f"The call to {self._provider} was cancelled.")
        if time.monotonic() > self._end:
            raise refusals.timed_out(self._provider)

    def first_token(self) -> None:
        """Note that the first piece of the answer arrived."""
        if self._first is None:
            self._first = time.monotonic()

    @property
    def latency_ms(self) -> int:
        """Milliseconds since the call began."""
        return round((time.monotonic() - self._start) * 1000)

    @property
    def first_token_ms(self) -> int | None:
        """Milliseconds to the first piece; None where none came yet."""
        return None if self._first is None else round((self._first - self._start) * 1000)

    def watched(self, events: Iterable[T]) -> Iterator[T]:
        """Events one by one, with a check before each."""
        for event in events:
            self.check()
            yield event


def http_client(timeout_s: float) -> httpx2.Client:
    """A client for one call: it follows no redirect and bounds every wait."""
    timeout = httpx2.Timeout(timeout_s, connect=min(timeout_s, CONNECT_SECONDS))
    return httpx2.Client(timeout=timeout, follow_redirects=False, verify=_trusted())


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    """Read once: loading the certificates costs more than the rest of a client."""
    return httpx2.create_ssl_context()


def guarded(provider: str, sdk: ModuleType | None, call: Callable[[], T]) -> T:
    """Run a call, and turn whatever fails into a `ProviderError` that quotes nothing.

    Args:
        sdk: the SDK's module where one makes the call; its error classes have the same names in both.

    Raises:
        ProviderError: the call failed.
    """
    try:
        return call()
    except ProviderError:
        raise
    except Exception as error:
        failure = _failure_of(provider, sdk, error)
    raise failure


def _failure_of(provider: str, sdk: ModuleType | None, error: Exception) -> ProviderError:
    if isinstance(error, httpx2.HTTPStatusError):
        return _of_response(provider, error.response, _body_of(error.response))
    if isinstance(error, httpx2.TimeoutException):
        return refusals.timed_out(provider)
    if isinstance(error, httpx2.TransportError):
        return refusals.unreachable(provider)
    if sdk is not None:
        if isinstance(error, sdk.APIResponseValidationError):
            return refusals.unreadable(provider)
        if isinstance(error, sdk.APIStatusError):
            return _of_response(provider, error.response, error.body)
        if isinstance(error, sdk.APITimeoutError):
            return refusals.timed_out(provider)
        if isinstance(error, sdk.APIConnectionError):
            return refusals.unreachable(provider)
        if isinstance(error, sdk.APIError):
            return refusals.of_status(provider, 200, error.body)
    return refusals.unreadable(provider)


def _of_response(provider: str, response: httpx2.Response, body: object) -> ProviderError:
    if 300 <= response.status_code < 400:
        return refusals.redirected(provider, response.status_code)
    return refusals.of_status(provider, response.status_code, body, response.headers)


def _body_of(response: httpx2.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return response.text


__all__ = ["Clockwork", "guarded", "http_client", "never_cancelled"]
