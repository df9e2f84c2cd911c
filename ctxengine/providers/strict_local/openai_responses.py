"""OpenAI Responses: create, compact and input_tokens."""

from __future__ import annotations

from dataclasses import replace

from ctxengine.providers.strict_local.cache_openai import CacheUsage
from ctxengine.providers.strict_local.diagnostics import fingerprint_of, first_difference
from ctxengine.providers.strict_local.exchange import (
    Answer,
    Call,
    Json,
    json_answer,
    object_of,
    objects,
    text_of,
)
from ctxengine.providers.strict_local.models import scripted_name
from ctxengine.providers.strict_local.openai_request import Request, read, serve_cache
from ctxengine.providers.strict_local.refusal import Refusal
from ctxengine.providers.strict_local.responses_checks import FIELDS, check
from ctxengine.providers.strict_local.responses_items import (
    Window,
    compaction_item,
    items_of,
    kind_of,
    parts_of,
    refuse_broken_pairs,
    seal_reasoning,
    user_messages,
    window_of,
)
from ctxengine.providers.strict_local.responses_prompt import (
    build,
    deferred_tools,
    facets,
    implicit_at,
)
from ctxengine.providers.strict_local.responses_stream import stream_of
from ctxengine.providers.strict_local.responses_view import view_of
from ctxengine.providers.strict_local.script import Reply
from ctxengine.providers.strict_local.segments import Chain
from ctxengine.providers.strict_local.signatures import digest
from ctxengine.providers.strict_local.speaking import (
    Limits,
    Spoken,
    broken_by_script,
    refuse_by_script,
    speak,
)
from ctxengine.providers.strict_local.state import State

_COMPACTED_OUTPUT_TOKENS = 40


def create_response(call: Call, state: State) -> Answer:
    """`POST /v1/responses`.

    Raises:
        Refusal: anything that the API refuses.
    """
    request, items = _read(call, state)
    if items and kind_of(items[-1]) == "compaction_trigger":
        return _compact_in_band(request, items[:-1], state)
    window = window_of(request, items, state)
    chain = build(request, window.items, state)
    output: list[Json] = []
    threshold = _threshold(request)
    if threshold is not None and chain.tokens >= threshold:
        output.append(compaction_item(request, window.items, state))
        window = window_of(request, [*window.items, *output], state)
        chain = build(request, window.items, state)
    window, chain = _fitted(request, window, chain, state)
    return _answer(request, items, window, chain, output, call, state)


def compact(call: Call, state: State) -> Answer:
    """`POST /v1/responses/compact`.

    Raises:
        Refusal: anything that the API refuses.
    """
    request, items = _read(call, state)
    window = window_of(request, items, state)
    chain = build(request, window.items, state)
    view = view_of(request, window, chain.tokens, digest(call.body))
    reply = state.script.next(view, lambda _: Reply())
    refuse_by_script(reply, "openai", request.model)
    _refuse_overflow(request, chain)
    cache = serve_cache(request, chain, implicit_at(chain), state)
    item = compaction_item(request, window.items, state)
    if reply.broken == "block":
        del item["encrypted_content"]
    kept = [_listed(item, state) for item in user_messages(window.items)]
    answer = json_answer(
        {
            "id": state.ids.next("resp"),
            "object": "response.compaction",
            "created_at": int(state.clock.now()),
            "output": [] if reply.refuse else [*kept, item],
            "usage": _usage(chain.tokens, cache, _COMPACTED_OUTPUT_TOKENS, 0),
        }
    )
    answer = replace(answer, stall_seconds=reply.stall_seconds)
    return broken_by_script(reply, answer)


def count_tokens(call: Call, state: State) -> Answer:
    """`POST /v1/responses/input_tokens`.

    Raises:
        Refusal: anything that the API refuses.
    """
    request, items = _read(call, state)
    chain = build(request, window_of(request, items, state).items, state)
    return json_answer({"object": "response.input_tokens", "input_tokens": chain.tokens})


def _read(call: Call, state: State) -> tuple[Request, list[Json]]:
    request = read(call, state.windows, FIELDS)
    if request.body.get("previous_response_id") and request.body.get("conversation"):
        check(request, [{"role": "user", "content": "-"}])
    items = items_of(request, state)
    check(request, items)
    refuse_broken_pairs(items, state)
    return request, items


