"""A sign that is looked for first never hides a secret from its pattern."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.redaction.patterns import PATTERNS

words = st.sampled_from(
    ["api_key", "API-KEY", "apiKey", "token", "Tokens", "secret", "\u017fecret", "passwd", "PASSWORD", "credential",
     "credential\u017f", "s", '"', "'", " ", "\n", ":", "=", " = ", "abc123def456ghi", "A1" * 10, "[", "]"]
)  # fmt: skip


@given(st.lists(words, max_size=12).map("".join))
def test_what_a_pattern_finds_holds_its_sign(text: str) -> None:
    lowered = text.lower()
    for pattern in PATTERNS:
        if pattern.sign is not None and pattern.pattern.search(text):
            assert pattern.sign.search(lowered)
