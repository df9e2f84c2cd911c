"""Gate: dispensability. Without any checkpoint every request still rebuilds to its hash, opaque blocks excepted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.ledger.models import Checkpoint
from ctxengine.service.prove import replay_request
from tests.cast import Call, Runtime

pytestmark = [pytest.mark.gate, pytest.mark.django_db]

THINKING = [
    '{"type":"thinking","thinking":"I should look.","signature":"SIG=="}',
    '{"type":"redacted_thinking","data":"BLOB=="}',
]
REASONING = ['{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"OPAQUE1"}']
THOUGHTS = {"anthropic": THINKING, "openai-responses": REASONING}
providers = pytest.mark.parametrize("provider", sorted(THOUGHTS))


def thinker(provider: str) -> Runtime:
    """A run that is still open, three steps in, two of them with reasoning."""
    runtime = Runtime(provider=provider)
    runtime.turn("Before that?", "Nothing.")
    runtime.ask("Check the build.")
    runtime.assemble()
    runtime.say("", Call("t1", "shell_run"), reasoning=THOUGHTS[provider])
    runtime.results(("t1", "ok"))
    runtime.assemble()
    runtime.say("", Call("t2", "read"), reasoning=THOUGHTS[provider])
    runtime.results(("t2", "fine"))
    runtime.assemble()
    return runtime


def verdicts(runtime: Runtime) -> list[tuple[str, list[str]]]:
    replays = [replay_request(actor=runtime.actor, request_id=row.id) for row in runtime.requests]
    assert all(replay.identical for replay in replays)
    assert all(replay.recorded_sha256 == replay.rebuilt_sha256 for replay in replays)
    return [(replay.verdict, replay.except_) for replay in replays]


@providers
def test_without_checkpoints_the_hashes_stay_and_only_opaque_blocks_are_excepted(
    provider: str,
) -> None:
    runtime = thinker(provider)
    assert verdicts(runtime) == [("identical", [])] * 4
    assert Checkpoint.objects.filter(session_id=runtime.session).delete()[0] == 1
    excepted = ("identical_except", ["opaque"])
    assert verdicts(runtime) == [("identical", []), ("identical", []), excepted, excepted]


@providers
def test_a_run_without_its_checkpoint_goes_on_with_the_same_bytes_but_for_opaque_blocks(
    provider: str,
) -> None:
    kept, lost = thinker(provider), thinker(provider)
    Checkpoint.objects.filter(session_id=lost.session).delete()
    whole, bare = (json.loads(runtime.assemble().body) for runtime in (kept, lost))
    assert without_thoughts(shape(whole)) == shape(bare)
    assert without_thoughts(shape(whole)) != shape(whole)
    for runtime in (kept, lost):
        runtime.say("All is well.")
        runtime.ask("Sure?")
    assert shape(json.loads(kept.assemble().body)) == shape(json.loads(lost.assemble().body))


def shape(body: dict[str, Any]) -> list[Any]:
    """Kinds of what stands in the conversation; texts differ between sessions by their nonces and the clock."""
    if "input" in body:
        return [entry.get("type", entry.get("role")) for entry in body["input"]]
    return [[block["type"] for block in message["content"]] for message in body["messages"]]


def without_thoughts(shapes: list[Any]) -> list[Any]:
    opaque = {"thinking", "redacted_thinking", "reasoning"}
    if shapes and isinstance(shapes[0], str):
        return [kind for kind in shapes if kind not in opaque]
    return [[kind for kind in kinds if kind not in opaque] for kinds in shapes]


@providers
def test_at_the_end_of_the_run_reasoning_leaves_and_its_requests_still_prove(provider: str) -> None:
    runtime = thinker(provider)
    runtime.say("All is well.")
    assert not Checkpoint.objects.filter(session_id=runtime.session).exists()
    assert [verdict for verdict, _ in verdicts(runtime)] == [
        "identical",
        "identical",
        "identical_except",
        "identical_except",
    ]
    runtime.ask("Sure?")
    body = runtime.assemble().body.decode()
    assert not any(word in body for word in ("SIG==", "BLOB==", "OPAQUE1", "thinking"))
    assert verdicts(runtime)[-1] == ("identical", [])
