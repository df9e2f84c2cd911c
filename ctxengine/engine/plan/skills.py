"""Skills: the catalog of row 7 and the bodies of row 11 (frozen-prefix spec, rows 7 and 11, Open questions).

A plan pins names, descriptions and where each body lies in the log. A body enters a request only after the model loaded it,
stays for the rest of the session, and never yields: a load that does not fit fails instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.trust.envelope import escape, nonce, render_envelope
from ctxengine.engine.trust.levels import Trust, needs_envelope
from ctxengine.engine.trust.model_view import model_view


class PinnedSkill(BaseModel):
    """One skill of the catalog."""

    model_config = ConfigDict(frozen=True)

    name: str
    description: str
    trust: Trust = Trust.TRUSTED_CONFIGURATION
    sequence: int = 0
    """Event that holds the body."""
    digest: str = ""
    """sha256 (hex) of the body's text."""
    body_tokens: int = 0
    """What the body takes in row 11, envelope included."""


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    """A skill whose body stands in row 11."""

    name: str
    text: str
    trust: Trust
    sequence: int
    """Event that loaded it; bodies stand in this order."""
    tokens: int
    erased: bool = False


def catalog_text(skills: Sequence[PinnedSkill], *, loader: str, nonce_key: bytes) -> str:
    """Row 7, empty without skills.

    Args:
        skills: in any order; names are unique.
        loader: wire name of the tool that loads a body.
    """
    if not skills:
        return ""
    ordered = sorted(skills, key=lambda skill: skill.name)
    parts = [f"Skills you can load with {loader}, by name, when a task needs one:"]
    parts += [_entry(skill) for skill in ordered if not needs_envelope(skill.trust)]
    for level in Trust:
        lines = [_entry(skill) for skill in ordered if skill.trust is level]
        if lines and needs_envelope(level):
            parts.append(_catalog_envelope("\n".join(lines), level, nonce_key))
    return "\n".join(parts)


def skill_text(skill: LoadedSkill, nonce_key: bytes) -> str:
    """One body as row 11 shows it: bare for configuration the operator vouches for, in its envelope otherwise."""
    if not needs_envelope(skill.trust):
        return f"[skill {_one_line(skill.name)}]\n{escape(model_view(skill.text))}"
    digest = sha256_hex(skill.text.encode("utf-8", "surrogatepass"))
    item_id = f"skill-{skill.sequence}"
    return render_envelope(
        skill.text,
        source=f"skill:{skill.name}",
        item_id=item_id,
        trust=skill.trust,
        nonce=nonce(nonce_key, item_id, "whole", digest),
    )


def loaded_tokens(skills: Iterable[LoadedSkill]) -> int:
    """What row 11 takes."""
    return sum(skill.tokens for skill in skills)


def _entry(skill: PinnedSkill) -> str:
    said = _one_line(skill.description)
    line = f"- {_one_line(skill.name)}"
    return f"{line}: {said}" if said else line


def _catalog_envelope(body: str, trust: Trust, nonce_key: bytes) -> str:
    digest = sha256_hex(body.encode("utf-8", "surrogatepass"))
    return render_envelope(
        body,
        source="skills:catalog",
        item_id="skills",
        trust=trust,
        nonce=nonce(nonce_key, f"skills:{trust.value}", "whole", digest),
    )


def _one_line(text: str) -> str:
    return " ".join(model_view(text).split())
