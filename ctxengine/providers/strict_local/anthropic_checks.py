"""What the Messages API refuses beyond the engine's rules: fields, betas, model limits, media (providers.md 0, 1.2, 2, 6).

One table of checks; the first that fails gives the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ctxengine.engine.tokens.attachments import image_size
from ctxengine.engine.wire.base import WireApi
from ctxengine.providers.strict_local.anthropic_request import (
    BINDING_CONTROLS,
    COMPACT_AT_THRESHOLD,
    COMPACT_ON_DEMAND,
    CONTEXT_MANAGEMENT,
    CURRENT_VERSION,
    Request,
    blocks_of,
)
from ctxengine.providers.strict_local.exchange import Json, object_of, objects, text_of
from ctxengine.providers.strict_local.refusal import Refusal
from ctxengine.providers.strict_local.rules import refuse_breaches
from ctxengine.providers.strict_local.rules_anthropic import WORDINGS

_FIELDS = frozenset(
    {
        "model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream", "metadata",
        "stop_sequences", "thinking", "output_config", "cache_control", "container", "diagnostics",
        "inference_geo", "service_tier", "speed", "temperature", "top_p", "top_k",
    }
)  # fmt: skip
_BETA_FIELDS = {
    "compaction": (COMPACT_ON_DEMAND,),
    "context_management": (CONTEXT_MANAGEMENT, COMPACT_AT_THRESHOLD),
}
_SAMPLING = ("temperature", "top_p", "top_k")
_MAX_MESSAGES = 100_000
_MAX_DEFERRED = 10_000
_MAX_STRICT_TOOLS = 20
_MAX_IMAGE_BYTES = 10 * 1024 * 1024
_MAX_SIDE, _MAX_SIDE_MANY, _MANY = 8_000, 2_000, 20
_LIVES = {"5m", "1h"}


def check(request: Request, *, counting: bool = False) -> None:
    """Refuse what the API refuses. `counting` is for `count_tokens`, which needs no `max_tokens`.

    Raises:
        Refusal: in the provider's wording.
    """
    if not counting and "max_tokens" not in request.body:
        raise Refusal("max_tokens: Field required")
    for one in _CHECKS:
        one(request)
    first = next((b for message in request.messages for b in blocks_of(message)), {})
    but = {"anthropic.first.user"} if first.get("type") == "compaction" else set()
    if request.compacts or counting:
        but |= {"anthropic.last.user"}
    refuse_breaches(WireApi.ANTHROPIC, request.body, WORDINGS, but)
    if not counting:
        _output_limits(request)


def _fields(request: Request) -> None:
    if not isinstance(request.body.get("messages"), list):
        raise Refusal("messages: Field required")
    for name in request.body:
        unlocking = _BETA_FIELDS.get(name, ())
        if name not in _FIELDS and not request.betas.intersection(unlocking):
            raise Refusal(f"{name}: Extra inputs are not permitted")


def _messages(request: Request) -> None:
    messages = request.body["messages"]
    if not messages:
        raise Refusal("messages: at least one message is required")
    if len(messages) > _MAX_MESSAGES:
        raise Refusal(f"messages: at most {_MAX_MESSAGES} messages may be provided")
    for number, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role == "system":
            _system_message(request, number)
        elif role not in {"user", "assistant"}:
            raise Refusal(
                f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".'
            )


def _system_message(request: Request, number: int) -> None:
    where = f"messages.{number}"
    if not request.facts.takes_system_messages:
        raise Refusal(f"{where}: role 'system' is not supported on this model")
    messages = request.messages
    before = messages[number - 1] if number else {}
    after = messages[number + 1] if number + 1 < len(messages) else {"role": "assistant"}
    if before.get("role") != "user" and not _ends_in_server_result(before):
        raise Refusal(f"{where}: a system message must directly follow a user turn")
    if after.get("role") != "assistant":
        raise Refusal(f"{where}: a system message must be last or be followed by an assistant turn")
    if any(block.get("type") != "text" for block in blocks_of(messages[number])):
        raise Refusal(f"{where}: system messages may contain only text")


def _ends_in_server_result(message: Json) -> bool:
    blocks = blocks_of(message)
    kind = text_of(blocks[-1].get("type")) if blocks else ""
    return kind.endswith("_tool_result")


def _sampling(request: Request) -> None:
    for name in _SAMPLING:
        if name not in request.body:
            continue
        if request.version == CURRENT_VERSION:
            raise Refusal(f"{name}: Extra inputs are not permitted")
        if not request.facts.takes_sampling:
            raise Refusal(f"`{name}` is deprecated for this model.")


def _version_content(request: Request) -> None:
    if request.version != CURRENT_VERSION:
        return
    for path, block, role in _blocks(request):
        if role == "assistant" and block.get("type") == "document":
            raise Refusal(f"{path}: `document` blocks are not permitted in assistant messages")
        if role == "user" and block.get("type") == "text" and block.get("citations"):
            raise Refusal(f"{path}.text.citations: Extra inputs are not permitted")


def _thinking(request: Request) -> None:
    kind = request.thinking_type
    if kind is None:
        return
    allowed = request.facts.thinking_types()
    if kind not in allowed:
        names = " or ".join(f"`{name}`" for name in sorted(allowed))
        raise Refusal(f'"thinking.type.{kind}" is not supported for this model. Use {names}.')
    thinking = request.body["thinking"]
    budget = thinking.get("budget_tokens")
    if kind == "enabled":
        if not isinstance(budget, int) or budget < 1_024:
            raise Refusal(
                "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
            )
        if budget >= int(request.body.get("max_tokens", budget + 1)):
            raise Refusal("`max_tokens` must be greater than `thinking.budget_tokens`.")
    effort = text_of(object_of(request.body.get("output_config")).get("effort"))
    if kind == "disabled" and request.facts.line == "opus" and effort in {"xhigh", "max"}:
        raise Refusal(f"thinking: `disabled` is not supported at effort `{effort}`")
    if "block_binding" in thinking and BINDING_CONTROLS not in request.betas:
        raise Refusal(f"thinking.{kind}.block_binding: Extra inputs are not permitted")


def _tool_choice(request: Request) -> None:
    choice = object_of(request.body.get("tool_choice"))
    kind = choice.get("type")
    if kind is None:
        return
    if not request.tools:
        raise Refusal("tool_choice: tool_choice may only be specified while providing tools.")
    if kind in {"any", "tool"}:
        if not request.facts.takes_forced_choice:
            raise Refusal(f"tool_choice: `{kind}` is not supported for this model.")
        if request.thinking_type == "enabled":
            raise Refusal("Thinking may not be enabled when tool_choice forces tool use.")
    if kind == "tool" and choice.get("name") not in {tool.get("name") for tool in request.tools}:
        raise Refusal(f"tool_choice: Tool '{choice.get('name')}' not found in provided tools")


def _tools(request: Request) -> None:
    deferred = [tool for tool in request.tools if tool.get("defer_loading")]
    if len(deferred) > _MAX_DEFERRED:
        raise Refusal(f"tools: at most {_MAX_DEFERRED} tools may set defer_loading")
    if deferred and len(deferred) == len(request.tools):
        raise Refusal("At least one tool must have defer_loading=false")
    strict = [tool for tool in request.tools if tool.get("strict")]
    if len(strict) > _MAX_STRICT_TOOLS:
        raise Refusal(
            f"tools: too many strict tools ({len(strict)}); the maximum is {_MAX_STRICT_TOOLS}"
        )
    names = {tool.get("name") for tool in request.tools}
    for path, block, _ in _blocks(request):
        for reference in _references(block):
            if reference not in names:
                raise Refusal(f"{path}: Tool reference '{reference}' not found in available tools")


def _references(block: Json) -> Iterator[str]:
    content = block.get("content")
    inner = object_of(content).get("tool_references") if isinstance(content, dict) else content
    for entry in objects(inner):
        if entry.get("type") == "tool_reference":
            yield text_of(entry.get("tool_name"))


def _cache(request: Request) -> None:
    marked = [*_marked(request)]
    for path, control in marked:
        ttl = control.get("ttl", "5m")
        if control.get("type") != "ephemeral":
            raise Refusal(f"{path}.cache_control.type: Input should be 'ephemeral'")
        if ttl not in _LIVES:
            raise Refusal(f"{path}.cache_control.ttl: Input should be '5m' or '1h'")
    automatic = request.body.get("cache_control")
    if isinstance(automatic, dict):
        if len(marked) >= 4:
            raise Refusal(
                "A maximum of 4 blocks with cache_control may be provided. Found "
                f"{len(marked) + 1}."
            )
        blocks = blocks_of(request.messages[-1]) if request.messages else []
        last = object_of(blocks[-1].get("cache_control")) if blocks else {}
        if last and last.get("ttl", "5m") != automatic.get("ttl", "5m"):
            raise Refusal(
                "cache_control: the last block already has cache_control with a different ttl"
            )


def _marked(request: Request) -> Iterator[tuple[str, Json]]:
    for key in ("tools", "system"):
        for number, entry in enumerate(objects(request.body.get(key))):
            if isinstance(entry.get("cache_control"), dict):
                yield f"{key}.{number}", entry["cache_control"]
    for path, block, _ in _blocks(request):
        if isinstance(block.get("cache_control"), dict):
            if block.get("type") == "text" and not block.get("text"):
                raise Refusal(f"{path}.text: cache_control cannot be set for empty text blocks")
            yield path, block["cache_control"]


def _images(request: Request) -> None:
    images = [(path, block) for path, block, _ in _blocks(request) if block.get("type") == "image"]
    limit = request.facts.max_images
    if len(images) > limit:
        raise Refusal(f"messages: too many images: {len(images)} > {limit} maximum")
    side_limit = _MAX_SIDE if len(images) <= _MANY else _MAX_SIDE_MANY
    large: list[str] = []
    for path, block in images:
        data = text_of(object_of(block.get("source")).get("data"))
        if len(data) * 3 // 4 > _MAX_IMAGE_BYTES:
            raise Refusal(
                f"{path}.image.source.base64: image exceeds 10 MB maximum: "
                f"{len(data) * 3 // 4} bytes > {_MAX_IMAGE_BYTES} bytes"
            )
        size = image_size(data) if data else None
        if size is not None and max(size) > side_limit:
            large.append(path)
    if large:
        raise Refusal(
            f"{large[0]}.image.source.base64.data: At least one of the image dimensions exceed max "
            f"allowed size: {side_limit} pixels",
            code="image_dimensions_too_large",
            details={"max_side_length_pixels": side_limit, "paths": large},
        )


def _output_limits(request: Request) -> None:
    asked = request.body["max_tokens"]
    if not isinstance(asked, int) or isinstance(asked, bool):
        raise Refusal("max_tokens: Input should be a valid integer")
    if asked < 0:
        raise Refusal("max_tokens: Input should be greater than or equal to 0")
    if asked > request.window.output:
        raise Refusal(
            f"max_tokens: {asked} > {request.window.output}, which is the maximum allowed number "
            f"of output tokens for {request.model}"
        )
    if asked == 0:
        choice = object_of(request.body.get("tool_choice")).get("type")
        forced = choice in {"any", "tool"}
        formatted = "format" in object_of(request.body.get("output_config"))
        if request.body.get("stream") or request.thinking_type == "enabled" or forced or formatted:
            raise Refusal(
                "max_tokens: 0 cannot be combined with streaming, thinking, a forced tool_choice "
                "or an output format"
            )


def _blocks(request: Request) -> Iterator[tuple[str, Json, str]]:
    """Every content block, those inside tool results included: its place, itself, its role."""
    for number, message in enumerate(request.messages):
        role = text_of(message.get("role"))
        for index, block in enumerate(blocks_of(message)):
            path = f"messages.{number}.content.{index}"
            yield path, block, role
            for inner, nested in enumerate(objects(block.get("content"))):
                yield f"{path}.content.{inner}", nested, role


_CHECKS: tuple[Callable[[Request], None], ...] = (
    _fields,
    _messages,
    _sampling,
    _version_content,
    _thinking,
    _tool_choice,
    _tools,
    _cache,
    _images,
)
"""In the order in which they are made."""
