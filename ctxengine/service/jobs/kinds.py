"""The one table of job kinds: queue, what runs it, how often it is tried, how long a lease lasts."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ctxengine.service.jobs.context import JobContext

RunFunction = Callable[["JobContext"], dict[str, Any]]
"""A kind's work. What it returns is kept as the job's result: ids and figures, never content."""

WAITED_FOR = ("compaction", "upkeep")
"""Queues of what a turn or a person waits for."""
TAKES_LONG = ("probe", "replay")
"""Queues of what may take hours. A worker of their own serves them, or two probes would hold up every summary."""
QUEUES = (*WAITED_FOR, *TAKES_LONG)
_QUEUE_PREFIX = "ctx."
"""Keeps our queues apart from those of others on one broker."""


def queue_on_broker(queue: str) -> str:
    """The broker's name of a queue of the table of kinds."""
    return _QUEUE_PREFIX + queue


class JobKind(NamedTuple):
    """One kind of job."""

    name: str
    queue: str
    run: str
    """`module:function`, loaded when the first such job runs, so that a use case may both start jobs and be one."""
    max_attempts: int
    lease_s: int
    """Seconds without a sign of life after which another worker takes over."""
    describe: str
    """What such a job does, for people."""

    def load(self) -> RunFunction:
        """The function that does the work."""
        module, _, name = self.run.partition(":")
        function: RunFunction = getattr(import_module(module), name)
        return function


_SERVICE = "ctxengine.service"

KINDS: tuple[JobKind, ...] = (
    JobKind(
        "compaction.summary", "compaction", f"{_SERVICE}.summaries.job:run", 4, 12,
        "Summarise a range of history with a model",
    ),
    JobKind(
        "compaction.packet", "compaction", f"{_SERVICE}.working_set.packet_job:run", 4, 12,
        "Write the packet of a range of closed turns with a model",
    ),
    JobKind(
        "compaction.boundary", "compaction", f"{_SERVICE}.boundary.job:run", 3, 12,
        "Compact a session of the boundary engine: a provider's window, or a note",
    ),
    JobKind(
        "transcript.import", "upkeep", f"{_SERVICE}.imports.job:run", 3, 15,
        "Read a transcript into sessions",
    ),
    JobKind(
        "transcript.reconstruct", "upkeep", f"{_SERVICE}.imports.requests_job:run", 4, 15,
        "Rebuild the requests of a long imported session",
    ),
    JobKind(
        "capacity.probe", "probe", f"{_SERVICE}.probe.job:run", 2, 12,
        "Measure how much of its window a model can use",
    ),
    JobKind(
        "capacity.look", "probe", f"{_SERVICE}.probe.look:run", 2, 12,
        "Ask the provider whether a measured model is still the same",
    ),
    JobKind(
        "plan.measure", "probe", f"{_SERVICE}.measure_plan:run", 4, 12,
        "Ask the provider how many tokens a pinned plan has",
    ),
    JobKind(
        "replay.run", "replay", f"{_SERVICE}.replay.job:run", 3, 12,
        "Replay a session under other engines and models",
    ),
    JobKind(
        "people.erase", "upkeep", f"{_SERVICE}.erase_job:run", 8, 12,
        "Erase a person's content from every session",
    ),
    JobKind(
        "upkeep.expire", "upkeep", f"{_SERVICE}.expire:run", 3, 12,
        "Remove answers to repeated writes after a day",
    ),
    JobKind(
        "upkeep.retain", "upkeep", f"{_SERVICE}.retention.apply:run", 5, 15,
        "Take away what has passed the tenant's keeping times",
    ),
    JobKind(
        "search.index", "upkeep", f"{_SERVICE}.search.job:run", 4, 15,
        "Make new items findable by their text",
    ),
    JobKind(
        "alerts.tell", "upkeep", f"{_SERVICE}.alerts.tell:run", 5, 15,
        "Tell an address that an alert began or ended",
    ),
)  # fmt: skip

_BY_NAME = {kind.name: kind for kind in KINDS}


class UnknownKind(LookupError):
    """A job names a kind that this version does not know."""


def kind_of(name: str) -> JobKind:
    """The kind of that name.

    Raises:
        UnknownKind: there is none.
    """
    try:
        return _BY_NAME[name]
    except KeyError:
        raise UnknownKind(f"This version knows no jobs of the kind {name!r}.") from None
