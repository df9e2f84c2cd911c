"""The prompt of a Responses request as segments: tools, instructions, then items (providers.md 1.3)."""

from __future__ import annotations

from dataclasses import replace

from ctxengine.providers.strict_local.counting import Counter, inline_data
from ctxengine.providers.strict_local.exchange import Json, dump, object_of, objects, text_of
from ctxengine.providers.strict_local.openai_request import Request, has_breakpoint, seed_of
from ctxengine.providers.strict_local.responses_items import (
    kind_of,
    part_text,
    parts_of,
    sealed_text,
)
from ctxengine.providers.strict_local.segments import Chain, Segment, chain_of
from ctxengine.providers.strict_local.signatures import digest
from ctxengine.providers.strict_local.state import State

_IMPLICIT = ("user:", "developer:", "system:", "function_call_output:")


def loaded_tools(request: Request) -> list[Json]:
    """The tools that stand at the front: those not deferred, namespaces taken apart."""
    return [tool for tool in _functions(request.tools) if not tool.get("defer_loading")]


def deferred_tools(request: Request) -> list[Json]:
    """The tools that only a search loads."""
    return [tool for tool in _functions(request.tools) if tool.get("defer_loading")]


def added_tools(items: list[Json]) -> list[Json]:
    """Tools that came later: found by a search, or appended by the developer."""
    kinds = {"tool_search_output", "additional_tools"}
    return [
        tool for item in items if kind_of(item) in kinds for tool in _functions(item.get("tools"))
    ]


def _functions(tools: object) -> list[Json]:
    made: list[Json] = []
    for tool in objects(tools):
        made += objects(tool.get("tools")) if tool.get("type") == "namespace" else [tool]
    return made


def build(request: Request, items: list[Json], state: State) -> Chain:
    """Read tools, instructions and items into a prompt."""
    counter, model = state.counter, request.model
    segments: list[Segment] = []
    once = counter.tools_once(model)
    for number, tool in enumerate(loaded_tools(request)):
        text = dump(tool).decode()
        tokens = counter.tool(text, model) + (0 if number else once)
        segments.append(Segment("tools", text, tokens, f"tools[{number}]"))
    instructions = request.body.get("instructions")
    if isinstance(instructions, str) and instructions:
        tokens = counter.text(instructions, model) + counter.message(model)
        segments.append(Segment("messages", f"instructions:{instructions}", tokens))
    for number, item in enumerate(items):
        segments += _item_segments(number, item, model, state)
    return chain_of(segments, (("tools", _settings(request)), ("messages", "")))


def facets(request: Request, items: list[Json], chain: Chain) -> tuple[tuple[str, str], ...]:
    """What diagnostics compare, in the order in which a difference is reported."""
    body = request.body
    text = object_of(body.get("text"))
    compacted = [
        digest(dump(item.get("encrypted_content")))
        for item in items
        if kind_of(item) == "compaction"
    ]
    return (
        ("model_changed", request.model),
        ("prompt_cache_key_changed", text_of(body.get("prompt_cache_key"))),
        ("tools_changed", digest(*chain.of("tools"))),
        ("text_format_changed", dump(text.get("format")).decode()),
        ("reasoning_effort_changed", dump(object_of(body.get("reasoning")).get("effort")).decode()),
        ("verbosity_changed", dump(text.get("verbosity")).decode()),
        ("context_compacted", dump(compacted).decode()),
        ("service_tier_changed", dump(body.get("service_tier")).decode()),
    )


def implicit_at(chain: Chain) -> int | None:
    """Where the automatic breakpoint lands: the end of the latest message that may carry one."""
    for index in range(len(chain.segments) - 1, -1, -1):
        segment = chain.segments[index]
        if segment.ends_message and segment.data.startswith(_IMPLICIT):
            return index
    return None


def _settings(request: Request) -> str:
    body = request.body
    text = object_of(body.get("text"))
    return seed_of(
        [
            request.model, body.get("parallel_tool_calls"), text.get("format"),
            text.get("verbosity"), object_of(body.get("reasoning")).get("effort"),
            body.get("service_tier"),
        ]
    )  # fmt: skip


def _item_segments(number: int, item: Json, model: str, state: State) -> list[Segment]:
    kind, path, counter = kind_of(item), f"input[{number}]", state.counter
    if kind == "message" or kind.endswith("_call_output"):
        head = text_of(item.get("role")) or f"{kind}:{text_of(item.get('call_id'))}"
        made = [
            Segment(
                "messages",
                f"{head}:{part_text(part)}",
                _part_tokens(part, model, counter),
                path,
                marker="30m" if has_breakpoint(part) else None,
            )
            for part in parts_of(item)
        ] or [Segment("messages", f"{head}:", 0, path)]
        made[0] = replace(made[0], tokens=made[0].tokens + counter.message(model))
        made[-1] = replace(made[-1], ends_message=True)
        return made
    plain = {k: v for k, v in item.items() if k not in {"id", "status"} and v is not None}
    return [
        Segment(
            "messages", f"{kind}:{dump(plain).decode()}", _item_tokens(item, model, state), path
        )
    ]


def _item_tokens(item: Json, model: str, state: State) -> int:
    counter = state.counter
    if kind_of(item) in {"reasoning", "compaction"}:
        return counter.text(sealed_text(item, state), model) + counter.message(model)
    if kind_of(item) == "function_call":
        return counter.call(text_of(item.get("name")), text_of(item.get("arguments")), model)
    tools = added_tools([item])
    if tools:
        return sum(counter.tool(dump(tool).decode(), model) for tool in tools)
    return counter.text(dump(item).decode(), model)


def _part_tokens(part: Json, model: str, counter: Counter) -> int:
    if part.get("type") == "input_image":
        _, data = inline_data(part.get("image_url"))
        return counter.image(data, "openai", model)
    if part.get("type") == "input_file":
        media_type, data = inline_data(part.get("file_data"))
        return counter.file(data, media_type, "openai", model)
    return counter.text(text_of(part.get("text")) or text_of(part.get("refusal")), model)
