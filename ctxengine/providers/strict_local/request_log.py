"""Every request as it came, for assertions about bytes."""

from __future__ import annotations

import base64
import hashlib
from collections import deque
from dataclasses import dataclass
from threading import Lock

from ctxengine.providers.strict_local.exchange import Call, Json

MOST_ENTRIES = 5_000
MOST_BYTES = 256 * 1024 * 1024
_SECRET_HEADERS = frozenset({"authorization", "x-api-key", "cookie"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One request and the status of its answer."""

    number: int
    at: float
    method: str
    path: str
    headers: dict[str, str]
    """Without the values of keys."""
    body: bytes
    status: int

    def as_json(self) -> Json:
        """The entry with its body both as text and as base64."""
        return {
            "number": self.number,
            "at": self.at,
            "method": self.method,
            "path": self.path,
            "headers": self.headers,
            "status": self.status,
            "sha256": hashlib.sha256(self.body).hexdigest(),
            "body": self.body.decode("utf-8", "replace"),
            "body_base64": base64.b64encode(self.body).decode(),
        }


class RequestLog:
    """The newest requests; the oldest go when there are too many of them or too many bytes."""

    def __init__(self, most_entries: int = MOST_ENTRIES, most_bytes: int = MOST_BYTES) -> None:
        """Start empty."""
        self._entries: deque[Entry] = deque()
        self._most_entries, self._most_bytes = most_entries, most_bytes
        self._bytes = 0
        self._count = 0
        self._lock = Lock()

    def add(self, call: Call, status: int, at: float) -> None:
        """Note a request."""
        shown = {
            name: "(hidden)" if name in _SECRET_HEADERS else value
            for name, value in call.headers.items()
        }
        with self._lock:
            self._count += 1
            entry = Entry(self._count, at, call.method, call.path, shown, call.body, status)
            self._entries.append(entry)
            self._bytes += len(call.body)
            while len(self._entries) > self._most_entries or (
                self._bytes > self._most_bytes and len(self._entries) > 1
            ):
                self._bytes -= len(self._entries.popleft().body)

    def entries(self) -> list[Entry]:
        """Those that are kept, oldest first."""
        with self._lock:
            return list(self._entries)

    def clear(self) -> None:
        """Forget all; numbers go on."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0
