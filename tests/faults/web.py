"""A web server of the product as a real process that a test may kill, and a runtime that calls it and repeats what failed."""

from __future__ import annotations

import http.client
import json
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ctxengine.ledger.models import Event
from ctxengine.service.issue_key import issue_key
from ctxengine.service.specs import Actor
from ctxengine.site.postgres.server import EmbeddedPostgres
from tests.api.door import ALL_SCOPES, MODEL, WEATHER, new_tenant
from tests.faults import deaths
from tests.faults.stage import PATIENCE_S, Process, environment_of, eventually, free_port

TROUBLE = (http.client.HTTPException, OSError)
NOBODY_LISTENS = "redis://127.0.0.1:1/0"


class Heard(NamedTuple):
    """An answer; status 0 where the connection broke."""

    status: int
    json: Any = None
    headers: Mapping[str, str] = {}

    @property
    def good(self) -> bool:
        return 200 <= self.status < 300


class Web:
    """gunicorn with one process that starts again when it is killed, as the supervisor's does."""

    def __init__(
        self, server: EmbeddedPostgres, database: str, folder: Path, extra: Mapping[str, str] | None = None
    ) -> None:  # fmt: skip
        """Nothing is started yet; `extra` is added to its environment."""
        folder.mkdir(exist_ok=True, parents=True)
        self.log = folder / "web.log"
        self.death = folder / "death.json"
        self.counts = folder / "counts.jsonl"
        self.clock = folder / "clock.txt"
        self.port = free_port()
        environment = environment_of(server, database, folder) | {
            "CELERY_BROKER_URL": NOBODY_LISTENS,
            "CTX_DB_POOL": "8",
            deaths.FILE: str(self.death),
            deaths.COUNTS: str(self.counts),
            deaths.CLOCK: str(self.clock),
            **(extra or {}),
        }
        command = [
            sys.executable, "-m", "gunicorn", "tests.faults.web_that_dies:application", "--preload",
            "--bind", f"127.0.0.1:{self.port}", "--worker-class", "gthread", "--workers", "1",
            "--threads", "8", "--log-level", "warning", "--no-control-socket", "--graceful-timeout", "1",
        ]  # fmt: skip
        self.process = Process(command, environment, self.log)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.process.start()
        eventually(lambda: self.send("GET", "/healthz", "").status, "a web server", self.said)

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-4000:] if self.log.exists() else ""

    def send(
        self, method: str, path: str, key: str, body: Any = None, *, once: str = "", raw: bytes | None = None
    ) -> Heard:  # fmt: skip
        """One call over a connection of its own."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        headers |= {"Idempotency-Key": once} if once else {}
        data = raw
        if body is not None:
            data = json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            text = answer.read()
        except TROUBLE:
            return Heard(0)
        finally:
            connection.close()
        found = json.loads(text) if "json" in (answer.getheader("Content-Type") or "") else None
        return Heard(answer.status, found, dict(answer.getheaders()))


class Call(NamedTuple):
    """One write of a conversation."""

    method: str
    path: str
    body: Any


class Conversation:
    """A session from its opening to its end, one write after the other, each of which can be interrupted and repeated."""

    STEPS = (
        "open", "run", "assemble", "calls", "results", "final", "note", "rotate", "pin", "input_run",
        "late_input", "end_run", "import", "erase", "end",
    )  # fmt: skip

    def __init__(self, web: Web) -> None:
        self.web = web
        self.tenant = new_tenant("faults")
        self.key = issue_key(actor=Actor(self.tenant, "system"), name="t", scopes=ALL_SCOPES).key
        self.session = ""
        self.run = ""
        self._kept: dict[str, str] = {}

    def call(self, step: str) -> Call:
        """The write of a step."""
        session, run = f"/api/v1/sessions/{self.session}", f"/api/v1/runs/{self.run}"
        asks = {
            "type": "tool_use",
            "id": "w1",
            "name": "weather",
            "input": {"city": "Oslo", "n": 1.0},
        }
        said = {"content": [{"type": "text", "text": "Rain."}], "stop_reason": "end_turn"}
        table: dict[str, Call] = {
            "open": Call("POST", "/api/v1/sessions", {
                "model": MODEL, "tools": [WEATHER], "principal": {"id": "p"},
                "agent": {"name": f"a-{self.tenant}", "version": "1", "instructions": "Help."},
            }),
            "run": Call("POST", f"{session}/runs", {"message": "Will it rain in Oslo?"}),
            "assemble": Call("POST", f"{run}/assemble", {"recall": [{"text": "It rained."}]}),
            "calls": Call("POST", f"{run}/responses", {
                "response": {"content": [asks], "stop_reason": "tool_use"}, "usage": {"input_tokens": 9},
            }),
            "results": Call("POST", f"{run}/tool-results", {
                "results": [{"call_id": "w1", "content": "Rain. " * 50}], "assemble": True,
            }),
            "final": Call("POST", f"{run}/responses", {"response": said, "usage": {"input_tokens": 9}}),
            "note": Call("PATCH", f"{session}/working-state", {"add_constraints": ["Be short."]}),
            "rotate": Call("POST", f"{session}/epochs", {"reason": "operator", "note": "again"}),
            "pin": Call("POST", f"{session}/presentation", {"target": "3", "form": "pinned"}),
            "input_run": Call("POST", f"{session}/runs", {"message": "And tomorrow?"}),
            "late_input": Call("POST", f"{run}/input", {"message": "In Bergen, too."}),
            "end_run": Call("POST", f"{run}/end", {}),
            "import": Call("POST", "/api/v1/imports", {"messages": [
                {"role": "user", "content": f"Which port, {self.tenant}?"},
                {"role": "assistant", "content": "5432."},
            ]}),
            "erase": Call("POST", "/api/v1/people/p/erase", {"note": "asked for"}),
            "end": Call("POST", f"{session}/end", {}),
        }  # fmt: skip
        return table[step]

    def send(self, step: str, once: str) -> Heard:
        """Send a step's write under a key, and learn the ids of a good answer."""
        method, path, body = self.call(step)
        heard = self.web.send(method, path, self.key, body, once=once)
        if heard.good and step == "open":
            self.session = heard.json["id"]
        if heard.good and step in {"run", "input_run"}:
            self.run = heard.json["id"]
        return heard

    def up_to(self, step: str) -> None:
        """Make all writes before this one."""
        for earlier in self.STEPS[: self.STEPS.index(step)]:
            self.one(earlier)

    def after(self, step: str) -> None:
        """Make all writes behind this one."""
        for later in self.STEPS[self.STEPS.index(step) + 1 :]:
            self.one(later)

    def one(self, step: str) -> None:
        """A write that nothing disturbs."""
        heard = self.send(step, uuid.uuid4().hex)
        assert heard.good, (step, heard, self.web.said())

    def repeated(self, step: str, once: str) -> Heard:
        """Send a write again until it is done, as a runtime does that got no answer; then once more."""
        done: list[Heard] = []

        def again() -> bool:
            heard = self.send(step, once)
            done[:] = [heard]
            waits = (
                heard.status in {0, 503}
                or (heard.json or {}).get("code") == "idempotency_in_progress"
            )
            assert waits or heard.good, (step, heard, self.web.said())
            return heard.good

        eventually(again, f"the answer to {step}", self.web.said)
        repeat = self.send(step, once)
        assert (repeat.status, repeat.json) == (done[0].status, done[0].json), step
        assert repeat.headers.get("Idempotency-Replayed") == "true", step
        return done[0]

    def types(self) -> list[tuple[int, str]]:
        """Sequence and type of every event of the tenant, sessions in the order of their first ones."""
        rows = Event.objects.filter(tenant_id=self.tenant)
        sessions: dict[Any, list[tuple[int, str]]] = {}
        for session, sequence, kind in rows.order_by("recorded_at", "sequence").values_list(
            "session_id", "sequence", "type"
        ):
            sessions.setdefault(session, []).append((sequence, kind))
        return [event for events in sessions.values() for event in sorted(events)]


class Undisturbed(NamedTuple):
    """A step of a conversation that meets no fault."""

    passed: dict[str, int]
    """How many places of each kind it goes past."""
    types: list[tuple[int, str]]
    """What the log holds after it."""


def undisturbed_steps(web: Web) -> dict[str, Undisturbed]:
    """A whole conversation, step by step."""
    conversation = Conversation(web)
    found = {}
    for step in Conversation.STEPS:
        web.counts.write_text("")
        conversation.one(step)
        eventually(lambda: web.counts.read_text().strip(), "the counts of a call")
        passed = json.loads(web.counts.read_text().splitlines()[-1])
        found[step] = Undisturbed(passed, conversation.types())
    return found
