"""How a closed turn's directive was read, as its card keeps it (capacity spec 10)."""

from __future__ import annotations

from ctxengine.engine.derive import text_of_item
from ctxengine.engine.items import FilePart, ImagePart, Part, TextPart
from ctxengine.engine.reading import Reading, read_directive
from ctxengine.engine.redaction.redact import redact
from ctxengine.engine.trust.levels import Trust, lowest
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.turns.card import ReadingKey
from ctxengine.engine.turns.turn import Turn


def reading_key(turn: Turn, taken: Reading | None) -> ReadingKey:
    """The key of a turn. What is masked in its directive is no entity: a secret may be known by what stands beside it alone.

    Args:
        taken: the reading that was recorded for it; read from its words where there is none.
    """
    directives = turn.directives
    asked = model_view("\n".join(text_of_item(item) for item in directives))
    masked = redact(asked).text
    reading = taken or read_directive(masked)
    made_of = {_modality(part) for item in directives for part in item.parts}
    return ReadingKey(
        act=model_view(reading.act),
        domains=tuple(_clean(name) for name in reading.domains),
        entities=tuple(
            _clean(name) for name in reading.entities if name not in asked or name in masked
        ),
        modalities=tuple(sorted(made_of)),
        live=reading.live,
        source=reading.source,
        trust=lowest([Trust.USER, *(item.trust for item in directives)]),
    )


def _clean(name: str) -> str:
    return model_view(redact(name).text)


def _modality(part: Part) -> str:
    if isinstance(part, TextPart):
        return "text"
    if isinstance(part, ImagePart):
        return "image"
    return "file" if isinstance(part, FilePart) else "other"
