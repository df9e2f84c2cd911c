"""What the Responses API refuses beyond the engine's rules (providers.md 2.3, 4, 6)."""

from __future__ import annotations

from ctxengine.engine.wire.base import WireApi
from ctxengine.providers.strict_local.exchange import Json, object_of, objects, text_of
from ctxengine.providers.strict_local.models import gpt_version
from ctxengine.providers.strict_local.openai_request import Request, unsupported
from ctxengine.providers.strict_local.refusal import Refusal
from ctxengine.providers.strict_local.responses_items import kind_of
from ctxengine.providers.strict_local.rules import refuse_breaches
from ctxengine.providers.strict_local.rules_openai import (
    RESPONSES,
    missing,
    pattern,
    too_long,
    wrong_value,
)

FIELDS = frozenset(
    {
        "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "stream",
        "stream_options", "store", "include", "reasoning", "text", "truncation", "temperature",
        "top_p", "top_logprobs", "max_output_tokens", "max_tool_calls", "metadata", "user",
        "previous_response_id", "conversation", "context_management", "prompt", "prompt_cache_key",
        "prompt_cache_options", "prompt_cache_retention", "safety_identifier", "service_tier",
        "background", "background_options", "moderation", "image", "access_programs", "generate",
    }
)  # fmt: skip
_TRUNCATIONS = ("auto", "disabled")
_LEAST_OUTPUT, _LEAST_THRESHOLD = 16, 1_000
_MAX_NAMESPACE = 64
_ITEM_KINDS = frozenset(
    {
        "message", "reasoning", "function_call", "function_call_output", "compaction",
        "compaction_trigger", "tool_search_call", "tool_search_output", "additional_tools",
        "configuration_update", "item_reference", "custom_tool_call", "custom_tool_call_output",
        "program", "program_output", "web_search_call", "file_search_call", "computer_call",
        "computer_call_output", "code_interpreter_call", "image_generation_call", "mcp_call",
        "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "local_shell_call",
        "local_shell_call_output", "shell_call", "shell_call_output", "apply_patch_call",
        "apply_patch_call_output",
    }
)  # fmt: skip


def check(request: Request, items: list[Json]) -> None:
    """Refuse what the API refuses.

    Raises:
        Refusal: in the provider's wording.
    """
    body = request.body
    if not items and not body.get("previous_response_id"):
        raise missing("input")
    _items(items)
    _settings(request)
    _tools(request)
    refuse_breaches(WireApi.OPENAI_RESPONSES, body | {"input": items}, RESPONSES)


def _items(items: list[Json]) -> None:
    for number, item in enumerate(items):
        kind = kind_of(item)
        if kind not in _ITEM_KINDS:
            raise wrong_value(f"input[{number}].type", kind, "those of the API's input items")
        if kind == "compaction_trigger" and number != len(items) - 1:
            raise Refusal("A 'compaction_trigger' must be the last input item.", param="input")
        if kind == "additional_tools" and item.get("role") != "developer":
            raise wrong_value(f"input[{number}].role", item.get("role"), "'developer'")
        for index, part in enumerate(objects(item.get("content"))):
            allowed = "output_text" if item.get("role") == "assistant" else "input_text"
            if part.get("type") in {"input_text", "output_text", "text"} - {allowed}:
                raise wrong_value(
                    f"input[{number}].content[{index}].type", part["type"], f"'{allowed}'"
                )


def _settings(request: Request) -> None:
    body = request.body
    truncation = body.get("truncation")
    if truncation is not None and truncation not in _TRUNCATIONS:
        raise wrong_value("truncation", truncation, "'auto' and 'disabled'")
    if body.get("background") or body.get("prompt"):
        raise unsupported("background" if body.get("background") else "prompt")
    asked = body.get("max_output_tokens")
    if asked is not None and (not isinstance(asked, int) or asked < _LEAST_OUTPUT):
        raise Refusal(
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= "
            f"{_LEAST_OUTPUT}, but got {asked} instead.",
            param="max_output_tokens",
            code="integer_below_min_value",
        )
    for number, edit in enumerate(objects(body.get("context_management"))):
        where = f"context_management[{number}]"
        if edit.get("type") != "compaction":
            raise wrong_value(f"{where}.type", edit.get("type"), "'compaction'")
        threshold = edit.get("compact_threshold", _LEAST_THRESHOLD)
        if not isinstance(threshold, int) or threshold < _LEAST_THRESHOLD:
            raise Refusal(
                f"Invalid '{where}.compact_threshold': integer below minimum value. Expected a "
                f"value >= {_LEAST_THRESHOLD}, but got {threshold} instead.",
                param=f"{where}.compact_threshold",
                code="integer_below_min_value",
            )


def _tools(request: Request) -> None:
    kinds = [tool.get("type") for tool in request.tools]
    searches = "tool_search" in kinds
    if searches and gpt_version(request.model) < (5, 4):
        raise unsupported("tools.tool_search")
    for number, tool in enumerate(request.tools):
        name = text_of(tool.get("name"))
        if tool.get("type") == "namespace":
            if len(name) > _MAX_NAMESPACE:
                raise too_long(f"tools[{number}].name", _MAX_NAMESPACE, len(name))
            for index, inner in enumerate(objects(tool.get("tools"))):
                if not text_of(inner.get("name")):
                    raise pattern(f"tools[{number}].tools[{index}].name")
        inner_tools = [tool, *objects(tool.get("tools"))]
        if any(one.get("defer_loading") for one in inner_tools) and not searches:
            raise Refusal("Deferred tools require tools.tool_search", param="tools")
    choice = object_of(request.body.get("tool_choice"))
    declared = {tool.get("name") for tool in request.tools}
    if choice.get("type") == "function" and choice.get("name") not in declared:
        raise Refusal(
            f"Tool choice 'function' not found in 'tools' parameter: {choice.get('name')}.",
            param="tool_choice",
        )
