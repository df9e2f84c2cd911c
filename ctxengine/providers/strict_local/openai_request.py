"""What both OpenAI APIs share: reading a body, common refusals, cache settings, usage (providers.md 1.3, 2.3, 3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ctxengine.engine.wire.rule import loads
from ctxengine.providers.strict_local.cache_openai import Asked, CacheUsage
from ctxengine.providers.strict_local.exchange import Call, Json, dump, object_of, objects, text_of
from ctxengine.providers.strict_local.models import (
    Window,
    caches_at_breakpoints,
    gpt_version,
    is_openai,
    reasons,
    window_of,
)
from ctxengine.providers.strict_local.refusal import Refusal
from ctxengine.providers.strict_local.rules_openai import missing, too_long, wrong_value
from ctxengine.providers.strict_local.segments import Chain
from ctxengine.providers.strict_local.state import State

_MAX_KEY = 64
_SAMPLING = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
_STEP, _STEP_5_5 = 128, 2_048


@dataclass(frozen=True, slots=True)
class Request:
    """One request, not yet checked."""

    body: Json
    model: str
    window: Window

    @property
    def tools(self) -> list[Json]:
        """The tool definitions."""
        return objects(self.body.get("tools"))


def read(call: Call, windows: Mapping[str, int], fields: Collection[str]) -> Request:
    """Read a body and refuse what both APIs refuse.

    Raises:
        Refusal: no JSON object, no model, an unknown one, an unknown or unsupported parameter.
    """
    try:
        body = loads(call.body)
    except (ValueError, RecursionError) as error:
        raise Refusal("We could not parse the JSON body of your request.") from error
    if not isinstance(body, dict):
        raise Refusal("We could not parse the JSON body of your request.")
    model = body.get("model")
    if not isinstance(model, str):
        raise missing("model")
    if not is_openai(model):
        raise Refusal(
            f"The model `{model}` does not exist or you do not have access to it.",
            status=404,
            code="model_not_found",
        )
    for name in body:
        if name not in fields:
            raise Refusal(f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
    request = Request(body, model, window_of("openai", model, windows))
    _sampling(request)
    _caching(request)
    return request


def _sampling(request: Request) -> None:
    for name in _SAMPLING:
        if reasons(request.model) and request.body.get(name) is not None:
            raise unsupported(name)


def unsupported(name: str, hint: str = "") -> Refusal:
    """A parameter that the model does not take."""
    return Refusal(
        f"Unsupported parameter: '{name}' is not supported with this model.{hint}",
        param=name,
        code="unsupported_parameter",
    )


def _caching(request: Request) -> None:
    key = text_of(request.body.get("prompt_cache_key"))
    if len(key) > _MAX_KEY:
        raise too_long("prompt_cache_key", _MAX_KEY, len(key))
    options = request.body.get("prompt_cache_options")
    if options is not None and not caches_at_breakpoints(request.model):
        raise unsupported("prompt_cache_options")
    options = object_of(options)
    for name, allowed in (("mode", ("implicit", "explicit")), ("ttl", ("30m", "12h"))):
        if options.get(name, allowed[0]) not in allowed:
            supported = " and ".join(f"'{value}'" for value in allowed)
            raise wrong_value(f"prompt_cache_options.{name}", options[name], supported)
    retention = request.body.get("prompt_cache_retention")
    if retention == "in_memory" and gpt_version(request.model) >= (5, 5):
        raise wrong_value("prompt_cache_retention", retention, "'24h'")


def serve_cache(
    request: Request, chain: Chain, implicit_at: int | None, state: State
) -> CacheUsage:
    """What the request reads and writes."""
    body, now = request.body, state.clock.now()
    scope = f"{request.model}\n{text_of(body.get('prompt_cache_key'))}"
    if caches_at_breakpoints(request.model):
        options = object_of(body.get("prompt_cache_options"))
        explicit = options.get("mode") == "explicit"
        life = text_of(options.get("ttl")) or "30m"
        asked = Asked(scope, explicit, life, None if explicit else implicit_at)
        return state.breakpoints.serve(chain, asked, now)
    step = _STEP_5_5 if gpt_version(request.model) == (5, 5) else _STEP
    retention = text_of(body.get("prompt_cache_retention")) or "24h"
    return state.automatic.serve(chain, scope, step=step, retention=retention, now=now)


def seed_of(values: list[object]) -> str:
    """Settings that decide about the whole prefix, as one text."""
    return dump(values).decode()


def has_breakpoint(part: Json) -> bool:
    """Whether a content part carries an explicit breakpoint."""
    return object_of(part.get("prompt_cache_breakpoint")).get("mode") == "explicit"


def bare(part: Json) -> Json:
    """A part without its breakpoint, which is no part of the prompt."""
    return {key: value for key, value in part.items() if key != "prompt_cache_breakpoint"}
