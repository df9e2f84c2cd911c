"""What a library's host keeps beside its messages: checkpoints with their texts and digests, and how operations ended.

It is checked when it comes back: a window that is not the one that was saved is refused, never sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from ctxengine.engine.boundary.checkpoint import Checkpoint, window_items
from ctxengine.engine.canonical import digest_of
from ctxengine.engine.errors import EngineError
from ctxengine.engine.ids import EventSeq

SAVED_VERSION: Final = "boundary-state@3"
_BEFORE: Final = "boundary-state@2"
"""As the present one, from before notes were looked through for the parts they lack."""
_ENDED: Final = ("operation", "outcome", "code", "retryable", "retry_after_s", "prefix_sha256")


class BoundaryStateError(EngineError):
    """A saved state is not what `save` gave: nothing of it was taken."""

    code = "boundary_state_invalid"

    def __init__(self, found: str) -> None:
        super().__init__(
            f"The saved state cannot be taken back: {found} Start without it: the messages are whole, and what it held is "
            "made again from them."
        )


@dataclass(frozen=True, slots=True)
class Finished:
    """How one operation ended."""

    payload: Mapping[str, Any]
    recorded_at: datetime


class Saved(NamedTuple):
    """A state that was read."""

    checkpoints: tuple[tuple[Checkpoint, str], ...]
    """With their texts, newest first."""
    finished: tuple[Finished, ...]


def as_saved(
    checkpoints: Sequence[tuple[Checkpoint, str]], finished: Sequence[Finished]
) -> dict[str, Any]:
    """Plain data."""
    return {
        "version": SAVED_VERSION,
        "checkpoints": [
            {**asdict(point), "text": text, "window_sha256": digest_of(text)}
            for point, text in checkpoints
        ],
        "finished": [
            {"payload": dict(entry.payload), "at": entry.recorded_at.isoformat()}
            for entry in finished
        ],
    }


def read_saved(state: Mapping[str, Any]) -> Saved | None:
    """A state as `as_saved` gave it; None for one of another version, which this one cannot judge.

    Raises:
        BoundaryStateError: it is no object, a part is missing or malformed, or a text is not the one that was saved.
    """
    if not isinstance(state, Mapping):
        raise BoundaryStateError(f"it is a {type(state).__name__}, no object.")
    version = state.get("version")
    if version not in (SAVED_VERSION, _BEFORE):
        return None
    added: Mapping[str, Any] = {"gaps": ()} if version == _BEFORE else {}
    try:
        return Saved(
            tuple(_checkpoint({**kept, **added}) for kept in state["checkpoints"]),
            tuple(_finished(kept) for kept in state["finished"]),
        )
    except KeyError as error:
        raise BoundaryStateError(f"{error.args[0]!r} is missing.") from None
    except (TypeError, ValueError, AttributeError):
        raise BoundaryStateError("a part of it is malformed.") from None


def _checkpoint(kept: Mapping[str, Any]) -> tuple[Checkpoint, str]:
    fields = {name: kept[name] for name in Checkpoint.__dataclass_fields__}
    fields["gaps"] = tuple(str(part) for part in fields["gaps"])
    for name in ("ranges", "left_out"):
        fields[name] = tuple((int(first), int(last)) for first, last in fields[name])
    for name in ("sequence", "cut"):
        fields[name] = EventSeq(int(fields[name]))
    for name in ("tokens", "tokens_before", "turns", "units", "base"):
        fields[name] = int(fields[name])
    fields["operations"] = tuple((str(name), int(unit)) for name, unit in fields["operations"])
    fields["retained"] = tuple(int(sequence) for sequence in fields["retained"])
    point, text = Checkpoint(**fields), kept["text"]
    if not isinstance(text, str) or digest_of(text) != kept["window_sha256"]:
        raise BoundaryStateError(
            f"the text of checkpoint {point.sequence} is not the one that was saved."
        )
    if point.kind == "native":
        window_items(text)
    elif point.kind != "note":
        raise BoundaryStateError(f"checkpoint {point.sequence} is of no known kind.")
    return point, text


def _finished(kept: Mapping[str, Any]) -> Finished:
    payload = {name: kept["payload"][name] for name in _ENDED}
    payload["operation"] = int(payload["operation"])
    if payload["retry_after_s"] is not None:
        payload["retry_after_s"] = float(payload["retry_after_s"])
    at = datetime.fromisoformat(kept["at"])
    if at.tzinfo is None:
        raise BoundaryStateError("a time in it has no offset.")
    return Finished(payload, at)
