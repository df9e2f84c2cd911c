"""Row 4: the persona's entries as text (frozen-prefix spec, The persona row)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxengine.engine.trust.model_view import model_view


def persona_text(entries: Sequence[str]) -> str:
    """The row's text; a persona that says nothing renders no bytes at all."""
    kept = [model_view(entry).strip() for entry in entries]
    lines = [f"- {entry}" for entry in kept if entry]
    return "Persona:\n" + "\n".join(lines) if lines else ""
