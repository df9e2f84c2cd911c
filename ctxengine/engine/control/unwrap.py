"""`tool.call` unwrapped: which deferred tool a call means, with which arguments (frozen-prefix spec, The budget allocator)."""

from __future__ import annotations

from typing import NamedTuple

from ctxengine.engine.lexeme import Node, NodeKind, is_json_object, parse
from ctxengine.engine.plan.plan import Plan
from ctxengine.engine.trust.model_view import model_view


class Inner(NamedTuple):
    """What a call of `tool.call` asks for."""

    name: str
    """As written; empty when it names nothing."""
    arguments: str
    """Text of the inner arguments, exactly as the model wrote them."""


def unwrap(arguments: str) -> Inner:
    """Read the two members of a call of `tool.call`.

    Args:
        arguments: text of a JSON object.
    """
    whole = parse(arguments)
    name = whole.get("name")
    return Inner((name.text() if name is not None else None) or "", _inner(whole.get("arguments")))


def ledger_name(plan: Plan, name: str) -> str:
    """The tool a name means: its own name as the index shows it, or the form a provider would spell it in."""
    shown = model_view(name)
    return shown if plan.tool(shown) is not None else plan.ledger_name(shown)


def _inner(node: Node | None) -> str:
    if node is None or node.kind is NodeKind.NULL:
        return "{}"
    text = node.text()
    if text is not None and is_json_object(text):
        # Some models write the object as a string.
        return text
    return node.raw
