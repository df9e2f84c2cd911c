"""The peer policies: one table, one class each. A policy lives as long as one replay and remembers its own cuts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Protocol

from ctxengine.engine.history.peers.conversation import PeerMessage, Shown

PLACEHOLDER_TOKENS = 16
"""What stands for a cleared result: a short notice."""
STUB_TOKENS = 1_200
"""A fixed-size summary."""


class PeerPolicy(Protocol):
    """Chooses what one request shows."""

    name: ClassVar[str]
    words: ClassVar[str]
    """What it does, for people."""

    def show(self, history: Sequence[PeerMessage], room: int) -> Shown:
        """The messages of one request.

        Args:
            history: everything so far, oldest first; it only ever grows at its end.
            room: tokens behind the prefix.
        """
        ...


class AppendAll:
    """Everything, always."""

    name: ClassVar[str] = "append_all"
    words: ClassVar[str] = "sends the whole history at each step and has no limit"

    def show(self, history: Sequence[PeerMessage], room: int) -> Shown:
        """The whole history."""
        return Shown(history)


class SlidingWindow:
    """The newest messages that fit, decided anew at each step.

    As LangChain documents `trim_messages` with strategy `last`: count from the end, keep what fits, then begin at a user's
    message. Where no user's message fits it would leave nothing to send; here it then begins at an answer, so that a long turn
    is shown as far as it fits.
    """

    name: ClassVar[str] = "sliding_window"
    words: ClassVar[str] = (
        "keeps the newest messages that fit, counted anew at each step, from a user's message on"
    )

    def show(self, history: Sequence[PeerMessage], room: int) -> Shown:
        """The longest tail within the room that begins well."""
        used, at_user, at_step = 0, None, len(history) - 1
        for place in range(len(history) - 1, -1, -1):
            used += history[place].tokens
            if used > room:
                break
            if history[place].role == "user":
                at_user = place
            elif history[place].starts_step:
                at_step = place
        return Shown(history[at_step if at_user is None else at_user :])


class ClearToolResults:
    """Old tool results give way to a placeholder once the request is over its trigger.

    As Anthropic documents its context editing for tool uses: over the trigger all results but the latest few are cleared, and
    stay cleared; calls and prose stay.
    """

    name: ClassVar[str] = "clear_tool_results"
    words: ClassVar[str] = (
        "clears all tool results but the latest three whenever the request is over the budget"
    )
    keep = 3

    def __init__(self) -> None:
        """Nothing is cleared yet."""
        self._cleared: frozenset[int] = frozenset()

    def show(self, history: Sequence[PeerMessage], room: int) -> Shown:
        """Everything, older results cleared where that is needed."""
        shown = Shown(history, self._cleared)
        if shown.tokens(PLACEHOLDER_TOKENS, 0) > room:
            results = [m.place for m in history if m.role == "result"]
            self._cleared |= frozenset(results[: -self.keep])
            shown = Shown(history, self._cleared)
        return shown


class SummariseWhenFull:
    """When the history is nearly full, all but its end becomes one summary of a fixed size.

    The end is the current turn; where that alone is over the trigger, its newest steps. The user's newest message always stays.
    What the summary says is not known, so nothing is found in it.
    """

    name: ClassVar[str] = "summarise_when_full"
    words: ClassVar[str] = (
        f"at 70 % of the room all but the current turn becomes one summary of {STUB_TOKENS:,} tokens"
    )
    trigger = 0.7
    kept_steps = 2

    def __init__(self) -> None:
        """No summary yet."""
        self._start = 0
        self._stubs = 0
        self._directive: PeerMessage | None = None

    def show(self, history: Sequence[PeerMessage], room: int) -> Shown:
        """The summary, where there is one, and what stands behind it."""
        shown = self._shown(history)
        tokens = shown.tokens(PLACEHOLDER_TOKENS, STUB_TOKENS)
        if tokens <= self.trigger * room:
            return shown
        start = self._next_start(history, room)
        if start <= self._start:
            return shown
        self._start, self._stubs = start, self._stubs + 1
        newest = max((n for n, m in enumerate(history) if m.role == "user"), default=None)
        # A turn that was cut into keeps the message it answers in front of its newest steps.
        self._directive = history[newest] if newest is not None and newest < start else None
        return self._shown(history)._replace(made_from=tokens)

    def _shown(self, history: Sequence[PeerMessage]) -> Shown:
        kept = history[self._start :]
        if self._directive is not None:
            kept = [self._directive, *kept]
        return Shown(kept, stub=self._stubs)

    def _next_start(self, history: Sequence[PeerMessage], room: int) -> int:
        users = [n for n, m in enumerate(history) if m.role == "user"]
        turn = users[-1] if users else 0
        if sum(m.tokens for m in history[turn:]) + STUB_TOKENS <= self.trigger * room:
            return turn
        steps = [n for n, m in enumerate(history) if m.starts_step and n >= turn]
        return steps[-self.kept_steps] if len(steps) >= self.kept_steps else turn


PEERS: Mapping[str, Callable[[], PeerPolicy]] = {
    policy.name: policy
    for policy in (AppendAll, SlidingWindow, ClearToolResults, SummariseWhenFull)
}
"""Policies by name; each replay makes its own."""
