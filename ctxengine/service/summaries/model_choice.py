"""Which model writes a session's summaries (design 7.14): a named one, or its provider's cheapest that admits the input.

Prices come from `genai-prices`; which of its models answer a plain text prompt comes from the dated table here, since the
list also holds models that embed, listen or draw.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from django.conf import settings
from genai_prices import Usage, calc_price
from genai_prices.data_snapshot import get_snapshot

from ctxengine.engine.plan.plan import Plan
from ctxengine.providers.adapters.addresses import PROVIDERS, keys_of
from ctxengine.providers.models import model_facts
from ctxengine.service.prices import PRICED_AS
from ctxengine.service.specs import ServiceError

TABLE_DATE = "2026-11-29"

_WRITES_TEXT = {
    "anthropic": re.compile(r"claude-(haiku|sonnet|opus)-[4-9](-\d)?"),
    "openai": re.compile(r"gpt-(4\.1|4o|5|5\.\d|6)(-(mini|nano|luna))?"),
    "google": re.compile(r"gemini-[23](\.\d)?-(flash|flash-lite|pro)"),
}
"""Models of a provider's own that any account can call with a text prompt, by the price list's names."""

CHEAPEST = "cheapest"
SESSION = "session"

INPUT_MARGIN = 0.08
"""Share of a window left free, since another tokenizer counted (tokens_and_models.md 1)."""


class Writer(NamedTuple):
    """The model that writes, and what it takes (tokens)."""

    provider: str
    model: str
    window: int
    max_output: int
    why: str
    """How it was chosen: `named`, `session` or `cheapest`."""

    @property
    def label(self) -> str:
        """`provider/model`."""
        return f"{self.provider}/{self.model}"

    def room(self, output_tokens: int) -> int:
        """Tokens of one prompt, with so many left for the answer."""
        return max(1, int((self.window - output_tokens) * (1 - INPUT_MARGIN)))


def writer_of(plan: Plan, *, input_tokens: int, output_tokens: int) -> Writer:
    """The model that a plan's policy wants for summaries of such a size.

    Where no window admits the whole input, the input is split; then the price decides among the largest windows.
    """
    wanted = plan.policy.summary_model
    if wanted == SESSION:
        return session_writer(plan)
    if wanted != CHEAPEST:
        provider, model = named(wanted, plan.provider)
        facts = model_facts(provider, model)
        return Writer(provider, model, facts.window, facts.max_output, "named")
    own = session_writer(plan)
    candidates = [own, *text_models(plan.provider)]
    fitting = [w for w in candidates if w.room(output_tokens) >= input_tokens]
    if not fitting:
        largest = max(w.room(output_tokens) for w in candidates)
        fitting = [w for w in candidates if w.room(output_tokens) == largest]
    priced = [
        (price, w)
        for w in fitting
        if (price := _price(w.provider, w.model, input_tokens, output_tokens)) is not None
    ]
    if not priced:
        return own if own in fitting else fitting[0]
    return min(priced, key=lambda entry: (entry[0], entry[1].model))[1]


def price_of_writing(writer: Writer, input_tokens: int, output_tokens: int) -> Decimal | None:
    """What a summary of such a size costs (US dollars); None where no price is known."""
    return _price(writer.provider, writer.model, input_tokens, output_tokens)


def named(wanted: str, provider: str) -> tuple[str, str]:
    """(provider, model) of a policy's wish; without a provider it is the session's own."""
    first, slash, rest = wanted.partition("/")
    # A model's own name may hold a slash, as on OpenRouter.
    return (first, rest) if slash and rest and first in PROVIDERS else (provider, wanted)


def may_write(provider: str, *, session_provider: str) -> bool:
    """Whether a session's summaries may be sent to a provider: its own under either API, or one that the operator lists.

    Whoever opens a session names the model; without this rule that would spend any key that the operator has set.
    """
    own = keys_of(provider) == keys_of(session_provider)
    return own or provider in settings.CTX_SUMMARY_PROVIDERS


def check_summary_model(wanted: str | None, provider: str) -> None:
    """Refuse a policy's wish for a model of a provider that may not be asked.

    Args:
        wanted: the wish; None for the default.
        provider: the session's own provider.

    Raises:
        ServiceError: 422 `summary_model_not_allowed`.
    """
    if wanted is None or wanted in {SESSION, CHEAPEST}:
        return
    asked, _ = named(wanted, provider)
    if may_write(asked, session_provider=provider):
        return
    allowed = ", ".join(dict.fromkeys((provider, *settings.CTX_SUMMARY_PROVIDERS)))
    raise ServiceError(
        "summary_model_not_allowed",
        422,
        f"policy.summary_model names a model of {asked}; summaries of this session may be written by models of {allowed}. "
        "Name one of these, or have the operator list the provider in CTX_SUMMARY_PROVIDERS.",
    )


def session_writer(plan: Plan) -> Writer:
    """The session's own model as the one that is called."""
    return Writer(plan.provider, plan.model, plan.window, plan.max_output, "session")


@lru_cache(maxsize=16)
def text_models(provider: str) -> tuple[Writer, ...]:
    """The models of a provider's own that write text, of which windows and prices are known."""
    priced_as = PRICED_AS.get(provider, provider)
    pattern = _WRITES_TEXT.get(priced_as)
    if pattern is None:
        return ()
    found = []
    for listed in get_snapshot().providers:
        if listed.id != priced_as:
            continue
        for model in listed.models:
            facts = model_facts(provider, model.id)
            if pattern.fullmatch(model.id) and not model.deprecated and facts.source != "assumed":
                found.append(Writer(provider, model.id, facts.window, facts.max_output, CHEAPEST))
    return tuple(sorted(found))


@lru_cache(maxsize=512)
def _price(provider: str, model: str, input_tokens: int, output_tokens: int) -> Decimal | None:
    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    try:
        priced = calc_price(usage, model_ref=model, provider_id=PRICED_AS.get(provider, provider))
    except (LookupError, ValueError):
        return None
    return priced.total_price
