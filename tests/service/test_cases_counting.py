"""Development cases on estimates: dev-12 (scripts) and dev-13 (base64)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxengine.engine.content.decode import decode
from ctxengine.engine.items import ContentFormat
from ctxengine.engine.tokens.counter import counter_for
from ctxengine.ledger.models import ItemRow
from ctxengine.service.specs import Content
from tests.cast import PROVIDERS, Runtime
from tests.service.conftest import Case

OWN_12 = {
    "texts": {
        "ascii": "fact " * 120,
        "han": "時間経過" * 150,
        "hangul": "고맙습니다" * 120,
        "kana": "さようなら" * 120,
        "emoji": "🎈" * 100,
        "mixed": "see 修正 now 🐢",
    }
}
MODELS = [("compatible", "test-200k"), ("anthropic", "claude-sonnet-4-6")]


@pytest.mark.parametrize(("provider", "model"), MODELS)
def test_12_no_script_is_counted_too_low(case: Case, provider: str, model: str) -> None:
    texts: dict[str, str] = case("12", OWN_12)["texts"]
    counter = counter_for(provider, model)
    tokens = {name: counter.text(text) for name, text in texts.items()}
    if model == "test-200k":
        assert min(tokens["han"], tokens["hangul"], tokens["kana"]) >= 480
        assert tokens["emoji"] >= 150
    assert 120 <= tokens["ascii"] <= 300
    assert tokens == {name: counter_for(provider, model).text(text) for name, text in texts.items()}
    for one in texts.values():
        for other in texts.values():
            joined = counter.text(one + other)
            assert joined >= 0.97 * max(counter.text(one), counter.text(other)) - 6


IMAGE = {"type": "image", "media_type": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAB" * 3_000}
OWN_13 = {
    "items": [
        {"name": "image_block", "kind": "user", "content": [IMAGE]},
        {"name": "image_in_result", "kind": "tool_result", "content": [IMAGE]},
        {"name": "text_dump", "kind": "tool_result",
         "content": [{"type": "text", "text": "WlhDVkJOTWFzZGZnaGprbDEyMzQ1" * 1_430}]},
    ]
}  # fmt: skip


def as_blocks(content: list[dict[str, Any]]) -> str:
    """The case's short form of an image as a base64 source."""
    blocks = [
        {
            "type": "image",
            "source": {
                "type": "base64",
                "media_type": block["media_type"],
                "data": block["data"],
            },
        }
        if block["type"] == "image"
        else block
        for block in content
    ]
    return json.dumps(blocks)


@pytest.mark.parametrize(("provider", "model"), MODELS)
def test_13_an_image_costs_a_flat_figure_and_a_dump_what_it_will_cost(
    case: Case, provider: str, model: str
) -> None:
    counter = counter_for(provider, model)
    tokens = {}
    for item in case("13", OWN_13)["items"]:
        (decoded,) = decode(ContentFormat.BLOCKS, as_blocks(item["content"])).items
        tokens[item["name"]] = counter.parts(decoded.parts)
    assert 1 <= tokens["image_block"] <= 10_000
    assert 1 <= tokens["image_in_result"] <= 10_000
    if model == "test-200k":
        assert tokens["text_dump"] >= 36_000


@pytest.mark.django_db
@pytest.mark.parametrize("provider", PROVIDERS)
def test_13_an_image_in_a_message_is_stored_once_and_counted_flat(provider: str) -> None:
    runtime = Runtime(provider=provider)
    runtime.ask(Content(format=ContentFormat.BLOCKS, raw=as_blocks([IMAGE])))
    built = runtime.assemble()
    item = ItemRow.objects.get(session_id=runtime.session)
    assert 1 <= item.tokens <= 10_000
    assert built.budget["request"] < 20_000
    assert IMAGE["data"] in built.body.decode()
    assert IMAGE["data"][:60] not in json.dumps(runtime.requests[-1].manifest)
    assert IMAGE["data"][:60] not in item.preview
