"""What a model is asked to write is previewed only where it would be asked: preview and act are refused alike."""

from __future__ import annotations

from typing import Any

import pytest

from ctxengine.service.compacted import Compacted
from ctxengine.service.specs import ServiceError
from tests.shrinking import Shrinker
from tests.summing import Summing, provider_of, told
from tests.telling import FIRST, Telling

pytestmark = pytest.mark.django_db


def refused(runtime: Shrinker, **fields: Any) -> tuple[str, str]:
    with pytest.raises(ServiceError) as found:
        runtime.shrink(summariser="model", **fields)
    return found.value.code, found.value.detail


def agreed(runtime: Shrinker, **fields: Any) -> tuple[Compacted, Compacted]:
    """The preview and the act."""
    preview = runtime.shrink(summariser="model", preview=True, **fields)
    assert (preview.outcome, preview.event, preview.job) == ("previewed", None, None)
    act = runtime.shrink(summariser="model", **fields)
    assert act.outcome == "queued" and act.tokens_before == preview.tokens_before
    return preview, act


def due(window: int = 7_000) -> Telling:
    """A session whose next plan wants a packet that nobody has made."""
    runtime = Telling(window=window)
    runtime.pass_by(FIRST)
    return runtime


def test_a_packet_too_small_for_prose_is_neither_made_nor_previewed(settings: Any) -> None:
    with provider_of(settings, told()):
        runtime = due(window=5_000)
        act, preview = refused(runtime), refused(runtime, preview=True)
    assert act == preview and act[0] == "no_room"


def test_nor_where_no_model_can_be_called(settings: Any) -> None:
    settings.CTX_PROVIDER_KEYS = {}
    runtime = due()
    act, preview = refused(runtime), refused(runtime, preview=True)
    assert act == preview and act[0] == "no_summariser"


def test_a_packet_that_can_be_written_is_previewed_with_what_the_model_reads(settings: Any) -> None:
    with provider_of(settings, told()):
        preview, act = agreed(due())
    assert preview.tokens_read and preview.tokens_after and preview.replaced_through
    assert act.job is not None


def test_summaries_of_a_cut_history_and_merges_agree_too(settings: Any) -> None:
    with provider_of(settings, told()):
        runtime = Summing(window=30_000)
        runtime.talk(4)
        through = runtime.row.content_sequence // 2
        runtime.shrink(through=through // 2, force=True)
        runtime.shrink(through=through, force=True)
        wishes: list[dict[str, Any]] = [
            {"merge": True, "force": True},
            {"through": runtime.row.content_sequence, "force": True},
        ]
        settings.CTX_PROVIDER_KEYS = {}
        for wish in wishes:
            act, preview = refused(runtime, **wish), refused(runtime, preview=True, **wish)
            assert act == preview and act[0] == "no_summariser"
    with provider_of(settings, told()):
        for wish in wishes[1:]:
            agreed(runtime, **wish)
