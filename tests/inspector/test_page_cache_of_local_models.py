"""The cache panel of a request to a model whose provider states no rules: by whose word, which digest, what is not known."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from ctxengine.engine.capacity.profile import CacheBehaviour, metadata_profile
from ctxengine.ledger.models import RequestRow
from ctxengine.service.configure_session import configure_session
from ctxengine.service.plan_specs import Configure
from ctxengine.service.probe.profiles import keep_profile
from ctxengine.service.specs import Actor, AgentRef
from tests.cast import Runtime, answer, tool
from tests.inspector.conftest import Cast

pytestmark = pytest.mark.django_db

MODEL = "house-coder-7b"
LONG = "Word by word. " * 600


def turn(runtime: Runtime, question: str, cached: int, total: int = 4_000) -> RequestRow:
    runtime.ask(question)
    runtime.assemble()
    usage = {
        "prompt_tokens": total,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    runtime.hear(json.dumps(json.loads(answer("openai", "Yes.")) | {"usage": usage}))
    return runtime.requests[-1]


@pytest.fixture
def local(cast: Cast) -> Runtime:
    """A session on a model that a probe has seen to cache; its first request was answered."""
    profile = metadata_profile(
        provider="compatible", model=MODEL, declared_window=64_000, max_output=4_000
    )
    seen = profile.model_copy(update={"cache": CacheBehaviour.REPORTED})
    keep_profile(tenant_id=cast.tenant.id, profile=seen, source="probe")
    runtime = Runtime(
        actor=Actor(cast.tenant.id, "system"),
        provider="compatible",
        model=MODEL,
        instructions=LONG,
        tools=(tool("read"),),
    )
    turn(runtime, "One?", 0)
    return runtime


def test_the_panel_says_by_whose_word_a_read_was_predicted(cast: Cast, local: Runtime) -> None:
    second = turn(local, "Two?", 3_900)
    page = cast.page(f"requests/{second.id}/")
    assert "The provider read what was predicted." in page
    assert "state no rules" in page
    assert "What changed" not in page


def test_the_panel_names_the_digest_that_changed(cast: Cast, local: Runtime) -> None:
    first = local.requests[0]
    agent = AgentRef(name="scout", version="2", instructions="Otherwise. " * 600)
    configure_session(actor=local.actor, session_id=local.session, spec=Configure(agent=agent))
    second = turn(local, "Two?", 0)
    page = cast.page(f"requests/{second.id}/")
    assert "the system part of the prefix" in page
    assert first.wire_prefix_sha256 != second.wire_prefix_sha256
    for digest in (first.wire_prefix_sha256, second.wire_prefix_sha256):
        assert digest[:8] in page


def test_after_a_long_pause_the_page_says_that_nobody_knows(cast: Cast, local: Runtime) -> None:
    first = local.requests[0]
    entries = [entry | {"used_at": entry["used_at"] - 9_000} for entry in first.cache["entries"]]
    RequestRow.objects.filter(id=first.id).update(
        created_at=first.created_at - timedelta(seconds=9_000),
        cache=first.cache | {"entries": entries},
    )
    second = turn(local, "Two?", 0)
    page = cast.page(f"requests/{second.id}/")
    assert "Not judged: a long pause came before it" in page
    assert "less were read than predicted" not in page
    assert "0 read predicted" not in page
