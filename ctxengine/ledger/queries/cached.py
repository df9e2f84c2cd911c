"""Requests by what the model was given and what of it came out of the provider's cache: conditions for lists."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from django.db.models import (
    BooleanField,
    Case,
    DecimalField,
    Exists,
    Expression,
    F,
    Func,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce

from ctxengine.engine.trust.levels import Trust
from ctxengine.ledger.models import ItemRow, RequestRow, SessionRow
from ctxengine.ledger.queries.sums import told_figure, told_usage

_TOKENS = DecimalField(max_digits=40, decimal_places=6)
_PROMPT = ("fresh", "cache_read", "cache_write_5m", "cache_write_1h")


@dataclass(frozen=True, slots=True)
class CacheBound:
    """A bound on cached reads as a share of the billed prompt; requests that reported no reads meet none."""

    share: Decimal
    under: bool
    """Whether the share must be smaller; larger otherwise."""


def yielded(budget_class: str) -> Q:
    """Requests in which a class gave up tokens; `any` for any class."""
    step = {"outcome": "ran"}
    if budget_class != "any":
        step["budget_class"] = budget_class
    return Q(manifest__yields__contains=[step])


def holds_trust(level: str) -> Expression:
    """Requests of which some tokens have a trust level."""
    return Func(
        F("manifest"),
        Value(f"$.rows[*].trust.{Trust(level).value} ? (@ > 0)"),
        function="jsonb_path_exists",
        template="%(function)s(%(expressions)s::jsonpath)",
        output_field=BooleanField(),
    )


def cached_within(rows: QuerySet[RequestRow], bound: CacheBound) -> QuerySet[RequestRow]:
    """Requests whose own share meets the bound."""
    shares = rows.alias(tokens_read=_figure("cache_read"), tokens_billed=_prompt())
    return shares.filter(_met(bound, "tokens_read", "tokens_billed"))


def sessions_cached_within(rows: QuerySet[SessionRow], bound: CacheBound) -> QuerySet[SessionRow]:
    """Sessions whose share over all their requests, sum over sum, meets the bound."""
    own = RequestRow.objects.filter(
        tenant_id=OuterRef("tenant_id"), session_id=OuterRef("id"), reconstructed=False
    )
    sums = own.order_by().values("session_id")
    shares = rows.alias(
        tokens_read=Subquery(sums.annotate(read=Sum(_figure("cache_read"))).values("read")),
        tokens_billed=Subquery(sums.annotate(prompt=Sum(_prompt())).values("prompt")),
    )
    return shares.filter(_met(bound, "tokens_read", "tokens_billed"))


def sessions_that_yielded(rows: QuerySet[SessionRow], budget_class: str) -> QuerySet[SessionRow]:
    """Sessions with a request in which a class gave up tokens."""
    own = RequestRow.objects.filter(tenant_id=OuterRef("tenant_id"), session_id=OuterRef("id"))
    return rows.filter(Exists(own.filter(yielded(budget_class))))


def sessions_holding_trust(rows: QuerySet[SessionRow], level: str) -> QuerySet[SessionRow]:
    """Sessions with an item of a trust level."""
    own = ItemRow.objects.filter(tenant_id=OuterRef("tenant_id"), session_id=OuterRef("id"))
    return rows.filter(Exists(own.filter(trust=Trust(level).value)))


def _met(bound: CacheBound, read: str, prompt: str) -> Q:
    limit = F(prompt) * Value(bound.share, output_field=_TOKENS)
    met = Q(**{f"{read}__lt" if bound.under else f"{read}__gt": limit})
    return met & Q(**{f"{prompt}__gt": 0})


def _prompt() -> Expression:
    first, *others = (_figure(name) for name in _PROMPT)
    for other in others:
        first = first + other
    return first


def _figure(name: str) -> Expression:
    """A reported figure; none where no cache read was reported, nought where only this one was not."""
    # Inside the case, because a filter beside it would not keep Postgres from reading odd figures first.
    told = Coalesce(Cast(KT(f"usage__{name}"), _TOKENS), Value(Decimal(0), output_field=_TOKENS))
    return Case(
        When(told_usage() & told_figure("cache_read"), then=told),
        default=None,
        output_field=_TOKENS,
    )
