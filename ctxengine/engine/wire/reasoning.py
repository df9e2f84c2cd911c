"""Which reasoning a provider takes back: signed or encrypted, as it was given, or not at all (providers.md 2.2 and 2.3)."""

from __future__ import annotations

from dataclasses import replace

from ctxengine.engine.items import Opaque
from ctxengine.engine.lexeme import LexemeError, Node, NodeKind, parse
from ctxengine.engine.wire.base import WireApi
from ctxengine.engine.wire.foreign import text_in, without_marks

_SEALS: dict[tuple[str, str], str] = {
    (WireApi.ANTHROPIC, "thinking"): "signature",
    (WireApi.ANTHROPIC, "redacted_thinking"): "data",
    (WireApi.OPENAI_RESPONSES, "reasoning"): "encrypted_content",
}
"""By API and kind of block, the member without which the provider cannot tell it for its own."""


def handed_back(block: Opaque) -> Opaque | None:
    """This reasoning of an earlier answer as a request may hold it, less any cache markers; None where it would be refused.

    A provider refuses what has lost its seal. Where others than OpenAI speak the Responses API, a signature or the reasoning in
    plain text is what they go on from.
    """
    seal = _SEALS.get((block.api, block.kind))
    if seal is None:
        return block
    try:
        node = parse(block.raw)
    except LexemeError:
        return None
    taken = bool(text_in(node, seal))
    if block.api == WireApi.OPENAI_RESPONSES:
        # OpenAI wants the summary named, be it empty.
        taken = (taken and _is_list(node.get("summary"))) or _is_open(node)
    return replace(block, raw=without_marks(block.raw)) if taken else None


def _is_open(item: Node) -> bool:
    """Whether a reasoning item holds what a provider can read or check without having encrypted it."""
    content = item.get("content")
    return bool(text_in(item, "signature")) or (_is_list(content) and any(content or ()))


def _is_list(node: Node | None) -> bool:
    return node is not None and node.kind is NodeKind.ARRAY
