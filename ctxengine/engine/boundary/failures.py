"""Why a compaction did not come about: one table of codes, each with its remedy, and the two typed errors (boundary spec)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, Protocol

from ctxengine.engine.errors import EngineError

MOST_ATTEMPTS: Final = 3
"""Failures of one unchanged prefix after which nothing is tried again by itself."""
FIRST_REST_S: Final = 30.0
"""Seconds after a first retryable failure; each further one doubles them."""


class FailureKind(NamedTuple):
    """One code: what it says, what to do, and whether trying again may help."""

    code: str
    says: str
    remedy: str
    retryable: bool = False


_BY_HAND: Final = "Then compact by hand: it is not tried again by itself."
_NEXT_RUN: Final = "That holds from the next run on."
"""A changed policy makes another prefix (`Work.prefix`), which no earlier failure bars."""

FAILURES: tuple[FailureKind, ...] = (
    FailureKind(
        "missing_configuration",
        "The provider cannot be called to compact.",
        "Set its key and its address; the next request asks it then.",
    ),
    FailureKind(
        "worker_unconfigured",
        "The worker that compacts has no key, or no allowed address, for the provider.",
        f"Give it those that the web process has. {_BY_HAND}",
    ),
    FailureKind(
        "redirected",
        "The provider's address answers with a redirect, which is not followed.",
        f"List the final address. {_BY_HAND}",
    ),
    FailureKind(
        "native_unsupported",
        "The provider, as it is reached here, has no native compaction.",
        f"Use an address and a model that compact, or a model without native support. {_NEXT_RUN}",
    ),
    FailureKind(
        "count_unavailable",
        "The provider gives no exact count, and an estimate validates no native window.",
        "Make its counting endpoint reachable. Ask again, or compact by hand.",
        True,
    ),
    FailureKind(
        "native_input_oversized",
        "The history is larger than the provider compacts at once.",
        f"Set `archive_recovery`, or start a new session; compact earlier next time. {_NEXT_RUN}",
    ),
    FailureKind(
        "invalid_native_output",
        "The provider's answer is no compaction block of its contract.",
        "Ask again; if it stays so, the provider's contract has changed.",
        True,
    ),
    FailureKind(
        "native_refused",
        "The provider made no summary; the call is billed all the same.",
        "Ask again, or shorten what is to be compacted.",
        True,
    ),
    FailureKind(
        "not_reducing",
        "The result is not clearly smaller than what it replaces.",
        f"Hand the work to a child run, or choose a larger window. {_NEXT_RUN}",
    ),
    FailureKind("summary_empty", "The note is empty.", "Ask again.", True),
    FailureKind(
        "summary_output_limit",
        "The note reached its output limit and is incomplete.",
        f"Raise `summary_max_output_tokens`. {_NEXT_RUN}",
    ),
    FailureKind("summary_tool_call", "The note's writer called a tool.", "Ask again.", True),
    FailureKind("summary_abnormal_stop", "The note was not finished.", "Ask again.", True),
    FailureKind(
        "recovery_oversized",
        "What must be kept does not fit beside the current turn.",
        "End the run, or choose a larger window.",
    ),
    FailureKind(
        "window_unreadable",
        "The stored window cannot be opened.",
        "Undo the checkpoint, or restore the field key it was sealed with.",
    ),
    FailureKind(
        "over_length",
        "The provider found the input too long.",
        f"Set `archive_recovery`. {_NEXT_RUN}",
    ),
    FailureKind("rate_limited", "The provider takes no more calls just now.", "Wait.", True),
    FailureKind("transient", "The provider could not serve the call.", "Wait.", True),
    FailureKind(
        "compaction_unavailable", "The provider cannot compact at the moment.", "Wait.", True
    ),
    FailureKind("auth", "The provider refused the key.", f"Set a key that may compact. {_BY_HAND}"),
    FailureKind(
        "invalid_request",
        "The provider refused the request as invalid.",
        f"Report this as a defect. {_BY_HAND}",
    ),
    FailureKind("too_large", "The request has too many bytes.", "Leave large attachments out."),
    FailureKind("bad_answer", "The provider's answer could not be read.", "Ask again.", True),
    *(
        FailureKind(f"compaction_{name}", says, remedy)
        for name, says, remedy in (
            (
                "block_misplaced",
                "The compaction block does not stand first.",
                "Send `messages` exactly as assembled.",
            ),
            (
                "block_ambiguous",
                "The request holds more than one compaction block.",
                "Send `messages` exactly as assembled.",
            ),
            (
                "signature_invalid",
                "The provider does not accept the block's signature.",
                "Undo the checkpoint; the original history is unchanged.",
            ),
            (
                "content_mismatch",
                "The block's text is not what was signed.",
                "Send the block byte for byte, or undo the checkpoint.",
            ),
            (
                "tool_changes_mismatch",
                "The block's tool changes are not what was returned.",
                "Send the block byte for byte, or undo the checkpoint.",
            ),
            (
                "incomplete_turn",
                "The last turn to be compacted has open tool calls.",
                "Report the results of these calls first.",
            ),
            (
                "nothing_to_summarize",
                "There is nothing to compact.",
                "Append something first.",
            ),
            (
                "too_many_tool_references",
                "The history refers to more tools than a block may.",
                "Open a session with fewer deferred tools.",
            ),
        )
    ),
    FailureKind(
        "internal",
        "Something unforeseen ended the compaction.",
        f"Report this as a defect. {_BY_HAND}",
    ),
    FailureKind(
        "interrupted",
        "The compaction stopped before it had an outcome.",
        "Ask again.",
        True,
    ),
    FailureKind(
        "attempts_exhausted",
        "This unchanged history failed too often.",
        "Mend what the failures name, then compact by hand.",
    ),
    FailureKind("cancelled", "The compaction was cancelled.", "Assemble again.", True),
    FailureKind(
        "superseded",
        "The history or the contract changed while it was compacted.",
        "Assemble again.",
        True,
    ),
)
"""Every code that a compaction can fail with. None of them changes the messages or the last valid checkpoint."""

MENDED_OUTSIDE: Final = frozenset({"missing_configuration"})
"""Codes of failures that nothing was sent for, since what is missing is seen beforehand: they bar nothing, and none counts."""

FAILURE_OF: Final = {kind.code: kind for kind in FAILURES}


class CompactionError(EngineError):
    """A compaction did not come about: canonical messages and the last valid checkpoint are as before.

    It carries a code of `FAILURES` and whether trying again may help; never a provider's own text.
    """

    code = "compaction_failed"

    def __init__(
        self,
        reason: str,
        *,
        retry_after_s: float | None = None,
        detail: str = "",
        retryable: bool | None = None,
    ) -> None:
        """With the words of the table.

        Args:
            retryable: where this case differs from its code's row.
        """
        kind = FAILURE_OF.get(reason) or FAILURE_OF["bad_answer"]
        super().__init__(f"{detail or kind.says} {kind.remedy}", reason=kind.code)
        self.reason = kind.code
        self.retryable = kind.retryable if retryable is None else retryable
        self.remedy = kind.remedy
        self.retry_after_s = retry_after_s


def outcome_of(error: CompactionError) -> str:
    """How an operation ended that met this error: `failed`, unless nothing was wrong with it."""
    return error.reason if error.reason in {"cancelled", "superseded"} else "failed"


class ContextLengthError(EngineError):
    """The whole request does not fit, and nothing of it may be clipped (boundary spec, Compaction policy)."""

    code = "context_length_exceeded"

    def __init__(self, needed: int, available: int, *, source: str, remedy: str) -> None:
        super().__init__(
            f"The request takes {needed:,} tokens ({source}); {available:,} may be sent. Nothing was clipped. {remedy}",
            needed=needed,
            available=available,
            source=source,
        )
        self.needed = needed
        self.available = available


class Ended(Protocol):
    """How an operation ended: an event of a log, or what a library keeps in its place."""

    @property
    def payload(self) -> Mapping[str, Any]:
        """`outcome`, `code`, `retryable`, `prefix_sha256` and `retry_after_s`."""
        ...

    @property
    def recorded_at(self) -> datetime:
        """When it ended."""
        ...


class Held(NamedTuple):
    """What earlier failures of a prefix mean for the next try."""

    reason: str
    attempts: int
    again_at: datetime | None
    """When it may be tried again; None: not by itself."""


def held_back(finished: Sequence[Ended], prefix: str) -> Held | None:
    """What bars another try of this prefix; None where nothing does, or the bar has a time (then see `again_at`).

    Args:
        finished: `context.boundary.finished` events, newest first.
        prefix: the source and contract that would be compacted.
    """
    failed: list[Ended] = []
    for event in finished:
        if event.payload["outcome"] == "completed":
            break
        said = event.payload
        if said["outcome"] != "failed" or said["code"] in MENDED_OUTSIDE:
            continue
        if said["prefix_sha256"] == prefix:
            failed.append(event)
    if not failed:
        return None
    newest = failed[0]
    reason = str(newest.payload["code"])
    if not newest.payload["retryable"]:
        return Held(reason, len(failed), None)
    if len(failed) >= MOST_ATTEMPTS:
        return Held("attempts_exhausted", len(failed), None)
    rest = FIRST_REST_S * 2 ** (len(failed) - 1)
    stated = newest.payload.get("retry_after_s")
    if stated:
        rest = max(rest, float(stated))
    return Held(reason, len(failed), newest.recorded_at + timedelta(seconds=rest))


def told_again(held: Held) -> CompactionError:
    """The failure of a prefix that is not tried again by itself, without another try."""
    kind = FAILURE_OF.get(held.reason)
    says = kind.says if kind else "The compaction failed."
    return CompactionError(
        held.reason,
        detail=f"{says} While history and policy are unchanged it is not tried again by itself "
        f"(failures so far: {held.attempts}).",
        retryable=False,
    )
