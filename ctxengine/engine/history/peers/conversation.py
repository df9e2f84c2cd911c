"""A conversation as a peer sees it: messages with their tokens, no envelopes, no platform text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

Role = Literal["user", "assistant", "result"]


class PeerMessage(NamedTuple):
    """One message."""

    place: int
    """Index of the message in the transcript."""
    role: Role
    tokens: int
    digest: str
    starts_step: bool
    """Whether a history may begin here: a user's message, or an answer whose results all stand behind it."""


class Shown(NamedTuple):
    """What a policy puts into one request behind the prefix."""

    messages: Sequence[PeerMessage]
    cleared: frozenset[int] = frozenset()
    """Places of results that stand as a placeholder."""
    stub: int = 0
    """Number of the summary in front; 0: there is none."""
    made_from: int = 0
    """Tokens that the call which wrote a new summary had to read; 0 where none was written at this step."""

    def tokens(self, placeholder: int, stub: int) -> int:
        """Tokens of all of it."""
        body = sum(
            min(message.tokens, placeholder) if message.place in self.cleared else message.tokens
            for message in self.messages
        )
        return body + (stub if self.stub else 0)
