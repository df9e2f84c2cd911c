"""A key leaves in a header and nowhere else: not by a repr, an error, a traceback, a log, a page or the database."""

from __future__ import annotations

import copy
import io
import json
import logging
import pickle
import traceback
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.db import connection
from django.test import RequestFactory
from django.views.debug import ExceptionReporter

from ctxengine.providers.adapters.contract import Adapter, ProviderError
from ctxengine.providers.adapters.registry import adapter_for
from ctxengine.providers.adapters.secret import Secret
from ctxengine.service.side_calls import side_call
from ctxengine.site.env import SettingError
from ctxengine.site.logs import logging_settings
from ctxengine.site.provider_access import provider_keys
from tests.providers.adapters.conftest import prompt

QUESTION = "a private question"
CANARY = "sk-canary-5d41402abc4b2a76b9719d911017c592"
PROVIDERS = (
    "anthropic",
    "openai",
    "openai-responses",
    "openrouter",
    "google",
    "bedrock",
    "compatible",
)
every_provider = pytest.mark.parametrize("provider", PROVIDERS)


class Echo(ThreadingHTTPServer):
    """Refuses every call with an error that quotes its headers."""

    heard: str = ""
    status: int = 401


@pytest.fixture
def echo() -> Iterator[Echo]:
    class Handler(BaseHTTPRequestHandler):
        server: Echo

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.server.heard += str(self.headers)
            error = {"message": f"bad headers: {self.headers}", "type": str(self.headers)}
            data = json.dumps({"type": "error", "error": error}).encode()
            self.send_response(self.server.status)
            if 300 <= self.server.status < 400:
                self.send_header("location", "http://127.0.0.1:1/stolen")
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST

    server = Echo(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def adapter(provider: str, echo: Echo, settings: Any) -> Adapter:
    listed = f"http://127.0.0.1:{echo.server_address[1]}"
    settings.CTX_PROVIDER_URLS = {provider: listed}
    settings.CTX_PROVIDER_KEYS = {provider: Secret(CANARY)}
    return adapter_for(provider)


def fail(adapter: Adapter) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        adapter.send(adapter.render(prompt("model-1", QUESTION)), timeout_s=5)
    return caught.value


@every_provider
def test_the_key_is_sent_and_comes_back_nowhere(
    provider: str, adapter: Adapter, echo: Echo, caplog: pytest.LogCaptureFixture
) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    # As `CTX_LOG_LEVEL=DEBUG` sets them.
    for name, one in logging_settings("DEBUG")["loggers"].items():
        caplog.set_level(one["level"], name)
    caplog.set_level(logging.DEBUG)
    root.addHandler(handler)
    try:
        error = fail(adapter)
    finally:
        root.removeHandler(handler)
    logs = stream.getvalue() + caplog.text
    assert CANARY in echo.heard
    assert error.code == "auth"
    shown = "".join(traceback.format_exception(error)) + repr(error) + repr(vars(error))
    page = ExceptionReporter(
        RequestFactory().get("/"), type(error), error, error.__traceback__
    ).get_traceback_html()
    for where in (shown, page, logs, repr(adapter), repr(vars(adapter))):
        assert CANARY not in where
    assert QUESTION not in shown + logs
    assert error.__cause__ is None and error.__context__ is None


@every_provider
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_takes_the_key_along(
    provider: str, status: int, adapter: Adapter, echo: Echo
) -> None:
    echo.status = status
    assert fail(adapter).code == "not_allowed"


@pytest.mark.django_db
def test_neither_key_nor_prompt_stands_in_the_row_of_a_side_call(echo: Echo, settings: Any) -> None:
    settings.CTX_PROVIDER_URLS = {"openai": f"http://127.0.0.1:{echo.server_address[1]}"}
    settings.CTX_PROVIDER_KEYS = {"openai": Secret(CANARY)}
    with pytest.raises(ProviderError):
        side_call(
            tenant_id=uuid.uuid4(),
            provider="openai",
            prompt=prompt("gpt-5.4", QUESTION),
            purpose="summary",
            timeout_s=5,
        )
    with connection.cursor() as cursor:
        cursor.execute("SELECT side_call::text FROM side_call")
        rows = str(cursor.fetchall())
    assert "auth" in rows
    assert CANARY not in rows and "private" not in rows


def test_a_secret_shows_itself_to_reveal_alone(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(CANARY + "\n")
    for secret in (Secret(CANARY), Secret(path=file)):
        assert secret.reveal() == CANARY and bool(secret)
        for shown in (repr(secret), str(secret), f"{secret}", f"{[secret]!r}"):
            assert CANARY not in shown
        with pytest.raises(TypeError):
            pickle.dumps(secret)
        with pytest.raises(TypeError):
            copy.deepcopy(secret)


def test_a_file_is_read_anew_and_a_broken_one_is_no_key(tmp_path: Path) -> None:
    file = tmp_path / "key"
    secret = Secret(path=file)
    assert secret.reveal() is None
    file.write_text("one")
    assert secret.reveal() == "one"
    file.write_text("two")
    assert secret.reveal() == "two"
    for broken in (b"", b" \n", b"two\nlines", b"\xff\xfe"):
        file.write_bytes(broken)
        assert secret.reveal() is None


def test_keys_come_from_the_environment_or_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "key"
    file.write_text("from-file")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from-environment")
    monkeypatch.setenv("ANTHROPIC_API_KEY_FILE", str(file))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY_FILE", str(file))
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    keys = provider_keys()
    assert keys["anthropic"].reveal() == "from-environment"
    assert keys["openai"].reveal() == "from-file"
    assert not keys["google"]


def test_a_key_that_no_header_can_carry_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{CANARY}\r\nx-other: 1")
    with pytest.raises(SettingError, match="OPENAI_API_KEY") as caught:
        provider_keys()
    assert CANARY not in str(caught.value)
