"""The example agents hold a conversation over REST with the strict provider behind them, and recover from its errors."""

from __future__ import annotations

from contextlib import closing

import pytest
from pytest_django.live_server_helper import LiveServer

from ctxengine.ledger.models import RequestRow
from ctxengine.providers.strict_local.server import StrictServer
from ctxengine.service.issue_key import issue_key
from examples.anthropic_agent import Claude
from examples.command import INSTRUCTIONS, table
from examples.engine import Agent, Engine, EngineRefused, Model, converse
from examples.openai_chat_agent import ChatModel
from examples.openai_responses_agent import ResponsesModel
from examples.run_all import Trouble
from tests.cast import new_actor

pytestmark = pytest.mark.django_db(transaction=True)

TURNS = 8


def model_of(provider: str, strict: StrictServer) -> Model:
    if provider == "anthropic":
        return Claude(base_url=strict.url, api_key="local", thinking=True)
    make = ChatModel if provider == "openai" else ResponsesModel
    return make(base_url=strict.openai_url, api_key="local", thinking=True)


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-responses"])
def test_an_agent_talks_with_tools_and_reasoning_and_recovers_from_its_provider(
    provider: str, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("examples.engine.PAGE", 5)
    actor = new_actor()
    key = issue_key(actor=actor, name="example", scopes=("runtime", "read")).key
    with (
        StrictServer() as strict,
        Engine(live_server.url, key) as engine,
        closing(model_of(provider, strict)) as model,
    ):
        agent = Agent(engine, model, instructions=INSTRUCTIONS)
        tally = converse(agent, TURNS, Trouble(strict.url, model))
        statuses = [entry.status for entry in strict.provider.log.entries()]
    assert (tally.turns, tally.unproven, tally.epochs) == (TURNS, 0, 1)
    assert (
        tally.requests
        == tally.proven
        == RequestRow.objects.filter(session_id=agent.session).count()
    )
    assert tally.refusals == ["transient", "over_length"]
    assert sorted(status for status in statuses if status != 200) == [400, 529]
    assert tally.tool_calls >= TURNS
    assert tally.cached_tokens > 0.5 * tally.prompt_tokens
    assert provider in table([(provider, tally)])


def test_a_refusal_of_the_engine_says_what_is_wrong(live_server: LiveServer) -> None:
    with (
        Engine(live_server.url, "no-such-key") as engine,
        pytest.raises(EngineRefused, match="401"),
    ):
        engine.get("sessions")
