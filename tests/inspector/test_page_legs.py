"""A request that a fallback leg answered, on its pages: who answered, and whose body is shown (design 5)."""

from __future__ import annotations

import pytest

from ctxengine.service.specs import Actor, ModelRef
from tests.cast import Runtime, answer
from tests.inspector.conftest import Cast

pytestmark = pytest.mark.django_db


def test_the_pages_tell_the_leg_from_the_model_whose_body_they_show(cast: Cast) -> None:
    runtime = Runtime(actor=Actor(cast.tenant.id, "system"))
    runtime.ask("How is it there?")
    built = runtime.assemble(legs=(ModelRef(provider="openai", name="gpt-5.4"),))
    runtime.hear(answer("openai", "It is mild."), leg=0)
    page = cast.page(f"requests/{built.request_id}/json/")
    assert "leg 0 of claude-sonnet-4-6" in page
    assert "The body as it goes to anthropic" in page
    assert "https://api.anthropic.com/v1/messages" in cast.page(f"requests/{built.request_id}/curl")
    assert "gpt-5.4" in cast.page("requests/")
