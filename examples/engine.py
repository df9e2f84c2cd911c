"""A small client of the context engine's REST API, and the loop that every agent has in common.

Only `httpx2` is needed. What a provider answers is reported as the text it came as, never written again: reasoning items are
signed or encrypted and must come back byte for byte.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx2

from examples.tools import TOOLS, run_tool

MOST_RETRIES = 5
"""Refusals in a row before a turn is given up."""
PAGE = 100
"""Requests read at a time."""


class EngineRefused(RuntimeError):
    """The engine answered with a problem document: a defect of the caller, or a limit to tell the user."""


@dataclass(frozen=True, slots=True)
class ModelRefused(Exception):
    """The provider answered with an error; the engine is told of it and says what to do."""

    status: int
    body: str
    retry_after: float | None = None


class Model(Protocol):
    """One provider's API as an agent needs it."""

    provider: str
    name: str

    def ask(self, request: dict[str, Any]) -> str:
        """Send a request as the engine made it; gives the provider's whole answer as text.

        Raises:
            ModelRefused: any status but 200.
        """
        ...

    def close(self) -> None:
        """Hang up; the SDKs keep connections open for the next call."""
        ...


@dataclass
class Tally:
    """What a conversation came to."""

    turns: int = 0
    requests: int = 0
    """Recorded requests; one that is sent again after an overload is the same request."""
    tool_calls: int = 0
    refusals: list[str] = field(default_factory=list)
    """Errors of the provider that the loop recovered from, by the engine's code."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    epochs: int = 1
    proven: int = 0
    unproven: int = 0


class Engine:
    """The calls of the loop. Every write carries an idempotency key, so that a repeated one does nothing twice."""

    def __init__(self, url: str, api_key: str) -> None:
        self._http = httpx2.Client(
            base_url=f"{url.rstrip('/')}/api/v1/",
            headers={"authorization": f"Bearer {api_key}"},
            timeout=60,
        )

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_error: object) -> None:
        self._http.close()

    def post(self, path: str, body: Mapping[str, Any] | str) -> dict[str, Any]:
        """Write something.

        Raises:
            EngineRefused: any 4xx or 5xx, with the problem's own words.
        """
        content = body if isinstance(body, str) else json.dumps(body)
        headers = {"content-type": "application/json", "idempotency-key": str(uuid.uuid4())}
        return _json(self._http.post(path, content=content, headers=headers))

    def get(self, path: str) -> dict[str, Any]:
        """Read something.

        Raises:
            EngineRefused: any 4xx or 5xx.
        """
        return _json(self._http.get(path))


def _json(response: httpx2.Response) -> dict[str, Any]:
    if response.is_error:
        raise EngineRefused(f"{response.request.method} {response.request.url}: {response.text}")
    data: dict[str, Any] = response.json()
    return data


class Agent:
    """A session of the engine with a model behind it."""

    def __init__(self, engine: Engine, model: Model, *, instructions: str) -> None:
        self.engine, self.model, self.tally = engine, model, Tally()
        opened = engine.post(
            "sessions",
            {
                "engine": "suffix",
                "model": {"provider": model.provider, "name": model.name},
                "agent": {
                    "name": f"example-{model.provider}",
                    "version": "1",
                    "instructions": instructions,
                },
                "tools": TOOLS,
            },
        )
        self.session: str = opened["id"]

    def turn(self, message: str) -> None:
        """One run: from the user's message to the model's last word.

        Raises:
            EngineRefused: the engine refuses a call.
            RuntimeError: the provider keeps refusing, or says something that no repetition mends.
        """
        run = self.engine.post(f"sessions/{self.session}/runs", {"message": message})["id"]
        refused = 0
        while True:
            built = self.engine.post(f"runs/{run}/assemble", {})
            try:
                answer = self.model.ask(built["request"])
            except ModelRefused as error:
                refused += 1
                self._recover(run, built["request_id"], error, give_up=refused > MOST_RETRIES)
                continue
            refused = 0
            taken = self.engine.post(
                f"runs/{run}/responses",
                f'{{"request_id":{json.dumps(built["request_id"])},"response":{answer}}}',
            )
            results = [
                {"call_id": call["id"], **run_tool(call["name"], call.get("arguments"))}
                for call in taken["calls"]
                if call["action"] == "execute"
            ]
            if results:
                self.tally.tool_calls += len(results)
                self.engine.post(f"runs/{run}/tool-results", {"results": results})
            if taken["next"] == "finish":
                self.tally.turns += 1
                return

    def _recover(self, run: str, request: str, error: ModelRefused, *, give_up: bool) -> None:
        """Tell the engine; it says whether assembling again helps. An over-length request comes back shorter."""
        told = self.engine.post(
            f"runs/{run}/responses",
            {"request_id": request, "error": {"status": error.status, "body": error.body}},
        )
        if told["next"] != "reassemble" or give_up:
            raise RuntimeError(f"The provider refused ({told['code']}): {error.body[:300]}")
        self.tally.refusals.append(told["code"])
        if told["code"] != "over_length":
            time.sleep(min(error.retry_after if error.retry_after is not None else 0.2, 30))

    def audit(self) -> Tally:
        """Add up the requests and prove each of them: rebuilt from the ledger, its hash must be the recorded one."""
        cursor = ""
        while True:
            page = self.engine.get(f"sessions/{self.session}/requests?limit={PAGE}{cursor}")
            for line in page["items"]:
                self.tally.requests += 1
                usage = line["usage"] or {}
                self.tally.prompt_tokens += usage.get("prompt_total", 0)
                self.tally.cached_tokens += usage.get("cache_read") or 0  # null: not reported
                self.tally.epochs = max(self.tally.epochs, line["epoch"])
                proof = self.engine.get(f"requests/{line['id']}/replay")
                self.tally.proven += proof["identical"]
                self.tally.unproven += not proof["identical"]
            if page["next_cursor"] is None:
                return self.tally
            cursor = f"&cursor={page['next_cursor']}"


def converse(agent: Agent, turns: int, before_turn: Callable[[int], None] | None = None) -> Tally:
    """Hold a conversation of so many turns; `before_turn` is told the number of each."""
    for number in range(1, turns + 1):
        if before_turn is not None:
            before_turn(number)
        agent.turn(question(number))
    return agent.audit()


def question(number: int) -> str:
    """A user's message; the scripted provider does what it says, a real model answers it."""
    city = ("Oslo", "Quito", "Kyoto", "Dakar")[number % 4]
    if number % 3 == 0:
        return f'Turn {number}: call add {{"a": {number}, "b": {number * 7}}} and then call weather {{"city": "{city}"}}'
    if number % 3 == 1:
        return f'Turn {number}: call weather {{"city": "{city}"}}'
    return f'Turn {number}: call search_notes {{"query": "{city} visit"}} 2 times'
