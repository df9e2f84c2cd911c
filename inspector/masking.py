"""What leaves the console for people without access: what somebody else may have written, without recognised secrets.

Masked before it is escaped: a secret whose characters were escaped would no longer be recognised.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ctxengine.engine.manifest import Span
from ctxengine.engine.redaction.redact import redact
from inspector.request_contexts import RequestFrame, RowLine


class Masking:
    """Masks texts and counts what it masked."""

    def __init__(self) -> None:
        """Nothing is masked yet."""
        self.masked = 0

    def text(self, words: str) -> str:
        """The words without recognised secrets."""
        found = redact(words)
        self.masked += found.masked
        return found.text

    def each(self, many: Iterable[str]) -> tuple[str, ...]:
        """The same for several."""
        return tuple(map(self.text, many))

    def frame(self, frame: RequestFrame) -> RequestFrame:
        """What surrounds a request, with its title, names, warnings and reasons masked."""
        made = frame.request
        warnings = list(self.each(made.manifest.warnings))
        return replace(
            frame,
            session=replace(frame.session, title=self.text(frame.session.title)),
            request=replace(
                made,
                provider=self.text(made.provider),
                model=self.text(made.model),
                manifest=made.manifest.model_copy(update={"warnings": warnings}),
                cache=replace(made.cache, warnings=self.each(made.cache.warnings)),
            ),
            cut=self.text(frame.cut),
            ladder=tuple((*step[:2], self.text(step[2]), step[3]) for step in frame.ladder),
        )

    def rows(self, rows: Iterable[RowLine]) -> list[RowLine]:
        """The fifteen with their reasons masked."""
        return [replace(line, words=self.each(line.words)) for line in rows]

    def left_out(self, out: Iterable[tuple[Span, str]]) -> list[tuple[Span, str]]:
        """What was left out, with its reasons masked."""
        return [(span, self.text(words)) for span, words in out]
