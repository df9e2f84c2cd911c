r"""What a model may be shown of a received text (design 4: the model's view).

The ledger keeps what arrived. A wire carries UTF-8 and providers refuse some characters, so the
view replaces those visibly and always in the same way:

- C0 controls other than tab, line feed and carriage return become their control picture (NUL is
  shown as U+2400), DEL becomes U+2421;
- C1 controls become `\u{85}` with their code, since Unicode has no pictures for them;
- a lone surrogate becomes U+FFFD.

Everything else is left alone. That includes bidirectional controls, zero-width characters and tag
characters: they are part of what was received, a model reads them as they are, and hiding them
would hide an attack from the one who has to judge it. Pages for people show them marked.
"""

from __future__ import annotations

import re

_NOT_CARRIED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_PAIRED = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_VISIBLE_FORM = {
    **{chr(code): chr(0x2400 + code) for code in range(0x20)},
    "\x7f": "\u2421",
    **{chr(code): f"\\u{{{code:x}}}" for code in range(0x80, 0xA0)},
}


def model_view(text: str) -> str:
    """The text with everything a wire cannot carry replaced visibly; it encodes to UTF-8 strictly.

    Two surrogates that form a pair are one character cut by a careless decoder and are joined. The
    result is the same object when nothing had to change, and is its own view.
    """
    if _NOT_CARRIED.search(text) is None:
        return text
    joined = _PAIRED.sub(_join, text)
    return _NOT_CARRIED.sub(lambda found: _VISIBLE_FORM.get(found[0], "\ufffd"), joined)


def _join(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")
