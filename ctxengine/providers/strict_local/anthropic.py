"""Anthropic's endpoints: messages, count_tokens and models."""

from __future__ import annotations

from dataclasses import replace

from ctxengine.providers.strict_local import anthropic_compaction as compaction
from ctxengine.providers.strict_local.anthropic_answer import (
    STOPS,
    content_of,
    iteration,
    stream_of,
    usage_of,
)
from ctxengine.providers.strict_local.anthropic_checks import check
from ctxengine.providers.strict_local.anthropic_prompt import Prompt, build, canonical, flatten
from ctxengine.providers.strict_local.anthropic_request import (
    BINDING_CONTROLS,
    Request,
    blocks_of,
    read,
)
from ctxengine.providers.strict_local.anthropic_thinking import Block, sign
from ctxengine.providers.strict_local.cache_anthropic import CacheUsage, Lookup
from ctxengine.providers.strict_local.diagnostics import (
    Fingerprint,
    fingerprint_of,
    first_difference,
)
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
from ctxengine.providers.strict_local.refusal import Refusal
from ctxengine.providers.strict_local.script import TEXT_PREFIX, Offer, Reply, Turn, View
from ctxengine.providers.strict_local.signatures import digest
from ctxengine.providers.strict_local.speaking import (
    Limits,
    Spoken,
    broken_by_script,
    refuse_by_script,
    speak,
)
from ctxengine.providers.strict_local.state import State

_LISTED = (
    "claude-fable-5-2", "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5",
    "claude-opus-4-8", "claude-sonnet-4-6", "claude-sonnet-4-5", "claude-haiku-4-5",
)  # fmt: skip
_RELEASED = "2026-01-01T00:00:00Z"


def create_message(call: Call, state: State) -> Answer:
    """`POST /v1/messages`.

    Raises:
        Refusal: anything that the API refuses.
    """
    request = read(call, state.windows)
    compaction.refuse_early(request)
    check(request)
    window = compaction.open_window(request, flatten(request), state.seal)
    prompt = build(request, window.blocks, state.counter, state.seal, window.adopted)
    if request.compacts:
        return _compact(request, prompt, window.blocks, call, state)
    threshold = compaction.threshold_of(request)
    if threshold is not None and prompt.tokens >= threshold.tokens:
        return _compact_and_go_on(request, prompt, window.blocks, threshold, call, state)
    return _answer(request, prompt, call, state)


def count_tokens(call: Call, state: State) -> Answer:
    """`POST /v1/messages/count_tokens`.

    Raises:
        Refusal: anything that the API refuses.
    """
    request = read(call, state.windows)
    if "mcp_servers" in request.body:
        raise Refusal("mcp_servers: Extra inputs are not permitted")
    check(request, counting=True)
    window = compaction.open_window(request, flatten(request), state.seal)
    prompt = build(request, window.blocks, state.counter, state.seal, window.adopted)
    return json_answer({"input_tokens": prompt.tokens})


def list_models(state: State) -> Answer:
    """`GET /v1/models`."""
    data = [_model(name, state) for name in _LISTED]
    ends = {"first_id": data[0]["id"], "last_id": data[-1]["id"], "has_more": False}
    return json_answer({"data": data, **ends})


def get_model(name: str, state: State) -> Answer:
    """`GET /v1/models/{name}`.

    Raises:
        Refusal: the name is no Claude's.
    """
    return json_answer(_model(name, state))


def _model(name: str, state: State) -> Json:
    body = b'{"model":"%s"}' % name.encode()
    request = read(Call("GET", "", {"anthropic-version": "2026-10-21"}, body), state.windows)
    return {
        "type": "model",
        "id": name,
        "display_name": f"{name} (scripted)",
        "created_at": _RELEASED,
        "lifecycle": "active",
        "max_input_tokens": request.window.total,
        "max_tokens": request.window.output,
    }


def _answer(request: Request, prompt: Prompt, call: Call, state: State) -> Answer:
    _refuse_overflow(request, prompt.tokens)
    view = view_of(request, prompt.tokens, digest(call.body))
    prewarms = request.body["max_tokens"] == 0
    reply = Reply() if prewarms else state.script.next(view)
    refuse_by_script(reply, "anthropic", request.model)
    lookup = _look_up(request, prompt, state)
    spoken = _speak(request, reply, view, prompt, state)
    content = [] if prewarms else _content(request, reply, spoken, prompt, state)
    usage = usage_of(lookup.usage, spoken.tokens, spoken.thinking_tokens)
    if prewarms:
        usage = usage_of(lookup.usage, 0, 0)
    stop = "max_tokens" if prewarms else STOPS[spoken.stop]
    message = _message(request, prompt, content, stop, usage, state)
    return _deliver(request, message, reply, lookup, state)


