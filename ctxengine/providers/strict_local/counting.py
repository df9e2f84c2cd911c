"""Counting with a factor of its own, so that an estimator meets a provider that disagrees with it."""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from dataclasses import dataclass

from ctxengine.engine.tokens.attachments import file_tokens, image_size, image_tokens
from ctxengine.engine.tokens.counters import count
from ctxengine.providers.strict_local.exchange import Json, text_of

_REMEMBERED = 20_000
_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^,]*)?,(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Weights:
    """What a family of models charges; thousandths of the o200k count, and tokens of framing."""

    text: int
    tools: int
    per_message: int
    per_call: int
    per_tool: int
    tools_once: int


_CLAUDE_NEW = Weights(1_540, 2_700, 5, 21, 9, 331)
_CLAUDE_OLD = Weights(1_190, 2_250, 5, 21, 9, 313)
_OPENAI = Weights(1_000, 1_050, 3, 9, 7, 12)
_OPENAI_6 = Weights(1_080, 1_110, 3, 9, 7, 12)
_OTHER = Weights(1_130, 1_400, 4, 12, 10, 60)
_OLD_CLAUDE_NAMES = re.compile(r"claude-(?:[23]|(?:opus|sonnet|haiku)-(?:3|4(?!-[78])))")


def weights_of(model: str) -> Weights:
    """The weights for a model's name."""
    name = model.lower()
    if "claude" in name:
        return _CLAUDE_OLD if _OLD_CLAUDE_NAMES.search(name) else _CLAUDE_NEW
    if "gpt-6" in name:
        return _OPENAI_6
    return _OPENAI if re.search(r"gpt|codex|(?:^|/)o\d", name) else _OTHER


class Counter:
    """Counts for one provider; remembers texts by their digest."""

    def __init__(self, factor: float = 1.0) -> None:
        """Multiply every figure by `factor`.

        Raises:
            ValueError: a factor that is not above zero.
        """
        if not factor > 0:
            raise ValueError(f"The counting factor is {factor}; it must be above zero.")
        self._factor = factor
        self._known: OrderedDict[bytes, int] = OrderedDict()

    def text(self, text: str, model: str) -> int:
        """Tokens of a text."""
        return self._weighed(self._bare(text), weights_of(model).text)

    def message(self, model: str) -> int:
        """Tokens around a message or an item."""
        return self._scaled(weights_of(model).per_message)

    def call(self, name: str, arguments: str, model: str) -> int:
        """Tokens of a call or a result, framing included."""
        weights = weights_of(model)
        return self.text(f"{name}{arguments}", model) + self._scaled(weights.per_call)

    def tool(self, definition: str, model: str) -> int:
        """Tokens of one tool definition, framing included."""
        weights = weights_of(model)
        return self._weighed(self._bare(definition), weights.tools) + self._scaled(weights.per_tool)

    def tools_once(self, model: str) -> int:
        """Tokens that any tool costs once."""
        return self._scaled(weights_of(model).tools_once)

    def image(self, data: str | None, provider: str, model: str) -> int:
        """Tokens of an image, by the size in its head where its base64 is at hand."""
        size = image_size(data) if data else None
        width, height = size or (None, None)
        return image_tokens(provider, model, width, height)

    def file(self, data: str | None, media_type: str | None, provider: str, model: str) -> int:
        """Tokens of a document."""
        return file_tokens(provider, model, media_type, data)

    def _bare(self, text: str) -> int:
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        known = self._known.get(key)
        if known is None:
            known = count(text, "o200k_base")
            self._known[key] = known
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return known

    def _weighed(self, tokens: int, thousandths: int) -> int:
        return -(-int(tokens * thousandths * self._factor) // 1_000)

    def _scaled(self, tokens: int) -> int:
        return int(tokens * self._factor)


def inline_data(url: object) -> tuple[str | None, str | None]:
    """Media type and base64 of a `data:` address; (None, None) for any other."""
    match = _DATA_URL.fullmatch(text_of(url))
    return (match[1] or None, match[2]) if match else (None, None)


def source_data(source: Json) -> tuple[str | None, str | None]:
    """Media type and base64 of an Anthropic source; no base64 when it is an address."""
    kind = text_of(source.get("media_type")) or None
    return kind, text_of(source.get("data")) or None
