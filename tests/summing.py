"""What the tests of model-made summaries share: a session whose history a model sums up, and the provider it asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ctxengine.ledger.models import Job
from ctxengine.providers.adapters.secret import Secret
from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.script import Reply
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.jobs.run import Ended
from ctxengine.service.specs import Assembled, PolicySpec
from ctxengine.service.summaries.ask import AnswerLater
from tests.shrinking import Shrinker
from tests.work_off import work_off

TOLD = (
    "They compare the sheets of the depots part by part. Each limit that was decided stands; the "
    "northern figures are still missing, and the last question is open."
)


def told(text: str = TOLD, **fields: Any) -> Reply:
    """A scripted summary."""
    return Reply(text=text, plain=True, **fields)


@contextmanager
def provider_of(settings: Any, *replies: Reply, **options: Any) -> Iterator[StrictProvider]:
    """A strict provider that the side calls reach, under a key."""
    with StrictServer(StrictProvider(replies=replies, **options)) as server:
        settings.CTX_PROVIDER_URLS = {"anthropic": server.url, "openai": server.openai_url}
        settings.CTX_PROVIDER_KEYS = {"anthropic": Secret("k"), "openai": Secret("k")}
        yield server.provider


def model_policy(**fields: Any) -> PolicySpec:
    """A policy that lets a model sum up, small enough for a few turns to need it."""
    return PolicySpec.model_validate(
        {"reserve": 500, "history_floor": 400, "compaction": "model"} | fields
    )


@dataclass
class Summing(Shrinker):
    """A runtime whose session a model sums up."""

    window: int | None = 9_000

    def __post_init__(self) -> None:
        """Open the session under a policy that wants a model."""
        self.policy = self.policy or model_policy()
        super().__post_init__()

    def press(self) -> Job:
        """Talk until a summary is wanted first; gives its job. The run stays open."""
        for _ in range(60):
            try:
                self.talk(1)
            except AnswerLater as later:
                return later.job
        raise AssertionError("History never came under pressure.")

    def work(self) -> list[tuple[str, Ended]]:
        """Run the jobs that wait."""
        return work_off(self.actor.tenant_id, kind="compaction.summary")

    def summed_up(self) -> Assembled:
        """Press, let the job be done, and give the request that follows."""
        self.press()
        assert self.work() == [("compaction.summary", "done")]
        return self.assemble()

    def job(self) -> Job:
        """The newest job of the session."""
        rows = Job.objects.filter(tenant_id=self.actor.tenant_id, session_id=self.session)
        return rows.latest("created_at")


def asked(provider: StrictProvider) -> list[str]:
    """Bodies of the prompts that the provider got, oldest first."""
    return [
        entry.body.decode()
        for entry in provider.log.entries()
        if entry.method == "POST" and not entry.path.startswith("/_strict")
    ]


def due_now(job: Job) -> None:
    """Spend the wait before a job's next attempt."""
    Job.objects.filter(tenant_id=job.tenant_id, id=job.id).update(not_before=job.created_at)
