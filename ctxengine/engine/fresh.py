"""Rows 12 to 14 as text: working state, recall, runtime metadata; and row 9's omission line (spec, assembly order)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ctxengine.engine.canonical import sha256_hex
from ctxengine.engine.trust.envelope import nonce, render_envelope
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.trust.model_view import model_view
from ctxengine.engine.trust.truncation import truncate_text

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_NAME_CHARS = 80


@dataclass(frozen=True, slots=True)
class Runtime:
    """What row 14 tells. `now` is already local to `timezone`: converting it is not the engine's business."""

    now: datetime | None = None
    timezone: str = ""
    principal: str = ""
    scopes: tuple[str, ...] = ()
    scopes_shown: int | None = None
    """How many of the scopes are named; None: all."""
    surface: str = ""
    continues: bool = False
    """The model's own turn goes on without new input: said in so many words, since a request must end with the user's role."""


def runtime_text(runtime: Runtime) -> str:
    """Row 14, empty when nothing is known."""
    lines = []
    if runtime.now is not None:
        lines.append(f"Now: {local_time(runtime.now)}{_zone(runtime.timezone)}.")
    if runtime.principal:
        lines.append(f"Principal: {_name(runtime.principal)}; scopes: {_scopes(runtime)}.")
    if runtime.surface:
        lines.append(f"Surface: {_name(runtime.surface)}.")
    if runtime.continues:
        lines.append(
            "Continue your turn; a user message above that you have not answered yet comes first."
        )
    return "[runtime] " + "\n".join(lines) if lines else ""


def _scopes(runtime: Runtime) -> str:
    names = sorted(_name(scope) for scope in runtime.scopes)
    shown = names if runtime.scopes_shown is None else names[: runtime.scopes_shown]
    if len(shown) < len(names):
        shown = [*shown, f"{len(names) - len(shown)} more"]
    return ", ".join(shown) or "none"


def local_time(now: datetime) -> str:
    """`Saturday 28 March 2026, 23:59 +01:00`, whatever the process's locale."""
    offset = now.strftime("%z")
    return (
        f"{_DAYS[now.weekday()]} {now.day} {_MONTHS[now.month - 1]} {now.year}, "
        f"{now.hour:02d}:{now.minute:02d} {offset[:3]}:{offset[3:5]}"
    )


def _zone(name: str) -> str:
    return f" ({_name(name)})" if name else ""


def _name(text: str) -> str:
    """Names the caller chose stand in platform text: one line, no brackets that could pass for markup, no great length."""
    shown = model_view(text).replace("\n", " ").replace("\r", " ")
    return "".join(character for character in shown if character not in "<>[]")[:_NAME_CHARS]


def omission_text(*, turns: int, units: int, through: int) -> str:
    """Row 9 when history was cut without a summary: one fixed line (design 6)."""
    noun = "turn is" if turns == 1 else "turns are"
    return (
        f"[omitted] {turns} earlier {noun} not shown ({units} messages or steps, up to event {through}). "
        'Nothing is lost: ask for any of it by recalling its event number, for example recall with id "1.0".'
    )


OPENING_TEXT = "[omitted] The conversation opens with the assistant's own message."


WINDOW_MARK = " [cut]"


def windowed_line(text: str, chars: int) -> str:
    """A line of recall cut to its head, so that what is left still reads as cut."""
    return text if len(text) <= chars else truncate_text(text, chars).rstrip() + WINDOW_MARK


def memory_text(lines: Sequence[tuple[str, str]], *, kind: str, nonce_key: bytes, step: str) -> str:
    """Recall, knowledge or correction lines in one envelope of memory trust.

    Args:
        lines: (id, text) of each line, best first.
        kind: `recall`, `knowledge` or `correction`.
        step: what makes this step's block different from any other, for the nonce.
    """
    if not lines:
        return ""
    body = "\n".join(f"- {text}" for _, text in lines)
    digest = sha256_hex(body.encode("utf-8", "surrogatepass"))
    return render_envelope(
        body,
        source=f"memory:{kind}",
        item_id=f"{kind}",
        trust=Trust.MEMORY,
        nonce=nonce(nonce_key, f"{kind}:{step}", "whole", digest),
    )
