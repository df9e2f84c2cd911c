"""What a native window is said to take, where the provider reads nothing in front of it any more (providers.md 4)."""

from __future__ import annotations

from typing import Any

import pytest

from ctxengine.engine.events import EventType
from ctxengine.service.specs import PolicySpec
from tests.cast import Runtime
from tests.service.boundary.talking import MODELS, strict_provider, take_turns, unproven

pytestmark = pytest.mark.django_db(transaction=True)
PROVIDER = "openai-responses"


def test_a_window_in_whose_place_the_instructions_go_is_estimated_and_never_nothing(
    settings: Any,
) -> None:
    rules = " ".join(f"Rule {n}: read file {n} before you answer." for n in range(300))
    with strict_provider(settings) as strict:
        runtime = Runtime(
            provider=PROVIDER,
            model=MODELS[PROVIDER],
            window=24_000,
            max_output=1_000,
            instructions=rules,
            policy=PolicySpec(native_compaction_max_output_tokens=1_000, history_floor=0),
            extra={"engine": "boundary"},
        )
        take_turns(runtime, strict, 0, 14, words=4_000)
        assert {entry.status for entry in strict.provider.log.entries()} == {200}
    made = [event.payload for event in runtime.events(EventType.COMPACTED)]
    assert made and {told["counted"] for told in made} == {"estimated"}
    for told in made:
        assert 20 < told["tokens_after"] < told["tokens_before"]
    assert not unproven(runtime)
