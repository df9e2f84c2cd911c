"""One fuzzing of the API: making calls, judging answers, looking at what they left."""

from __future__ import annotations

import json
import logging
import random
import re
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.db import connection
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, checks
from schemathesis.core.failures import Failure, FailureGroup

from ctxengine.ledger.models import Job, JobState
from tests.api.door import Answer, api_document
from tests.faults.checks import chains_verify, counts_add_up, requests_are_proven
from tests.fuzz.hostile import Sent, hostile
from tests.fuzz.world import CANARY, IDS, make_tenant, populate, read_ids, sizes
from tests.work_off import work_off

SHARE_GENERATED = 0.6
_ROUND = 20
"""Calls generated for one operation before the next one's turn."""
_BETWEEN_EVERY = 3
"""Rounds after which jobs are run and a fresh session is put among the worn ones."""
_JOBS = (
    "compaction.summary", "plan.measure", "transcript.import", "people.erase", "upkeep.expire",
    "upkeep.retain", "search.index", "compaction.boundary", "compaction.packet",
)  # fmt: skip
"""Kinds of job that are run; a probe would take as long as all calls together."""
_KEYS = 400
_CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
_PLAIN = {
    "item": ["3.0", "4.1", "1.0"],
    "epoch": ["1", "2"],
    "event": ["9", "3"],
    "tool": ["weather"],
    "principal": ["p", "kept-person"],
    "call": ["w1", "w2", "c1"],
}
"""Parts that are no ids of one tenant."""
_PART = re.compile(r"\{(\w+)\}")