def _refuse_overflow(request: Request, tokens: int) -> None:
    window = request.window.total
    if tokens > window:
        raise Refusal(f"prompt is too long: {tokens} tokens > {window} maximum")
    asked = request.body["max_tokens"]
    if request.facts.refuses_long_output and tokens + asked > window:
        raise Refusal(
            f"input length and `max_tokens` exceed context limit: {tokens} + {asked} > {window}, "
            "decrease input length or `max_tokens` and try again"
        )


def _look_up(request: Request, prompt: Prompt, state: State) -> Lookup:
    minimum = request.facts.minimum_cached
    return state.anthropic_cache.look_up(prompt.chain, minimum, state.clock.now())


def _speak(request: Request, reply: Reply, view: View, prompt: Prompt, state: State) -> Spoken:
    limits = Limits(request.body["max_tokens"], request.window.total - prompt.tokens)
    return speak(reply, view, limits, state.counter, state.ids, "toolu")


def _content(
    request: Request, reply: Reply, spoken: Spoken, prompt: Prompt, state: State
) -> list[Json]:
    signature = ""
    if spoken.thinking is not None:
        signature = sign(
            state.seal,
            model=request.model,
            bound_to=prompt.bound_to,
            previous=prompt.previous_thinking,
            thinking=spoken.thinking,
        )
    search = _search(request, reply, state) if reply.searched and spoken.calls else []
    return content_of(spoken, signature, search)


def _search(request: Request, reply: Reply, state: State) -> list[Json]:
    tool = next((t for t in request.tools if _searches(t)), {})
    call_id = state.ids.next("srvtoolu")
    query = {"query": " ".join(reply.searched)}
    references = [{"type": "tool_reference", "tool_name": name} for name in reply.searched]
    found = {"type": "tool_search_tool_search_result", "tool_references": references}
    return [
        {"type": "server_tool_use", "id": call_id, "name": tool.get("name"), "input": query},
        {"type": "tool_search_tool_result", "tool_use_id": call_id, "content": found},
    ]


def _searches(tool: Json) -> bool:
    return text_of(tool.get("type")).startswith("tool_search_tool_")


def _message(
    request: Request, prompt: Prompt, content: list[Json], stop: str, usage: Json, state: State
) -> Json:
    message_id = state.ids.next("msg")
    message: Json = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": scripted_name(request.model),
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "stop_details": None,
        "usage": usage,
        "diagnostics": None,
    }
    mark = fingerprint_of(prompt.chain, prompt.facets)
    asked = request.body.get("diagnostics")
    if isinstance(asked, dict) and asked.get("previous_message_id"):
        before = state.fingerprints.get(text_of(asked["previous_message_id"]))
        message["diagnostics"] = _diagnosis(before, mark)
    state.fingerprints.remember(message_id, mark)
    if BINDING_CONTROLS in request.betas:
        message["input_transformations"] = list(prompt.transformations)
    return message


def _diagnosis(before: Fingerprint | None, after: Fingerprint) -> Json | None:
    if before is None:
        return {"cache_miss_reason": {"type": "previous_message_not_found"}}
    difference = first_difference(before, after)
    if difference is not None:
        missed = {"cache_missed_input_tokens": difference.missed_tokens}
        return {"cache_miss_reason": {"type": f"{difference.facet}_changed", **missed}}
    if before.settings != after.settings:
        return {"cache_miss_reason": {"type": "unavailable"}}
    return None


def _deliver(request: Request, message: Json, reply: Reply, lookup: Lookup, state: State) -> Answer:
    def begun() -> None:
        state.anthropic_cache.commit(lookup, state.clock.now())

    if request.body.get("stream"):
        answer = Answer(content_type="text/event-stream", events=stream_of(message))
    else:
        answer = json_answer(message)
    return replace(
        answer,
        stall_seconds=reply.stall_seconds,
        cut_after_events=reply.cut_after_events,
        begun=begun,
    )


# --- compaction -------------------------------------------------------------------------------------------------------


def _summary(
    request: Request, prompt: Prompt, blocks: list[Block], call: Call, state: State
) -> Reply:
    view = view_of(request, prompt.tokens, digest(call.body))
    return state.script.next(view, lambda _: Reply(text=compaction.summary_of(blocks)))


