"""The server: plain HTTP on the loopback interface, in its own threads."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from ctxengine.providers.strict_local.exchange import Answer, Call, json_answer
from ctxengine.providers.strict_local.provider import StrictProvider

HOST = "127.0.0.1"
MOST_BODY_BYTES = 64 * 1024 * 1024
_IDLE_SECONDS = 60.0
_LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})


class StrictServer:
    """A running provider; use it in a `with` statement, or call `start` and `stop`.

    Args:
        provider: what answers; a new one when left out.
        port: 0 takes a free one.
    """

    def __init__(self, provider: StrictProvider | None = None, port: int = 0) -> None:
        self.provider = provider or StrictProvider()
        self._http = _Http((HOST, port), self.provider)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The address, without a path: what the Anthropic SDK and Ollama's clients take."""
        return f"http://{HOST}:{self._http.server_address[1]}"

    @property
    def openai_url(self) -> str:
        """The address that the OpenAI SDK takes."""
        return f"{self.url}/v1"

    def start(self) -> Self:
        """Serve, in a thread of its own."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop serving, and break off what is still being answered."""
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
        self._http.hang_up()
        self._http.server_close()

    def __enter__(self) -> Self:
        """Start."""
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self.stop()


class _Http(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], provider: StrictProvider) -> None:
        super().__init__(address, _Handler)
        self.provider = provider
        self.ending = threading.Event()
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error of ours."""

    def hang_up(self) -> None:
        self.ending.set()
        with self._guard:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    protocol_version = "HTTP/1.1"
    server_version = "strict-local"
    sys_version = ""
    timeout = _IDLE_SECONDS
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the request log is the record."""

    def _serve(self) -> None:
        refused = self._refused()
        if refused is not None:
            self.close_connection = True
            self._send(refused)
            return
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        path = self.path.partition("?")[0].rstrip("/")
        answer = self.server.provider.handle(Call(self.command, path, headers, body))
        if answer.stall_seconds and self.server.ending.wait(answer.stall_seconds):
            self.close_connection = True
            return
        self.server.provider.begin(answer)
        self._send(answer)

    def _refused(self) -> Answer | None:
        """What no provider is asked about: a foreign host name, a body without a length or with too much."""
        host = self.headers.get("host", "").lower()
        if host.rpartition(":")[0] not in _LOCAL_NAMES and host not in _LOCAL_NAMES:
            return json_answer({"error": "This provider answers on loopback only."}, 403)
        if self.headers.get("transfer-encoding"):
            return json_answer({"error": "A body needs a content-length."}, 411)
        length = self.headers.get("content-length") or "0"
        if not length.isdigit() or int(length) > MOST_BODY_BYTES:
            return json_answer({"error": f"A body may have {MOST_BODY_BYTES} bytes."}, 413)
        return None

    def _send(self, answer: Answer) -> None:
        try:
            self._send_head(answer)
            if answer.events is None:
                self._send_whole(answer)
            else:
                self._send_events(answer)
        except OSError:
            self.close_connection = True

    def _send_head(self, answer: Answer) -> None:
        # The status of an overloaded Anthropic is in no registry, and so has no phrase of its own.
        known = answer.status in {status.value for status in HTTPStatus}
        self.send_response(answer.status, None if known else "Overloaded")
        self.send_header("content-type", answer.content_type)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.events is None:
            self.send_header("content-length", str(len(answer.body)))
        else:
            self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _send_whole(self, answer: Answer) -> None:
        if answer.cut_after_events is not None:
            self.wfile.write(answer.body[: len(answer.body) // 2])
            self.close_connection = True
            return
        self.wfile.write(answer.body)

    def _send_events(self, answer: Answer) -> None:
        for number, event in enumerate(answer.events or ()):
            if number == answer.cut_after_events:
                self.close_connection = True
                return
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
        self.wfile.write(b"0\r\n\r\n")
