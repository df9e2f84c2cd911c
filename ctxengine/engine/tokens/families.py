"""Which tokenizer a model has, and what to add where that is not known (design 7.4).

One table. A prior is what the class of content costs in this family, in hundredths of the count of
the family's nearest shipped vocabulary; exact families have none. Framing constants are tokens that
a provider adds around messages, calls and tools.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ctxengine.engine.tokens.classes import ContentClass
from ctxengine.engine.tokens.counters import Encoding


@dataclass(frozen=True, slots=True)
class Family:
    """Models that share a tokenizer and a way of framing."""

    name: str
    encoding: Encoding | None
    """Nearest shipped vocabulary; None where nothing is known and characters are weighed."""
    priors: Mapping[ContentClass, int] | None = field(default=None, compare=False)
    """Hundredths by content class; None where the count is exact."""
    per_message: int = 6
    per_call: int = 30
    """Around one tool call: its id, its name's frame, the block."""
    per_result: int = 20
    per_tool: int = 12
    schema_factor: int = 150
    """Hundredths by which a tool definition costs more than its JSON text."""
    tools_once: int = 100
    """Added once to a request that declares any tool: Anthropic's preamble is 286 to 354 tokens, by model and tool choice."""

    @property
    def exact(self) -> bool:
        """Whether text is counted by the model's own vocabulary."""
        return self.encoding is not None and self.priors is None


_COLUMNS = tuple(ContentClass)


def _priors(*hundredths: int) -> Mapping[ContentClass, int]:
    return MappingProxyType(dict(zip(_COLUMNS, hundredths, strict=True)))


# fmt: off
_TABLE = {
    #                english code json  cjk script digits base64 emoji blank mixed
    "gpt-6":      _priors(115, 115, 115, 115, 115, 115, 115, 115, 115, 115),
    "claude-old": _priors(115, 145, 130, 165, 200, 120, 135, 145, 200, 140),
    "claude-new": _priors(160, 190, 155, 175, 205, 140, 150, 150, 200, 175),
    "gemini":     _priors(110, 130, 140, 100, 115, 175, 160, 105, 185, 135),
    "llama3":     _priors(102, 102, 102, 105, 145, 102, 110, 125, 102, 110),
    "qwen":       _priors(105, 110, 130, 110, 240, 175, 160, 100, 105, 125),
    "deepseek":   _priors(105, 115, 108, 112, 160, 105, 110, 110, 120, 115),
}
# fmt: on


def _openai(name: str, encoding: Encoding, priors: Mapping[ContentClass, int] | None) -> Family:
    return Family(
        name,
        encoding,
        priors,
        per_message=4,
        per_call=16,
        per_result=12,
        per_tool=12,
        schema_factor=120,
        tools_once=20,
    )


def _claude(name: str, schema_factor: int) -> Family:
    return Family(
        name,
        Encoding.O200K,
        _TABLE[name],
        per_message=7,
        per_call=45,
        per_result=25,
        per_tool=0,
        schema_factor=schema_factor,
        tools_once=360,
    )


O200K = _openai("o200k", Encoding.O200K, None)
CL100K = _openai("cl100k", Encoding.CL100K, None)
GPT_6 = _openai("gpt-6", Encoding.O200K, _TABLE["gpt-6"])
CLAUDE_OLD = _claude("claude-old", 260)
CLAUDE_NEW = _claude("claude-new", 320)
GEMINI = Family("gemini", Encoding.O200K, _TABLE["gemini"])
LLAMA_3 = Family("llama3", Encoding.O200K, _TABLE["llama3"])
QWEN = Family("qwen", Encoding.O200K, _TABLE["qwen"])
DEEPSEEK = Family("deepseek", Encoding.O200K, _TABLE["deepseek"])
UNKNOWN = Family(
    "unknown", None, per_message=8, per_call=45, per_result=25, schema_factor=320, tools_once=500
)

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        family.name: family
        for family in (
            O200K,
            CL100K,
            GPT_6,
            CLAUDE_OLD,
            CLAUDE_NEW,
            GEMINI,
            LLAMA_3,
            QWEN,
            DEEPSEEK,
            UNKNOWN,
        )
    }
)
"""Families by name, the name being what stored counts are labelled with."""

_CLAUDE_VERSION = re.compile(r"claude\D*?(\d+)(?:[-.](\d{1,2}))?(?!\d)")
_BY_NAME = (
    (re.compile(r"gpt-oss|chatgpt-4o|gpt-4o|gpt-4\.[15]|gpt-5|codex|(?:^|[/.:])o[1-5]\b"), O200K),
    (re.compile(r"gpt-(?:[6-9]|\d\d)"), GPT_6),
    (re.compile(r"gpt-4|gpt-3\.5|gpt-35"), CL100K),
    (re.compile(r"gemini|gemma"), GEMINI),
    (re.compile(r"deepseek"), DEEPSEEK),
    (re.compile(r"qwen|qwq"), QWEN),
    (re.compile(r"llama-?3"), LLAMA_3),
)


def family_of(provider: str, model: str) -> Family:
    """The family of a model; `UNKNOWN`, which errs on the safe side, when its name says nothing.

    Names with a vendor prefix, region, date or deployment suffix are understood. The provider
    decides only where the model's name does not.
    """
    name = model.lower()
    if "claude" in name:
        return _claude_family(name)
    for pattern, family in _BY_NAME:
        if pattern.search(name):
            return family
    return CLAUDE_NEW if provider.lower() == "anthropic" else UNKNOWN


def _claude_family(name: str) -> Family:
    version = _CLAUDE_VERSION.search(name)
    if version is None:
        return CLAUDE_NEW
    return CLAUDE_OLD if (int(version[1]), int(version[2] or 0)) < (4, 7) else CLAUDE_NEW
