"""Canaries go in at every door, and every sink is searched for them: tables, logs, error pages.

What each may stand in is written down here; a new table or column that takes one of them in fails until somebody decides.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from ctxengine.providers.adapters.secret import Secret
from tests.api.door import Door, key_for, new_tenant

pytestmark = pytest.mark.django_db

PROVIDER_KEY = "canary-provider-key-41c9d2"
PROMPT = "canaryprompt71f0"
RESULT = "canaryresult83ab"
REASONING = "canaryreasoning5d"
SIGNATURE = "Q2FuYXJ5U2lnbmF0dXJl" * 4
SECRET = "sk-ant-" + "api03-" + "Zz9Yy8Xx" * 11
TOOL = {
    "name": "fetch",
    "description": "Fetches.",
    "input_schema": {"type": "object", "properties": {"url": {"type": "string"}}},
}

HOLDS_CONTENT = frozenset({"body", "item", "closed_turn"})
"""Tables that may hold what was said: the body store, and what is derived from it to be found and listed."""


@pytest.fixture
def logged() -> Iterator[list[str]]:
    lines: list[str] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage() + str(record.exc_info or "") + str(record.__dict__))

    handler = Keeping(level=logging.DEBUG)
    loggers = [logging.getLogger(), logging.getLogger("django"), logging.getLogger("ctxengine")]
    levels = [(logger, logger.level) for logger in loggers]
    for logger, _ in levels:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    # The database's own debug log repeats statements with their values; it is on under CTX_DEBUG alone.
    logging.getLogger("django.db.backends").setLevel(logging.INFO)
    yield lines
    for logger, level in levels:
        logger.removeHandler(handler)
        logger.setLevel(level)


def lived(door: Door, engine: str) -> list[bytes]:
    """A turn with a prompt, a call, a result with a secret in it, and signed reasoning; gives the answers that list things."""
    session = door.send(
        "POST",
        "sessions",
        {
            "engine": engine,
            "model": {"provider": "anthropic", "name": "claude-sonnet-4-6"},
            "agent": {"name": "scout", "version": "1", "instructions": "Be short."},
            "principal": {"id": "ada"},
            "tools": [TOOL],
        },
        once="open",
    ).ok()["id"]
    asked = {"message": f"{PROMPT} with {SECRET}"}
    run = door.send("POST", f"sessions/{session}/runs", asked, once="ask").ok()["id"]
    request = door.send("POST", f"runs/{run}/assemble", {}, once="build").ok()["request_id"]
    answer = {
        "content": [
            {"type": "thinking", "thinking": REASONING, "signature": SIGNATURE},
            {"type": "tool_use", "id": "toolu_1", "name": "fetch", "input": {"url": "https://a.example"}},
        ],
        "stop_reason": "tool_use",
    }  # fmt: skip
    door.send("POST", f"runs/{run}/responses", {"response": answer}, once="hear").ok()
    result = {"results": [{"call_id": "toolu_1", "content": f"{RESULT} and {SECRET}"}]}
    door.send("POST", f"runs/{run}/tool-results", result, once="result").ok()
    door.send("POST", f"runs/{run}/assemble", {}, once="again").ok()
    door.send("POST", f"runs/{run}/assemble", {"nonsense": PROMPT + SECRET})
    door.send("POST", f"runs/{run}/responses", raw=b'{"response": ' + PROMPT.encode())
    listing = [
        door.send("GET", path).raw
        for path in (
            "sessions", f"sessions/{session}/events", f"sessions/{session}/events?bodies=1",
            f"requests/{request}", "jobs", "audit",
        )
    ]  # fmt: skip
    final = {"content": [{"type": "text", "text": f"Done: {SECRET}"}], "stop_reason": "end_turn"}
    door.send("POST", f"runs/{run}/responses", {"response": final}, once="end").ok()
    return listing


def tables() -> list[str]:
    with connection.cursor() as cursor:
        return [table.name for table in connection.introspection.get_table_list(cursor)]


def holding(needle: str) -> set[str]:
    """Tables with a row that holds these characters, as text or as bytes."""
    found = set()
    with connection.cursor() as cursor:
        for table in tables():
            quoted = connection.ops.quote_name(table)
            cursor.execute(
                f"SELECT count(*) FROM {quoted} t WHERE position(%s in t::text) > 0"
                f" OR position(%s in t::text) > 0",
                [needle, needle.encode().hex()],
            )
            if cursor.fetchone()[0]:
                found.add(table)
    return found


@pytest.mark.parametrize("engine", ["suffix"])
def test_no_canary_stands_where_it_must_not(engine: str, logged: list[str], settings: Any) -> None:
    settings.CTX_PROVIDER_KEYS = {"anthropic": Secret(PROVIDER_KEY)}
    key = key_for(new_tenant("alice"))
    listing = lived(Door(key), engine)
    log = "\n".join(logged)
    assert log, "nothing was logged at all, so that nothing was searched"
    for canary in (key, PROVIDER_KEY, PROMPT, RESULT, REASONING, SIGNATURE, SECRET):
        assert canary not in log, f"{canary} was logged"
    assert holding(key) == set()
    assert holding(PROVIDER_KEY) == set()
    # Reasoning lies encrypted in the run's checkpoint while the run is open, and nowhere once it has ended.
    assert holding(REASONING) == set()
    assert holding(SIGNATURE) == set()
    assert holding(PROMPT) <= HOLDS_CONTENT
    assert holding(PROMPT) >= {"body"}
    assert holding(RESULT) <= HOLDS_CONTENT
    assert holding(SECRET) == {"body"}, "only the body store holds an unmasked secret"
    seen = b"\n".join(listing)
    assert PROMPT.encode() in seen
    for canary in (key, PROVIDER_KEY, REASONING, SIGNATURE):
        assert canary.encode() not in seen


def test_an_error_page_tells_nothing_of_what_was_sent(
    logged: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**_: Any) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("api.v1.sessions.open_session", broken)
    key = key_for(new_tenant("alice"))
    body = {
        "model": {"provider": "anthropic", "name": "claude-sonnet-4-6"},
        "agent": {"name": "scout", "version": "1", "instructions": PROMPT},
    }
    answer = Door(key).send("POST", "sessions", body)
    assert (answer.status, answer.code) == (500, "internal_error")
    assert "RuntimeError" in "\n".join(logged)
    for canary in (key, PROMPT, "RuntimeError", "a defect"):
        assert canary not in json.dumps(answer.json)
    for canary in (key, PROMPT):
        assert canary not in "\n".join(logged)
