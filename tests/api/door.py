"""A runtime as the tests play it: it speaks JSON over the REST door and knows nothing of the inside."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

from django.test import Client
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator

from ctxengine.ledger.models import Tenant
from ctxengine.service.issue_key import issue_key
from ctxengine.service.specs import Actor

ALL_SCOPES = ("runtime", "read", "operate")
MODEL = {"provider": "anthropic", "name": "claude-sonnet-4-6"}
WEATHER = {
    "name": "weather",
    "description": "Weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    raw: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def code(self) -> str:
        """The code of a problem document."""
        assert self.headers["Content-Type"] == "application/problem+json", self.raw[:500]
        document = self.json
        assert document["status"] == self.status
        assert set(document) >= {"type", "title", "status", "detail", "code"}
        return str(document["code"])

    def ok(self) -> Any:
        """The JSON of a good answer."""
        assert 200 <= self.status < 300, self.raw[:2000].decode("utf-8", "replace")
        return self.json


@dataclass
class Door:
    """The REST door with one key."""

    key: str
    client: Client = field(default_factory=lambda: Client(raise_request_exception=False))

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        content_type: str = "application/json",
        once: str | None = None,
        **extra: Any,
    ) -> Answer:
        """Send one call; `body` is written as JSON, `raw` goes as it is, `once` is the Idempotency-Key."""
        headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
        if once is not None:
            headers["idempotency-key"] = once
        data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        response = self.client.generic(
            method, f"/api/v1/{path}", data, content_type=content_type, headers=headers, **extra
        )
        return Answer(response.status_code, response.content, dict(response.headers))

    def get(self, path: str) -> Answer:
        return self.send("GET", path)

    def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.send(
            "POST", path, {} if body is None and "raw" not in options else body, **options
        )

    # --- the loop ---

    def open(self, **fields: Any) -> str:
        """Open a session; the agent's name is fresh, so that no two tests share a pinned version."""
        body = {
            "model": MODEL,
            "agent": {
                "name": f"agent-{uuid.uuid4().hex[:12]}",
                "version": "1",
                "instructions": "Help.",
            },
            "tools": [WEATHER],
            **fields,
        }
        return str(self.post("sessions", body).ok()["id"])

    def run(self, session: str, message: Any = "Hello?", **fields: Any) -> str:
        return str(self.post(f"sessions/{session}/runs", {"message": message, **fields}).ok()["id"])

    def assemble(self, run: str, **fields: Any) -> Any:
        return self.post(f"runs/{run}/assemble", fields).ok()

    def says(self, run: str, *content: Any, stop: str = "end_turn", **fields: Any) -> Any:
        """Report an answer made of content blocks; a string is a text block."""
        blocks = [
            {"type": "text", "text": part} if isinstance(part, str) else part for part in content
        ]
        response = {"content": blocks, "stop_reason": stop}
        return self.post(f"runs/{run}/responses", {"response": response, **fields}).ok()

    def calls(self, run: str, *calls: tuple[str, str, Any], **fields: Any) -> Any:
        """Report an answer that calls tools: (id, name, input)."""
        blocks = [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in calls]
        return self.says(run, *blocks, stop="tool_use", **fields)

    def results(self, run: str, *results: tuple[str, Any], **fields: Any) -> Any:
        """Report results: (call id, content)."""
        body = {"results": [{"call_id": i, "content": content} for i, content in results], **fields}
        return self.post(f"runs/{run}/tool-results", body).ok()

    def events(self, session: str, query: str = "") -> list[Any]:
        """Every event of a session, over as many pages as it takes."""
        items: list[Any] = []
        cursor = ""
        while True:
            page = self.get(f"sessions/{session}/events?{query}{cursor}").ok()
            items += page["items"]
            if page["next_cursor"] is None:
                return items
            cursor = f"&cursor={page['next_cursor']}"

    def replays(self, request: str) -> bool:
        """Whether a request rebuilds to its hash."""
        return bool(self.get(f"requests/{request}/replay").ok()["identical"])


def api_document() -> dict[str, Any]:
    """The API's OpenAPI document."""
    document: dict[str, Any] = SchemaGenerator().get_schema(  # type: ignore[no-untyped-call]
        request=None, public=True
    )
    return document


def new_tenant(name: str) -> uuid.UUID:
    """A tenant of its own."""
    tenant = Tenant.objects.create(
        id=uuid.uuid4(), slug=f"{name}-{uuid.uuid4().hex[:8]}", name=name, created_at=timezone.now()
    )
    return tenant.id


def key_for(tenant: uuid.UUID, *scopes: str) -> str:
    """A fresh key of a tenant."""
    actor = Actor(tenant_id=tenant, label="system")
    return issue_key(actor=actor, name="tests", scopes=scopes or ALL_SCOPES).key


def as_messages(request: dict[str, Any]) -> list[Any]:
    """Messages of an Anthropic or Chat request body, or the items of a Responses one."""
    found: list[Any] = request["messages"] if "messages" in request else request["input"]
    return found