def _threshold(request: Request) -> int | None:
    edits = objects(request.body.get("context_management"))
    return edits[0].get("compact_threshold") if edits else None


def _fitted(request: Request, window: Window, chain: Chain, state: State) -> tuple[Window, Chain]:
    """The window, cut from its start where the request allows that.

    Raises:
        Refusal: it is too long, and truncation is off.
    """
    while chain.tokens > request.window.total:
        if request.body.get("truncation") != "auto" or len(window.items) < 2:
            _refuse_overflow(request, chain)
        window = window._replace(items=_without_first(window.items))
        chain = build(request, window.items, state)
    return window, chain


def _refuse_overflow(request: Request, chain: Chain) -> None:
    if chain.tokens > request.window.total:
        raise Refusal(
            "Your input exceeds the context window of this model. Please adjust your input and "
            "try again.",
            param="input",
            code="context_length_exceeded",
        )


def _without_first(items: list[Json]) -> list[Json]:
    rest = items[1:]
    called = {item.get("call_id") for item in rest if kind_of(item) == "function_call"}
    while rest and kind_of(rest[0]).endswith("_output") and rest[0].get("call_id") not in called:
        rest = rest[1:]
    return rest


def _answer(
    request: Request,
    items: list[Json],
    window: Window,
    chain: Chain,
    output: list[Json],
    call: Call,
    state: State,
) -> Answer:
    view = view_of(request, window, chain.tokens, digest(call.body))
    prewarms = bool(object_of(request.body.get("prompt_cache_options")).get("prewarm"))
    reply = Reply() if prewarms else state.script.next(view)
    refuse_by_script(reply, "openai", request.model)
    cache = serve_cache(request, chain, implicit_at(chain), state)
    asked = request.body.get("max_output_tokens") or request.window.output
    limits = Limits(asked, request.window.total - chain.tokens)
    spoken = speak(reply, view, limits, state.counter, state.ids, "call")
    if not prewarms:
        output += _output(request, reply, spoken, window, state)
    usage = _usage(chain.tokens, cache, spoken.tokens, spoken.thinking_tokens)
    if prewarms:
        usage = _usage(chain.tokens, cache, 0, 0)
    response = _response(request, output, usage, state)
    if spoken.stop in {"length", "window"}:
        response["status"] = "incomplete"
        response["incomplete_details"] = {"reason": "max_output_tokens"}
    response["input_transformations"] = window.transformations
    response["prompt_cache_diagnostics"] = _diagnosis(
        request, window, chain, cache, response, state
    )
    if request.body.get("store", True):
        state.store(response["id"], (*items, *output))
    return _deliver(request, response, reply)


def _deliver(request: Request, response: Json, reply: Reply) -> Answer:
    answer = json_answer(response)
    if request.body.get("stream"):
        answer = Answer(content_type="text/event-stream", events=stream_of(response))
    return replace(
        answer, stall_seconds=reply.stall_seconds, cut_after_events=reply.cut_after_events
    )


def _compact_in_band(request: Request, items: list[Json], state: State) -> Answer:
    window = window_of(request, items, state)
    chain = build(request, window.items, state)
    cache = serve_cache(request, chain, implicit_at(chain), state)
    output = [compaction_item(request, window.items, state)]
    usage = _usage(chain.tokens, cache, _COMPACTED_OUTPUT_TOKENS, 0)
    response = _response(request, output, usage, state)
    if request.body.get("store", True):
        state.store(response["id"], (*items, *output))
    return _deliver(request, response, Reply())


def _output(
    request: Request, reply: Reply, spoken: Spoken, window: Window, state: State
) -> list[Json]:
    made: list[Json] = []
    reasoning_id = None
    if spoken.thinking is not None:
        reasoning_id = state.ids.next("rs")
        made.append(
            {
                "type": "reasoning",
                "id": reasoning_id,
                "summary": [{"type": "summary_text", "text": spoken.thinking}],
                "encrypted_content": seal_reasoning(request, window.items, spoken.thinking, state),
            }
        )
    produced = _spoken_items(request, reply, spoken, state)
    if reasoning_id is not None and produced:
        state.pair(produced[0]["id"], reasoning_id)
    return made + produced


