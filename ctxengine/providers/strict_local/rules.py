"""The engine's validity rules, said in the providers' words (providers.md 2).

The engine's rules are stricter than the providers in a few places, where they keep what this product sends tidy. Those
are listed in `ACCEPTED`, with what a provider does instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ctxengine.engine.wire.base import WireApi
from ctxengine.engine.wire.rules import Violation, violations
from ctxengine.providers.strict_local.exchange import Json, dump, object_of, text_of
from ctxengine.providers.strict_local.models import OWN_PREFIX
from ctxengine.providers.strict_local.refusal import Refusal

ACCEPTED: Mapping[str, str] = {
    "openai.markers.count": "further breakpoints are dropped in silence, the oldest first",
    "openai-responses.markers.count": "further breakpoints are dropped in silence, the oldest first",
    "openai.text.empty": "an empty text is taken",
    "openai-responses.text.empty": "an empty text is taken",
    "openai.user.present": "a conversation needs no user",
    "openai.ids.unique": "ids may come again in a later batch",
    "openai-responses.ids.partner": "only an id that was given out with reasoning demands it",
}
"""Rules of the engine that the providers do not have."""

Wording = Callable[[Sequence[Violation], Json], Refusal]
"""Makes the refusal for all breaches of one rule in one body."""

_STEP = re.compile(r"\.([A-Za-z_]+)|\[(\d+)\]")


def refuse_breaches(
    api: WireApi, body: Json, wordings: Mapping[str, Wording], but: Collection[str] = ()
) -> None:
    """Refuse a body for the first of the engine's rules that it breaks, those in `but` left out.

    Raises:
        Refusal: in the provider's wording.
    """
    plain = body | {"model": text_of(body.get("model")).removeprefix(OWN_PREFIX)}
    found = [
        v for v in violations(api, dump(plain)) if v.rule not in ACCEPTED and v.rule not in but
    ]
    if not found:
        return
    rule = found[0].rule
    alike = [violation for violation in found if violation.rule == rule]
    raise wordings[rule](alike, body)


def at(body: Json, path: str) -> Any:
    """The value at a JSON path; None where there is none."""
    value: Any = body
    for step in _STEP.finditer(path):
        if step[1] is not None:
            value = value.get(step[1]) if isinstance(value, dict) else None
        else:
            index = int(step[2])
            value = value[index] if isinstance(value, list) and index < len(value) else None
    return value


def dotted(path: str) -> str:
    """A JSON path as Anthropic writes it: `messages.1.content.0`."""
    return re.sub(r"\[(\d+)\]", r".\1", path.removeprefix("$").removeprefix("."))


def bracketed(path: str) -> str:
    """A JSON path as OpenAI writes it: `input[1].name`."""
    return path.removeprefix("$.")


def message_of(path: str) -> str:
    """The message that a path lies in, as Anthropic writes it."""
    match = re.match(r"\$\.(messages)\[(\d+)\]", path)
    return f"messages.{match[2]}" if match else dotted(path)


def members(found: Sequence[Violation], body: Json, key: str) -> str:
    """A member of each breach's object, joined with commas."""
    return ", ".join(str(object_of(at(body, violation.path)).get(key)) for violation in found)
