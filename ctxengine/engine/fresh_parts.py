"""Rows 11 to 14 part by part, and what a step adds of them where earlier blocks stay (spec, assembly order; design 7.12).

Nonces of some parts change with the step. So parts are compared as they would stand in one step that is always the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.fresh import memory_text, runtime_text
from ctxengine.engine.plan.skills import skill_text
from ctxengine.engine.request import RunInput, SentBlock
from ctxengine.engine.working_state.render import block_text

_ONE_STEP = "="
"""Stands in for the step where parts are compared; no content head is written so."""

_NAMES = {
    "state": "working state",
    "knowledge": "knowledge",
    "recall": "recalled lines",
    "corrections": "corrections",
    "runtime": "runtime facts",
}


class FreshPart(NamedTuple):
    """One part of the fresh rows."""

    key: str
    row: int
    text: str
    digest: str
    """The same for the same content, whatever the step."""


def fresh_text(run: RunInput) -> str:
    """All of rows 11 to 14 as one block."""
    return "\n".join(text for _, _, text in _texts(run, run.step))


def fresh_parts(run: RunInput) -> tuple[FreshPart, ...]:
    """The parts that hold something, in the order in which they stand."""
    now = _texts(run, run.step)
    compared = {key: text for key, _, text in _texts(run, _ONE_STEP)}
    return tuple(FreshPart(key, row, text, _digest(compared[key])) for key, row, text in now)


def known_parts(sent: Sequence[SentBlock]) -> dict[str, str]:
    """Digest of each part as the run's blocks have it so far."""
    known: dict[str, str] = {}
    for block in sent:
        known |= block.rows
    return {key: digest for key, digest in known.items() if digest}


def changed_parts(
    parts: Sequence[FreshPart], sent: Sequence[SentBlock]
) -> tuple[tuple[FreshPart, ...], tuple[str, ...]]:
    """Parts that are new or other than before, and keys of those that hold nothing any more."""
    known = known_parts(sent)
    here = {part.key for part in parts}
    changed = tuple(part for part in parts if known.get(part.key) != part.digest)
    return changed, tuple(key for key in known if key not in here)


def added_text(changed: Sequence[FreshPart], gone: Sequence[str]) -> str:
    """What a step adds; empty when nothing changed."""
    lines = [part.text for part in changed]
    if gone:
        names = ", ".join(_NAMES.get(key, "a loaded skill") for key in gone)
        lines.append(f"[runtime] No longer valid, with nothing in its place: {names} given above.")
    return "\n".join(lines)


def rows_of(changed: Sequence[FreshPart], gone: Sequence[str]) -> dict[str, str]:
    """The digests that a block's event keeps."""
    return {part.key: part.digest for part in changed} | dict.fromkeys(gone, "")


def _texts(run: RunInput, step: str) -> list[tuple[str, int, str]]:
    key, memory = run.nonce_key, run.memory
    entries: list[tuple[str, int, str]] = [
        (f"skill:{skill.sequence}", 11, skill_text(skill, key)) for skill in run.skills
    ]
    entries.append(("state", 12, block_text(run.state, key, step)))
    for kind, name, lines in (
        ("knowledge", "knowledge", memory.knowledge),
        ("recall", "recall", memory.recall),
        ("corrections", "correction", memory.corrections),
    ):
        entries.append((kind, 13, memory_text(lines, kind=name, nonce_key=key, step=step)))
    entries.append(("runtime", 14, runtime_text(run.runtime)))
    return [entry for entry in entries if entry[2]]


def _digest(text: str) -> str:
    return sha256_hex(text.encode("utf-8", "surrogatepass"))
