"""The sample sessions that ship with the product: written for it, each in another transcript format."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from importlib.resources import files
from uuid import UUID

from ctxengine.ledger.models import ImportRow, Job
from ctxengine.service.bootstrap import demo_actor
from ctxengine.service.import_transcript import ImportOutcome, import_file
from ctxengine.service.imports.start_import import start_import
from ctxengine.service.sample_data.long_session import long_session
from ctxengine.service.specs import Actor

_FOLDER = "ctxengine.service.sample_data"
_FILES = (
    "coding_agent.claude_code.jsonl",
    "support_agent.openai_chat.json",
    "research_agent.anthropic_messages.json",
    "migration_agent.codex_rollout.jsonl",
)


def load_samples() -> list[ImportOutcome]:
    """Import the samples into the demo tenant; those that are there already stay as they are."""
    actor = demo_actor()
    return [import_file(actor=actor, name=name, data=data) for name, data in _samples()]


def ask_for_samples(*, actor: Actor) -> tuple[Job, ...]:
    """Ask for jobs that import the samples into the actor's tenant, one for each that is not there and not under way.

    Returns:
        The jobs that import them, those under way included.
    """
    by_digest = {hashlib.sha256(data).hexdigest(): (name, data) for name, data in _samples()}
    known = _imported(actor.tenant_id, by_digest)
    return tuple(
        start_import(actor=actor, name=name, chunks=[data], single_flight=f"sample:{sha256}")
        for sha256, (name, data) in by_digest.items()
        if sha256 not in known
    )


def samples_missing() -> bool:
    """Whether the demo tenant lacks any of the samples."""
    digests = {hashlib.sha256(data).hexdigest() for _, data in _samples()}
    return _imported(demo_actor().tenant_id, digests) < digests


def _imported(tenant_id: UUID, digests: Iterable[str]) -> set[str]:
    rows = ImportRow.objects.filter(tenant_id=tenant_id, sha256__in=list(digests))
    return set(rows.values_list("sha256", flat=True))


def _samples() -> Iterator[tuple[str, bytes]]:
    for name in _FILES:
        yield name, files(_FOLDER).joinpath(name).read_bytes()
    yield "long_session.openai_chat.json", long_session().encode()
