"""The socket: addresses, the log, control calls, keys, limits, and the command."""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import anthropic
import httpx2
import pytest

from ctxengine.providers.strict_local.exchange import Call
from ctxengine.providers.strict_local.request_log import RequestLog
from ctxengine.providers.strict_local.server import StrictServer
from tests.conftest import ROOT
from tests.providers.strict_local.bodies import GPT, SONNET, message, plain


def control(
    http: httpx2.Client, server: StrictServer, method: str, name: str, body: Any = None
) -> Any:
    return http.request(method, f"{server.url}/_strict/{name}", json=body)


def test_the_log_holds_the_bytes_that_were_sent_and_no_key(
    server: StrictServer, plain_http: httpx2.Client
) -> None:
    body = b'{ "model":"claude-sonnet-4-6","max_tokens":9,"messages":[{"role":"user","content":"\\u00e9"}]}'
    headers = {"x-api-key": "sk-secret", "anthropic-version": "2026-10-21"}
    plain_http.post(f"{server.url}/v1/messages", content=body, headers=headers)
    (entry,) = server.provider.log.entries()
    assert (entry.body, entry.status, entry.path) == (body, 200, "/v1/messages")
    answer = control(plain_http, server, "GET", "requests")
    (listed,) = answer.json()["requests"]
    assert base64.b64decode(listed["body_base64"]) == body
    assert "sk-secret" not in answer.text
    control(plain_http, server, "DELETE", "requests")
    assert server.provider.log.entries() == []


def test_a_script_is_queued_over_the_wire(
    server: StrictServer, plain_http: httpx2.Client, claude: anthropic.Anthropic
) -> None:
    replies = {"replies": [{"text": "First.", "plain": True}, {"text": "Never."}]}
    assert control(plain_http, server, "POST", "script", replies).json()["queued"] == 2
    assert plain(claude.messages.create(**message()).content[0])["text"] == "First."
    assert control(plain_http, server, "DELETE", "script").json()["queued"] == 0
    refused = control(plain_http, server, "POST", "script", {"replies": [{"txt": "x"}]})
    assert refused.status_code == 400
    assert "'txt'" in refused.json()["error"]
    assert control(plain_http, server, "GET", "unknown").status_code == 404


def test_the_clock_moves_on_and_never_back(server: StrictServer, plain_http: httpx2.Client) -> None:
    before = control(plain_http, server, "GET", "script").json()["now"]
    after = control(plain_http, server, "POST", "clock", {"advance_seconds": 90}).json()["now"]
    assert after - before == 90
    assert control(plain_http, server, "POST", "clock", {"advance_seconds": -1}).status_code == 400


@pytest.mark.parametrize(
    ("path", "headers", "wording"),
    [
        ("/v1/messages", {"anthropic-version": "2026-10-21"}, "x-api-key header is required"),
        ("/v1/chat/completions", {}, "You didn't provide an API key."),
    ],
)
def test_a_key_is_needed(
    server: StrictServer, plain_http: httpx2.Client, path: str, headers: Any, wording: str
) -> None:
    answer = plain_http.post(server.url + path, json={}, headers=headers)
    assert answer.status_code == 401
    assert wording in answer.json()["error"]["message"]


@pytest.mark.parametrize("version", [None, "2020-01-01"])
def test_a_version_is_needed(
    server: StrictServer, plain_http: httpx2.Client, version: str | None
) -> None:
    headers = {"x-api-key": "k"} | ({"anthropic-version": version} if version else {})
    answer = plain_http.post(f"{server.url}/v1/messages", json=message(), headers=headers)
    assert answer.status_code == 400
    assert "anthropic-version" in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions", "/v1/responses"])
@pytest.mark.parametrize("body", [b"{", b"[]", b'"\xff"', b"[" * 100_000])
def test_what_is_no_json_object_is_refused(
    server: StrictServer, plain_http: httpx2.Client, path: str, body: bytes
) -> None:
    headers = {"authorization": "Bearer k", "anthropic-version": "2026-10-21"}
    answer = plain_http.post(server.url + path, content=body, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


def raw(server: StrictServer, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]))
    connection.putrequest("POST", "/v1/messages", skip_host=True, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example:80", "content-length": "0"}, 403),
        ({"host": "127.0.0.1", "transfer-encoding": "chunked"}, 411),
        ({"host": "localhost", "content-length": "99999999999"}, 413),
        ({"host": "localhost", "content-length": "many"}, 413),
    ],
)
def test_what_never_reaches_the_provider(
    shared_server: StrictServer, headers: dict[str, str], status: int
) -> None:
    assert raw(shared_server, headers) == status


def test_stopping_ends_what_is_stalled(plain_http: httpx2.Client) -> None:
    server = StrictServer().start()
    failed: list[Exception] = []

    def wait() -> None:
        body = message(messages=[{"role": "user", "content": "strict: stall 60"}])
        headers = {"x-api-key": "k", "anthropic-version": "2026-10-21"}
        try:
            plain_http.post(f"{server.url}/v1/messages", json=body, headers=headers, timeout=30)
        except httpx2.HTTPError as error:
            failed.append(error)

    client = threading.Thread(target=wait)
    client.start()
    while not server.provider.log.entries():
        time.sleep(0.005)
    server.stop()
    client.join(10)
    assert not client.is_alive()
    assert len(failed) == 1


def test_the_log_forgets_the_oldest() -> None:
    log = RequestLog(most_entries=3, most_bytes=10)
    for number in range(5):
        log.add(Call("POST", f"/{number}", {}, b"12"), 200, 0.0)
    assert [entry.path for entry in log.entries()] == ["/2", "/3", "/4"]
    log.add(Call("POST", "/big", {}, b"1" * 50), 200, 0.0)
    assert [(entry.number, entry.path) for entry in log.entries()] == [(6, "/big")]


def test_two_instances_give_out_different_ids() -> None:
    ids = set()
    for _ in range(2):
        with StrictServer() as server:
            answer = httpx2.post(
                f"{server.openai_url}/responses",
                json={"model": GPT, "input": "Hello"},
                headers={"authorization": "Bearer k"},
                verify=False,
            )
            ids.add(answer.json()["id"])
    assert len(ids) == 2


def test_the_command_prints_its_address_answers_and_ends_on_sigterm() -> None:
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "strict_provider", "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env=os.environ | {"CTX_DATA_DIR": str(ROOT / "no-such-folder")},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "scripted" in line
        url = line.split(" at ")[1].split()[0]
        answer = httpx2.post(
            f"{url}/v1/messages",
            json=message(model=SONNET),
            headers={"x-api-key": "k", "anthropic-version": "2026-10-21"},
            verify=False,
        )
        assert json.loads(answer.text)["model"] == f"strict/{SONNET}"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
