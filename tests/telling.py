"""What the tests of packets that a model writes share: a `working_set` session with many closed turns, made at no cost."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from ctxengine.engine.compaction.packet import PACKET_REASON
from ctxengine.engine.derive import Derivation
from ctxengine.engine.events import EventType
from ctxengine.ledger.models import Event, Job, Role, Tenant
from ctxengine.service.compactions import compactions_of
from ctxengine.service.jobs.run import Ended
from ctxengine.service.specs import PolicySpec
from ctxengine.service.wiring import counter_of
from tests.cast import Call, Scribe
from tests.factories import make_person
from tests.inspector.conftest import Cast, client_of
from tests.made_once import made_once
from tests.shrinking import Shrinker, row_nine
from tests.work_off import work_off

LATER = "They went on from harbour to harbour, and each has as many lamps as its number says."
"""What a model says beside TOLD."""
KIND = "compaction.packet"
_CLOCK = re.compile(r',\{"type":"text","text":"\[runtime\] Now: [^"]*"\}')
FIRST, NEXT = 24, 8
"""So many turns make a packet of sixteen, and eight more have it reach to the twenty-fourth."""


@dataclass
class Telling(Shrinker):
    """A runtime whose session has a model write its packets."""

    window: int | None = 7_000
    max_output: int | None = 500

    def __post_init__(self) -> None:
        """Open the session under a policy that wants a model."""
        self.policy = self.policy or PolicySpec(compaction="model", history_floor=200)
        self.extra = {"engine": "working_set", **self.extra}
        self.told = 0
        super().__post_init__()

    def pass_by(self, turns: int, *, says: str = "", found: str = "") -> None:
        """Turns that were over before, straight into the log; the next run's start closes them.

        Args:
            says: what the assistant says beside its own words.
            found: what a call gives in each of them.
        """
        derivation = Derivation(counter_of(self.provider, self.model))
        scribe = Scribe(self.log, derivation)
        for number in range(self.told, self.told + turns):
            run = str(uuid4())
            scribe.user(f"Tell me about harbour number{number}. " + "It matters. " * 40, run=run)
            if found:
                scribe.step(Call(f"c{number}", "read"), run=run)
                scribe.result(f"c{number}", found, run=run)
            own = f"Harbour number{number} has {number} lamps. {says} " + "They shine. " * 60
            scribe.answers(own, run=run)
        self.told += turns

    def go_on(self, turns: int = 0, **fields: Any) -> str:
        """So many turns, then a run that is planned behind them and stays open; gives its request's body."""
        self.pass_by(turns, **fields)
        self.ask(f"Tell me about harbour number{self.told}.")
        return self.assemble().body.decode()

    def over(self) -> None:
        """End the open run with an answer."""
        taken = self.say(f"Harbour number{self.told} has {self.told} lamps.")
        assert taken.next == "finish", taken
        self.told += 1

    def work(self) -> list[tuple[str, Ended]]:
        """Run the jobs that wait."""
        return work_off(self.actor.tenant_id, kind=KIND)

    @property
    def jobs(self) -> list[Job]:
        """Jobs that write packets of the session, oldest first."""
        rows = Job.objects.filter(tenant_id=self.actor.tenant_id, session_id=self.session)
        return list(rows.filter(kind=KIND).order_by("created_at"))

    @property
    def plan(self) -> dict[str, Any]:
        """The newest plan."""
        payload: dict[str, Any] = self.events(EventType.WORKING_SET_PLANNED)[-1].payload
        return payload

    @property
    def packets(self) -> list[Event]:
        """Stored packets, oldest first."""
        made = self.events(EventType.COMPACTED)
        return [event for event in made if event.payload["reason"] == PACKET_REASON]

    def packet(self) -> Event:
        """The packet in force."""
        (found,) = [e for e in self.packets if e.sequence == self.plan["packet"]]
        return found


def wished() -> Telling:
    """A session whose first packet stands in its open run, while the job that writes the next one waits."""
    return made_once("a packet is wished for", _wished)


def _wished() -> Telling:
    runtime = Telling()
    runtime.go_on(FIRST)
    return runtime


def overtaken() -> Telling:
    """The same after the growth: it did not wait for the job, and stands on the ledger's packet."""
    return made_once("a packet is overtaken", _overtaken)


def _overtaken() -> Telling:
    runtime = wished()
    runtime.over()
    runtime.go_on(NEXT - 1)
    return runtime


def nine(shown: str) -> str:
    """Row 9 of a request's body."""
    return row_nine(json.loads(shown))


def page_of(runtime: Telling, path: str = "", **data: str) -> str:
    """A page of the session's compactions, as an operator sees it."""
    tenant = Tenant.objects.get(id=runtime.actor.tenant_id)
    operator = client_of(make_person(tenant, Role.OPERATOR))
    cast = Cast(tenant, runtime, operator, operator)
    return cast.page(f"sessions/{runtime.session}/compactions/{path}", **data)


def states(runtime: Telling) -> dict[int, str]:
    """What became of each packet, by its event."""
    found = compactions_of(actor=runtime.actor, session_id=runtime.session).lines
    return {int(line.event.sequence): line.state for line in found}


def change(runtime: Telling, act: str) -> None:
    """Take the first packet back, or leave out what was said in the third turn."""
    if act == "undone":
        runtime.undo(runtime.packets[0].sequence)
        return
    said = runtime.events(EventType.USER_MESSAGE)
    runtime.mark(f"{said[2].sequence}.0", "excluded", "item")


def timeless(shown: str) -> str:
    """A request's body without what the clock adds to it, should a minute go by between two of them."""
    return _CLOCK.sub("", shown.replace(',"cache_control":{"type":"ephemeral"}', ""))
