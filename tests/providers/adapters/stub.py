"""Small stand-ins for Gemini and Bedrock on real sockets: they hold a request against their API's rules and answer as told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from ctxengine.engine.wire.base import WireApi
from ctxengine.engine.wire.rules import violations


@dataclass
class Told:
    """What the stub answers, and what it saw."""

    answers: list[Any] = field(default_factory=list)
    """Bodies: an object, or a list of objects for a stream."""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    """Whether the connection breaks off before the answer ends."""
    seen: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    """(method, path, headers, decoded body) of each call."""


@contextmanager
def serving(api: WireApi, told: Told) -> Iterator[str]:
    """A running stub; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

        def do_GET(self) -> None:
            self.answer(None)

        def do_POST(self) -> None:
            self.answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))

        def answer(self, body: Any) -> None:
            path, headers = (
                unquote(self.path),
                {name.lower(): value for name, value in self.headers.items()},
            )
            told.seen.append((self.command, path, headers, body))
            refused = refusal(api, path, headers, body)
            if refused is not None:
                self.reply(*refused, {})
                return
            self.reply(told.status, told.answers.pop(0), told.headers)

        def reply(self, status: int, value: Any, headers: dict[str, str]) -> None:
            streamed = isinstance(value, list)
            events = "".join(f"data: {json.dumps(one)}\r\n\r\n" for one in value)
            data = (events if streamed else json.dumps(value)).encode()
            self.send_response(status)
            for name, header in headers.items():
                self.send_header(name, header)
            self.send_header(
                "content-type", "text/event-stream" if streamed else "application/json"
            )
            self.send_header("content-length", str(len(data) + (100 if told.cut else 0)))
            self.end_headers()
            self.wfile.write(data)
            self.close_connection = told.cut

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def refusal(
    api: WireApi, path: str, headers: dict[str, str], body: Any
) -> tuple[int, dict[str, Any]] | None:
    """Status and error body of a request that breaks a rule."""
    if api is WireApi.GOOGLE:
        if not headers.get("x-goog-api-key"):
            return 403, google_error(403, "PERMISSION_DENIED", "No key.")
        if body is None:
            return None
        model = path.removeprefix("/v1beta/models/").partition(":")[0]
        request = body.get("generateContentRequest", body)
        found = violations(api, json.dumps({**request, "model": model}).encode())
        return (400, google_error(400, "INVALID_ARGUMENT", found[0].message)) if found else None
    if not headers.get("authorization", "").startswith("Bearer "):
        return 403, {"message": "No key."}
    if body is None:
        return None
    request = body.get("input", {}).get("converse", body)
    found = violations(api, json.dumps(request).encode())
    return (400, {"__type": "ValidationException", "message": found[0].message}) if found else None


def google_error(code: int, status: str, message: str, *details: Any) -> dict[str, Any]:
    """An error body of Gemini."""
    return {"error": {"code": code, "status": status, "message": message, "details": list(details)}}
