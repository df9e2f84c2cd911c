"""Calls without an SDK: JSON in, JSON or a stream of events out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx2

from ctxengine.providers.adapters.contract import Cancelled, never_cancelled
from ctxengine.providers.adapters.sending import Clockwork, guarded, http_client

Headers = Callable[[], Mapping[str, str]]
MOST_LINE_CHARS = 64 * 1024 * 1024


class PlainHttp:
    """One provider's address.

    Args:
        headers: made anew for each call, since a key may have been rotated.
    """

    def __init__(self, provider: str, base_url: str, headers: Headers) -> None:
        self._provider = provider
        self._base_url = base_url
        self._headers = headers

    def post(
        self,
        path: str,
        body: dict[str, Any],
        *,
        timeout_s: float,
        cancelled: Cancelled = never_cancelled,
    ) -> Any:
        """Decoded answer of one call.

        Raises:
            ProviderError: the call failed.
        """
        Clockwork(self._provider, timeout_s, cancelled).check()
        return self._call("POST", path, json.dumps(body).encode(), timeout_s)

    def get(self, path: str, *, timeout_s: float) -> Any:
        """Decoded answer of a query.

        Raises:
            ProviderError: the call failed.
        """
        return self._call("GET", path, None, timeout_s)

    def stream(
        self, path: str, body: dict[str, Any], clock: Clockwork, timeout_s: float
    ) -> Iterator[Any]:
        """JSON values of a streamed answer, one a line, with or without `data:` in front.

        To be read inside `guarded`, which turns what it raises into a `ProviderError`.
        """
        clock.check()
        with http_client(timeout_s) as client:
            request = client.build_request(
                "POST",
                self._base_url + path,
                content=json.dumps(body).encode(),
                headers=self._with_type(),
            )
            response = client.send(request, stream=True)
            try:
                _refuse(response)
                for line in clock.watched(response.iter_lines()):
                    text = line.removeprefix("data:").strip()
                    if text.startswith(("{", "[")) and len(text) <= MOST_LINE_CHARS:
                        yield json.loads(text)
            finally:
                response.close()

    def _call(self, method: str, path: str, content: bytes | None, timeout_s: float) -> Any:
        def call() -> Any:
            with http_client(timeout_s) as client:
                response = client.request(
                    method, self._base_url + path, content=content, headers=self._with_type()
                )
                _refuse(response)
                return response.json()

        return guarded(self._provider, None, call)

    def _with_type(self) -> dict[str, str]:
        return {"content-type": "application/json", **self._headers()}


def _refuse(response: httpx2.Response) -> None:
    """Raise for anything that is no success; a redirect is none."""
    if response.status_code >= 300:
        # Read now: the connection is gone by the time the error is looked at.
        response.read()
        raise httpx2.HTTPStatusError("refused", request=response.request, response=response)
