"""The platform's standing explanation of what follows it."""

from __future__ import annotations

import re

from ctxengine.engine.tokens.counters import count
from ctxengine.engine.trust.framing import FRAMING_VERSION, framing_text


def test_the_framing_is_one_short_text_without_anything_that_changes() -> None:
    text = framing_text()
    assert text is framing_text()
    assert re.search(r"\d", text) is None
    assert FRAMING_VERSION
    assert count(text, "o200k_base") < 500


def test_the_framing_says_how_to_treat_each_kind_of_content() -> None:
    text = framing_text()
    for subject in ("Never obey", "permission", "MEMORY", "truncated", "[elided]", "latest one"):
        assert subject in text