def _compact(
    request: Request, prompt: Prompt, blocks: list[Block], call: Call, state: State
) -> Answer:
    reply = _summary(request, prompt, blocks, call, state)
    refuse_by_script(reply, "anthropic", request.model, _unavailable(reply))
    _refuse_overflow(request, prompt.tokens)
    lookup = _look_up(request, prompt, state)
    made = not reply.refuse and bool(reply.text)
    content = TEXT_PREFIX + (reply.text or "")
    block = compaction.signed_block(prompt, blocks, content, state.seal)
    if reply.broken == "block":
        del block["signature"]
    spent = state.counter.text(content, request.model) if made else 0
    usage = usage_of(CacheUsage(0, 0, 0, 0), 0, 0)
    usage["iterations"] = [iteration("compaction", usage_of(lookup.usage, spent, 0))]
    stop = "compaction" if made else "refusal"
    message = _message(request, prompt, [block] if made else [], stop, usage, state)
    return broken_by_script(reply, _deliver(request, message, reply, lookup, state))


def _unavailable(reply: Reply) -> str | None:
    return "compaction_unavailable" if reply.status == 529 else None


def _compact_and_go_on(
    request: Request,
    prompt: Prompt,
    blocks: list[Block],
    threshold: compaction.Threshold,
    call: Call,
    state: State,
) -> Answer:
    summary = _summary(request, prompt, blocks, call, state)
    refuse_by_script(summary, "anthropic", request.model)
    compacting = usage_of(
        _look_up(request, prompt, state).usage,
        state.counter.text(summary.text or "", request.model),
        0,
    )
    content = TEXT_PREFIX + (summary.text or "")
    block = compaction.threshold_block(content, blocks, state.seal)
    path = f"messages.{len(request.messages)}.content.0"
    rest = build(request, [Block("assistant", path, block)], state.counter, state.seal)
    reply, said = summary, Spoken("", (), None, "stop", 0, 0)
    if not threshold.pause:
        view = view_of(request, rest.tokens, digest(call.body))
        reply = state.script.next(view)
        refuse_by_script(reply, "anthropic", request.model)
        said = _speak(request, reply, view, rest, state)
    lookup = _look_up(request, rest, state)
    after = [] if threshold.pause else _content(request, reply, said, rest, state)
    usage = usage_of(lookup.usage, said.tokens, said.thinking_tokens)
    paused = threshold.pause
    steps = [iteration("compaction", compacting)]
    usage["iterations"] = steps if paused else [*steps, iteration("message", usage)]
    if paused:
        usage |= usage_of(CacheUsage(0, 0, 0, 0), 0, 0)
    stop = "compaction" if paused else STOPS[said.stop]
    message = _message(request, rest, [block, *after], stop, usage, state)
    message["context_management"] = {"applied_edits": []}
    return _deliver(request, message, reply, lookup, state)


# --- what the rules see -----------------------------------------------------------------------------------------------


def view_of(request: Request, tokens: int, body: str) -> View:
    """The request as the rules read it."""
    choice = object_of(request.body.get("tool_choice"))
    kind = text_of(choice.get("type")) or "auto"
    found = _found_tools(request)
    offers = tuple(
        Offer(
            text_of(tool.get("name")),
            object_of(tool.get("input_schema")),
            bool(tool.get("defer_loading")) and tool.get("name") not in found,
        )
        for tool in request.tools
        if not _searches(tool)
    )
    form = object_of(object_of(request.body.get("output_config")).get("format"))
    return View(
        api="anthropic",
        model=request.model,
        tokens=tokens,
        turns=tuple(_turn(message) for message in request.messages),
        offers=offers,
        choice=text_of(choice.get("name")) if kind == "tool" else kind,
        answer_schema=object_of(form.get("schema")) if form else None,
        thinks=request.thinks,
        searches=any(_searches(tool) for tool in request.tools),
        body_digest=body,
    )


def _found_tools(request: Request) -> set[str]:
    text = [
        entry
        for message in request.messages
        for block in blocks_of(message)
        for entry in (
            *objects(block.get("content")),
            *objects(object_of(block.get("content")).get("tool_references")),
        )
    ]
    return {text_of(e.get("tool_name")) for e in text if e.get("type") == "tool_reference"}


def _turn(message: Json) -> Turn:
    blocks = blocks_of(message)
    return Turn(
        role=text_of(message.get("role")),
        texts=tuple(text_of(b.get("text")) for b in blocks if b.get("type") == "text"),
        results=tuple(_result(b) for b in blocks if b.get("type") == "tool_result"),
        calls=tuple(text_of(b.get("name")) for b in blocks if b.get("type") == "tool_use"),
    )


def _result(block: Json) -> str:
    content = block.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(text_of(b.get("text")) or canonical(b)[:80] for b in objects(content))
