"""A model may call a tool by any name at all; the session goes on, and the next request is one the provider takes."""

from __future__ import annotations

import pytest

from ctxengine.service.prove import prove_all
from tests.cast import Call, Runtime

pytestmark = pytest.mark.django_db

NAMES = [
    "functions.read",
    "web fetch",
    "読む",
    "a" * 300,
    "nul\x00name",
    "lone\ud800name",
    "read\n",
    "<read>",
]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-responses"])
def test_a_call_by_an_odd_name_is_refused_and_the_run_goes_on(provider: str, name: str) -> None:
    runtime = Runtime(provider=provider)
    runtime.ask("Look it up.")
    runtime.assemble()
    taken = runtime.say("", Call("c1", name))
    assert taken.calls[0].action == "refused"
    runtime.assemble()
    runtime.say("Done.")
    assert {found.verdict for found in prove_all(session_id=runtime.session)} == {"identical"}


BROKEN = '"\\ud800"'
BLOCKS = [
    f'{{"type":"thinking","thinking":{BROKEN},"signature":"s"}}',
    f'{{"type":"thinking","thinking":"so","signature":{BROKEN}}}',
    f'{{"type":"never_seen","data":{BROKEN}}}',
]


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_that_no_request_can_carry_does_not_end_the_session(block: str) -> None:
    runtime = Runtime()
    runtime.ask("Look it up.")
    runtime.assemble()
    call = '{"type":"tool_use","id":"c1","name":"read","input":{}}'
    runtime.hear(f'{{"role":"assistant","content":[{block},{call}],"stop_reason":"tool_use"}}')
    runtime.results(("c1", "found"))
    runtime.assemble()
    runtime.say("Done.")
    assert {found.verdict for found in prove_all(session_id=runtime.session)} <= {
        "identical",
        "identical_except",
    }
