"""What a tenant has besides sessions, so that no page stands empty."""

from __future__ import annotations

from typing import Any

from ctxengine.engine.events import EventType
from ctxengine.providers.strict_local.script import Reply
from ctxengine.service.search.job import ask_for_index
from ctxengine.service.specs import Actor
from ctxengine.service.summaries.ask import AnswerLater
from tests.cast import Runtime
from tests.e2e.desk import Desk
from tests.matrix.world import (
    MODEL,
    SHA,
    make_import,
    make_job,
    make_profile,
    make_replay,
)
from tests.service.boundary.talking import session, strict_provider
from tests.work_off import work_off


def furnished(desk: Desk, settings: Any) -> dict[str, str]:
    """Make one of everything; gives its pages by name."""
    tenant = desk.tenant
    replay = make_replay(desk.session)
    bounded, made = boundary_session(desk, settings)
    make_import(tenant)
    make_profile(tenant)
    ask_for_index()
    work_off(tenant.id, kind="search.index")
    job = make_job(tenant)
    lab, checkpoints = f"lab/{replay.id}/", f"sessions/{bounded}/checkpoints/"
    return {
        "import": f"imports/{SHA}/",
        "repair-text": f"imports/{SHA}/text/1/",
        "import-job": f"imports/jobs/{job.id}/",
        "job": f"jobs/{job.id}/",
        "model": f"models/of/{MODEL}/",
        "probe": "models/probe/anthropic/claude-sonnet-4-6/",
        "lab-replay": lab,
        "lab-cell": f"{lab}cells/1/",
        "lab-step": f"{lab}cells/1/steps/1/",
        "session-checkpoints": checkpoints,
        "undo-checkpoint": f"{checkpoints}{made}/undo/",
    }


def boundary_session(desk: Desk, settings: Any) -> tuple[str, int]:
    """A session with one checkpoint, and the checkpoint's event."""
    with strict_provider(settings) as strict:
        runtime = session("openai", window=9_000, actor=Actor(desk.tenant.id, "system"))
        _until_due(runtime)
        strict.provider.script.add([Reply(text="Objective: count. Remaining work: all of it.")])
        work_off(desk.tenant.id, kind="compaction.boundary")
    (made,) = runtime.events(EventType.COMPACTED)
    return str(runtime.session), made.sequence


def _until_due(runtime: Runtime) -> None:
    for number in range(60):
        runtime.ask(f"Item {number}: " + "it is as long as it is " * 40)
        try:
            runtime.assemble()
        except AnswerLater:
            return
        runtime.say("Remembered, with all of its words. " * 30)
    raise AssertionError("never due")
