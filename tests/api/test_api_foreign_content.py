"""Content blocks as other formats spell them: shown where they can be, pointed at where not; no request is refused for them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from ctxengine.engine.wire.base import WireApi
from tests.api.case_files import MODELS, checked
from tests.api.door import Door

apis = pytest.mark.parametrize("api", list(WireApi), ids=lambda api: api.value)

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND = base64.b64encode(b"RIFF" + b"\0" * 3_000).decode()
DOCUMENT = {"type": "text", "media_type": "text/plain", "data": "word " * 20_000}
MARKED = {"cache_control": {"type": "ephemeral"}}
IMAGES: list[dict[str, Any]] = [
    {"type": "image", "data": PNG, "mimeType": "image/png"},
    {"type": "image", "data": PNG},
    {"type": "image", "data": f"data:image/png;base64,{PNG}"},
    {"type": "image", "data": PNG, "media_type": "IMAGE/PNG"},
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
    {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
]
TEXTS: list[dict[str, Any]] = [
    {"type": "input_text", "text": "said 0"},
    {"type": "output_text", "text": "said 1"},
    {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "said 2"},
        **MARKED,
    },
    {
        "type": "document",
        "source": {"type": "content", "content": [{"type": "text", "text": "said 3", **MARKED}]},
        **MARKED,
    },
    {
        "type": "search_result",
        "source": "s",
        "title": "t",
        "content": [{"type": "text", "text": "said 4", **MARKED}],
        **MARKED,
    },
    {"type": "resource", "resource": {"uri": "file:///a", "text": "said 5"}},
]
BYTELESS: list[dict[str, Any]] = [
    {"type": "image", "data": "", "media_type": "image/png"},
    {"type": "image", "url": ""},
    {"type": "image", "url": "ftp://x.example/a.png"},
    {"type": "image_url", "image_url": {"url": "nowhere"}},
    {"type": "document", "url": "file:///etc/passwd"},
]
EMPTY: list[dict[str, Any]] = [
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}},
    {"type": "image", "data": "data:image/png;base64,"},
    {"type": "input_file", "file_data": "", "filename": "a.pdf"},
]
NOBODYS: list[dict[str, Any]] = [
    {"type": "compaction", "content": "Zebras came before."},
    {"type": "something_new", "x": 1},
    {"type": "container_upload"},
]


@apis
def test_texts_and_images_of_every_spelling_reach_the_model(door: Door, api: WireApi) -> None:
    session = door.open(model=MODELS[api])
    run = door.run(session, [*TEXTS, *IMAGES])
    body = checked(door, api, door.assemble(run)["request_id"])
    shown = json.dumps(body)
    for number in range(len(TEXTS)):
        assert f"said {number}" in shown
    assert shown.count(PNG) == len(IMAGES)
    door.says(run, "Seen.")
    checked(door, api, door.assemble(door.run(session, "And?"))["request_id"])


@apis
def test_what_cannot_be_fetched_or_is_not_the_users_to_send_stands_as_a_note(
    door: Door, api: WireApi
) -> None:
    session = door.open(model=MODELS[api])
    run = door.run(session, [{"type": "text", "text": "Look."}, *BYTELESS, *NOBODYS])
    turns = json.dumps(checked(door, api, door.assemble(run)["request_id"]))
    assert turns.count("stood here") == len(BYTELESS)
    assert "Zebras" not in turns and "something_new" not in turns
    door.says(run, "Seen.")
    checked(door, api, door.assemble(door.run(session, "And?"))["request_id"])


def test_an_attachment_without_bytes_never_goes_out(door: Door) -> None:
    run = door.run(door.open(), [{"type": "text", "text": "Look."}, *EMPTY])
    turns = json.dumps(checked(door, WireApi.ANTHROPIC, door.assemble(run)["request_id"]))
    assert turns.count("stood here") == len(EMPTY)


@apis
@pytest.mark.parametrize(
    "block",
    [
        {"type": "input_audio", "input_audio": {"data": SOUND, "format": "wav"}},
        {"type": "audio", "data": SOUND, "mimeType": "audio/wav"},
    ],
    ids=["openai", "mcp"],
)
def test_a_recording_is_heard_where_the_api_hears_and_never_counted_as_text(
    door: Door, api: WireApi, block: dict[str, Any]
) -> None:
    run = door.run(door.open(model=MODELS[api]), [{"type": "text", "text": "Hear."}, block])
    built = door.assemble(run)
    heard = SOUND in json.dumps(checked(door, api, built["request_id"]))
    assert heard == (api in {WireApi.OPENAI_CHAT, WireApi.GOOGLE})
    spent = sum(row["tokens"] for row in built["manifest"]["rows"] if row["row"] == 10)
    assert spent < len(SOUND) / 4


def test_a_document_of_an_import_stands_as_it_is_counted(door: Door) -> None:
    blocks = [{"type": "text", "text": "Read."}, {"type": "document", "source": DOCUMENT}]
    said = [{"role": "user", "content": blocks}, {"role": "assistant", "content": "Read it."}]
    file = {"model": "claude-sonnet-4-6", "system": "Be brief.", "max_tokens": 99, "messages": said}
    answer = door.send("POST", "imports?name=read.json", raw=json.dumps(file).encode())
    (session,) = answer.ok()["import"]["sessions"]
    built = door.assemble(door.run(session, "And?"))
    (history,) = [row for row in built["manifest"]["rows"] if row["row"] == 10]
    shown = json.dumps(checked(door, WireApi.ANTHROPIC, built["request_id"])["messages"])
    assert history["tokens"] > 0
    assert shown.count("word") <= history["tokens"]


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ({"type": "tool_use", "id": "c", "name": "weather", "input": {}}, "a tool call"),
        ({"type": "tool_result", "tool_use_id": "c", "content": "x"}, "tool-results"),
    ],
)
def test_calls_and_results_are_no_part_of_a_message(door: Door, block: Any, says: str) -> None:
    session = door.open()
    content = [{"type": "text", "text": "Look."}, block]
    refused = door.post(f"sessions/{session}/runs", {"message": content})
    assert (refused.status, refused.code) == (422, "invalid_content")
    assert says in refused.json["detail"]
    run = door.run(session, "Look.")
    refused = door.post(f"runs/{run}/input", {"message": content})
    assert (refused.status, refused.code) == (422, "invalid_content")
    checked(door, WireApi.ANTHROPIC, door.assemble(run)["request_id"])