def _spoken_items(request: Request, reply: Reply, spoken: Spoken, state: State) -> list[Json]:
    made: list[Json] = []
    if spoken.text or not spoken.calls:
        part: Json = {"type": "output_text", "text": spoken.text, "annotations": [], "logprobs": []}
        if spoken.stop == "refusal":
            part = {"type": "refusal", "refusal": spoken.text}
        made.append(
            {
                "type": "message",
                "id": state.ids.next("msg"),
                "status": "completed",
                "role": "assistant",
                "content": [part],
                "phase": "commentary" if spoken.calls else "final_answer",
            }
        )
    if reply.searched and spoken.calls:
        made += _search(request, reply, state)
    namespaces = _namespaces(request)
    for call in spoken.calls:
        item: Json = {
            "type": "function_call",
            "id": state.ids.next("fc"),
            "call_id": call.call_id,
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }
        if call.name in namespaces:
            item["namespace"] = namespaces[call.name]
        made.append(item)
    return made


def _namespaces(request: Request) -> dict[str, str]:
    return {
        text_of(tool.get("name")): text_of(space.get("name"))
        for space in request.tools
        if space.get("type") == "namespace"
        for tool in objects(space.get("tools"))
    }


def _search(request: Request, reply: Reply, state: State) -> list[Json]:
    found = [tool for tool in deferred_tools(request) if tool.get("name") in reply.searched]
    shared = {"call_id": None, "execution": "server", "status": "completed"}
    return [
        {
            "type": "tool_search_call",
            "id": state.ids.next("tsc"),
            "arguments": {"query": " ".join(reply.searched)},
            **shared,
        },
        {"type": "tool_search_output", "id": state.ids.next("tso"), "tools": found, **shared},
    ]


def _response(request: Request, output: list[Json], usage: Json, state: State) -> Json:
    body = request.body
    options = object_of(body.get("prompt_cache_options"))
    now = state.clock.now()
    return {
        "id": state.ids.next("resp"),
        "object": "response",
        "created_at": int(now),
        "completed_at": int(now),
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "model": scripted_name(request.model),
        "output": output,
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": body.get("previous_response_id"),
        "prompt_cache_key": body.get("prompt_cache_key"),
        "prompt_cache_options": {
            "mode": options.get("mode", "implicit"),
            "ttl": options.get("ttl", "30m"),
        },
        "reasoning": body.get("reasoning"),
        "store": body.get("store", True),
        "temperature": None,
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": request.tools,
        "top_p": None,
        "truncation": body.get("truncation", "disabled"),
        "usage": usage,
        "metadata": body.get("metadata") or {},
    }


def _usage(tokens: int, cache: CacheUsage, output: int, reasoning: int) -> Json:
    return {
        "input_tokens": tokens,
        "input_tokens_details": {
            "cached_tokens": cache.read,
            "cache_write_tokens": cache.written,
            "cache_write_tokens_details": {
                "ttl_30m_tokens": cache.written_30m,
                "ttl_12h_tokens": cache.written_12h,
            },
        },
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": tokens + output,
    }


def _diagnosis(
    request: Request,
    window: Window,
    chain: Chain,
    cache: CacheUsage,
    response: Json,
    state: State,
) -> Json | None:
    mark = fingerprint_of(chain, facets(request, window.items, chain))
    asked = object_of(request.body.get("prompt_cache_options")).get("comparison_response_id")
    before = state.fingerprints.get(text_of(asked))
    state.fingerprints.remember(text_of(response["id"]), mark)
    if asked is None:
        return None
    if before is None:
        return {"type": "comparison_response_not_found"}
    difference = first_difference(before, mark)
    if difference is None:
        return {"type": "cache_hit" if cache.read else "unavailable"}
    reason = "input_changed" if difference.facet == "messages" else difference.facet
    missed = difference.missed_tokens
    return {
        "type": "cache_miss",
        "reason": reason,
        "cache_missed_tokens": missed,
        "comparison_reusable_tokens": before.tokens - missed,
    }


def _listed(item: Json, state: State) -> Json:
    """A user's message as an output item of a compacted window."""
    kept = {"type": "message", "role": "user", "content": parts_of(item), "status": "completed"}
    return {"id": text_of(item.get("id")) or state.ids.next("msg"), **kept}