class Fuzzing:
    """Calls so far, and what was wrong with them."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.calls = 0
        self.calls_to_other = 0
        self.statuses: Counter[int] = Counter()
        self.reached: set[str] = set()
        self.defects: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self.jobs: Counter[str] = Counter()
        self.left: dict[str, int] = {}
        self._traces = _Traces()
        logging.getLogger().addHandler(self._traces)
        self.me = make_tenant("fuzzed", "kept")
        self.other = make_tenant("other", CANARY)
        self._before = self.other.fingerprint()
        document = api_document()
        self._documented = {
            (method.upper(), path.removeprefix("/api/v1/")): set(operation["responses"])
            for path, operations in document["paths"].items()
            for method, operation in operations.items()
            if method != "parameters"
        }
        schema = schemathesis.openapi.from_dict(document)
        schema.app = WSGIHandler()
        self._operations = [found.ok() for found in schema.get_all_operations()]
        self._to_other = False

    # --- calls ---

    def run(self, calls: int) -> None:
        """Make so many calls, and run the jobs that they ask for."""
        turn = 0
        while self.calls < calls:
            operation = self._operations[turn % len(self._operations)]
            mode = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)[turn // len(self._operations) % 2]  # fmt: skip
            self._generated(operation, mode, min(_ROUND, calls - self.calls))
            for _ in range(round(_ROUND / SHARE_GENERATED * (1 - SHARE_GENERATED))):
                if self.calls < calls:
                    self._hostile()
            turn += 1
            if turn % _BETWEEN_EVERY == 0:
                self._between()

    def _generated(self, operation: Any, mode: GenerationMode, count: int) -> None:
        @seed(self.chance.randrange(2**32))
        @settings(
            max_examples=count, deadline=None, database=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(case=operation.as_strategy(generation_mode=mode))
        def calling(case: Any) -> None:
            self._call_generated(case)

        # A read without parameters has nothing that could be wrong.
        with suppress(Unsatisfiable):
            calling()

    def _call_generated(self, case: Any) -> None:
        self._to_other = False
        for name in case.path_parameters or {}:
            if self.chance.random() < 0.95:
                case.path_parameters[name] = self._address(name)
        headers = {"Authorization": f"Bearer {self.me.door.key}", "Host": "testserver"}
        if case.method != "GET" and self.chance.random() < 0.3:
            headers["Idempotency-Key"] = f"k{self.chance.randrange(_KEYS)}"
        what = f"{case.method} {case.operation.path}"
        with self._judging(what, lambda: repr(case.body)[:600]):
            response = case.call(base_url="http://testserver", headers=headers)
            self._judge(what, response.status_code, response.content)
            case.validate_response(response, checks=_CHECKS)

    def _hostile(self) -> None:
        self._to_other = False
        sent = hostile(self.calls, self._own, self.chance)
        path = _PART.sub(lambda part: self._address(part[1]), sent.path)
        once = f"h{self.chance.randrange(_KEYS)}" if self.chance.random() < 0.2 else None
        what = f"{sent.method} /api/v1/{sent.path}"
        with self._judging(what, lambda: f"{path} {sent.content_type} {sent.body[:600]!r}"):
            answer = self.me.door.send(
                sent.method, path, raw=sent.body, content_type=sent.content_type, once=once
            )
            self._judge(what, answer.status, answer.raw)
            self._held_to_document(what, sent, answer)
            self._learn(sent.path, answer)

    def _address(self, name: str) -> str:
        """A part of an address: ours, now and then the other tenant's, or nobody's."""
        draw = self.chance.random()
        if name in IDS and draw < 0.15 and self.other.ids.get(name):
            self._to_other = True
            return self.chance.choice(self.other.ids[name])
        if draw < 0.2:
            return self.chance.choice(
                (str(uuid.UUID(int=7)), "0" * 64, "x", "%00", "3.0", "9" * 30)
            )
        return self._own(name)

    def _own(self, name: str) -> str:
        known = _PLAIN.get(name) or self.me.ids.get(name)
        return self.chance.choice(known) if known else "0" * 64

    # --- judging ---

    @contextmanager
    def _judging(self, what: str, sent: Callable[[], str]) -> Iterator[None]:
        self.calls += 1
        self.calls_to_other += self._to_other
        self.reached.add(what)
        self._traces.clear()
        try:
            yield
        except FailureGroup as group:
            for failure in group.exceptions:
                self._defect(f"{what}: {_first(str(failure))}", sent())
        except Failure as failure:
            self._defect(f"{what}: {_first(str(failure))}", sent())
        except Exception as error:
            told = f"{what}: {type(error).__name__}: {_first(str(error))}"
            self._defect(told, sent() + traceback.format_exc()[-1500:])
        if connection.needs_rollback or connection.in_atomic_block:
            self._defect(f"{what}: left a transaction open", sent())
            connection.close()

    def _judge(self, what: str, status: int, content: bytes) -> None:
        self.statuses[status] += 1
        if status >= 500:
            self._defect(f"{what}: {status} {self._traces.where()}", self._traces.text())
        if CANARY.encode() in content:
            self._defect(f"{what}: {status} says what the other tenant wrote", _shown(content))
        if self._to_other and status < 400:
            self._defect(f"{what}: {status} for an id of the other tenant", _shown(content))

    def _held_to_document(self, what: str, sent: Sent, answer: Answer) -> None:
        documented = self._documented[sent.method, sent.path]
        if str(answer.status) not in documented and answer.status < 500:
            self._defect(f"{what}: {answer.status} is not documented", _shown(answer.raw))
        if answer.status >= 400:
            _ = answer.code

    def _defect(self, what: str, example: str) -> None:
        self.defects[what] += 1
        self.examples.setdefault(what, example)

    # --- what calls leave ---

    def _learn(self, path: str, answer: Answer) -> None:
        if answer.status not in {200, 201, 202}:
            return
        found = json.loads(answer.raw)
        for kind, template in (("session", "sessions"), ("run", "sessions/{session}/runs")):
            if path == template and isinstance(found, dict) and "id" in found:
                self.me.learn(kind, found["id"], self.chance)
        if isinstance(found, dict) and found.get("request_id"):
            for kind in ("wanted", "other"):
                self.me.learn(kind, str(found["request_id"]), self.chance)
        if isinstance(found, dict) and isinstance(found.get("import"), dict):
            self.me.learn("sha256", found["import"]["sha256"], self.chance)

    def _between(self) -> None:
        """Run waiting jobs, and put fresh sessions among the worn ones."""
        for kind in _JOBS:
            for _, ended in work_off(self.me.id, kind=kind, most=10):
                self.jobs[f"{kind} {ended}"] += 1
        self.me.learn("session", populate(self.me, "kept", self.chance.randrange(5)), self.chance)
        read_ids(self.me, self.chance)

    def look_afterwards(self) -> None:
        """Hold everything that was written against the rules."""
        failed = Job.objects.filter(state=JobState.FAILED, error__code="internal_error")
        for job in failed:
            self._defect(f"job {job.kind}: internal_error", str(job.log))
        if self.other.fingerprint() != self._before:
            self._defect("the other tenant is not what it was", "")
        for check in (chains_verify, counts_add_up, requests_are_proven):
            try:
                check()
            except AssertionError as error:
                self._defect(f"{check.__name__} does not hold", str(error)[:3000])
        if self.calls_to_other == 0:
            self._defect("no call had an id of the other tenant", "")
        self.left = sizes()


class _Traces(logging.Handler):
    """Keeps the tracebacks of the running call."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record)

    def clear(self) -> None:
        self._records.clear()

    def where(self) -> str:
        """The innermost line of ours, and the kind of error."""
        for record in self._records:
            if record.exc_info and record.exc_info[1] is not None:
                error = record.exc_info[1]
                frames = traceback.extract_tb(error.__traceback__)
                ours = [f for f in frames if re.search(r"/(ctxengine|api|inspector)/", f.filename)]
                at = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
                return f"{type(error).__name__} at {at}"
        return ""

    def text(self) -> str:
        return "\n".join(
            "".join(traceback.format_exception(record.exc_info[1]))[-2500:]
            for record in self._records
            if record.exc_info and record.exc_info[1] is not None
        )


def _shown(content: bytes) -> str:
    return content[:600].decode("utf-8", "replace")


def _first(text: str) -> str:
    return (text.strip().splitlines() or [""])[0][:160]
