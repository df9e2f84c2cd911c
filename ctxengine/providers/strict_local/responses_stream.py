"""The events of a streamed response."""

from __future__ import annotations

from itertools import count

from ctxengine.providers.strict_local.exchange import Json, named_event, pieces, text_of


def stream_of(response: Json) -> tuple[bytes, ...]:
    """A whole response as the events that build it."""
    empty = response | {
        "status": "in_progress", "output": [], "usage": None, "completed_at": None,
        "incomplete_details": None,
    }  # fmt: skip
    events: list[Json] = [
        {"type": "response.created", "response": empty},
        {"type": "response.in_progress", "response": empty},
    ]
    for index, item in enumerate(response["output"]):
        events += _item_events(index, item)
    done = "incomplete" if response["status"] == "incomplete" else "completed"
    events.append({"type": f"response.{done}", "response": response})
    numbers = count()
    return tuple(named_event(event | {"sequence_number": next(numbers)}) for event in events)


def _item_events(index: int, item: Json) -> list[Json]:
    kind = text_of(item.get("type"))
    place = {"item_id": item["id"], "output_index": index}
    if kind == "message":
        opening, inner = item | {"content": [], "status": "in_progress"}, _message(item, place)
    elif kind == "reasoning":
        opening = item | {"summary": [], "encrypted_content": ""}
        inner = _reasoning(item, place)
    elif kind == "function_call":
        opening, inner = item | {"arguments": "", "status": "in_progress"}, _call(item, place)
    elif kind == "compaction":
        opening = item | {"encrypted_content": ""}
        inner = [{"type": "response.compaction.compacting", **place}]
    else:
        opening, inner = item, []
    return [
        {"type": "response.output_item.added", "output_index": index, "item": opening},
        *inner,
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _message(item: Json, place: Json) -> list[Json]:
    events: list[Json] = []
    for number, part in enumerate(item["content"]):
        where = place | {"content_index": number}
        key = "refusal" if part["type"] == "refusal" else "text"
        name = "response.refusal" if key == "refusal" else "response.output_text"
        extra: Json = {} if key == "refusal" else {"logprobs": []}
        events.append({"type": "response.content_part.added", **where, "part": part | {key: ""}})
        events += [
            {"type": f"{name}.delta", **where, "delta": piece, **extra}
            for piece in pieces(part[key])
        ]
        events.append({"type": f"{name}.done", **where, key: part[key], **extra})
        events.append({"type": "response.content_part.done", **where, "part": part})
    return events


def _reasoning(item: Json, place: Json) -> list[Json]:
    events: list[Json] = []
    for number, part in enumerate(item["summary"]):
        where = place | {"summary_index": number}
        name = "response.reasoning_summary"
        events.append({"type": f"{name}_part.added", **where, "part": part | {"text": ""}})
        events += [
            {"type": f"{name}_text.delta", **where, "delta": piece}
            for piece in pieces(part["text"])
        ]
        events.append({"type": f"{name}_text.done", **where, "text": part["text"]})
        events.append({"type": f"{name}_part.done", **where, "part": part})
    return events


def _call(item: Json, place: Json) -> list[Json]:
    name = "response.function_call_arguments"
    return [
        *(
            {"type": f"{name}.delta", **place, "delta": piece}
            for piece in pieces(item["arguments"])
        ),
        {"type": f"{name}.done", **place, "arguments": item["arguments"], "name": item["name"]},
    ]
