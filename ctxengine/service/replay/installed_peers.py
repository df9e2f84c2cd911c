"""Peer libraries themselves as policies, each where it is installed: the library decides, the lab counts and prices.

None of them is a dependency. Which are there is looked up once, when the table of engines is made; a library that is missing
leaves its row out.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, ClassVar

from ctxengine.engine.history.peers.conversation import PeerMessage, Shown
from ctxengine.engine.history.peers.policies import PeerPolicy


class LangChainTrim:
    """`langchain_core.messages.trim_messages` as its documentation shows it: the last tokens, from a human message on.

    It counts with the lab's own counts. Where no human message fits it gives back nothing, and nothing is sent.
    """

    name: ClassVar[str] = "langchain_trim_messages"
    words: ClassVar[str] = (
        "the library itself: `trim_messages` of langchain-core, strategy `last`, beginning at a human message"
    )

    def __init__(self) -> None:
        """Find the library; nothing is trimmed yet."""
        self._library: Any = importlib.import_module("langchain_core.messages")
        self._made: list[Any] = []
        self._tokens: dict[str, int] = {}

    def show(self, history: Sequence[PeerMessage], room: int) -> Shown:
        """What the library keeps of the history."""
        for message in history[len(self._made) :]:
            self._take(message)
        kept = self._library.trim_messages(
            self._made,
            max_tokens=room,
            strategy="last",
            start_on="human",
            token_counter=self._count,
        )
        places = {message.id for message in kept}
        return Shown([message for message in history if str(message.place) in places])

    def _take(self, message: PeerMessage) -> None:
        """The message as one of the library's own; what it says is of no matter to it, its length is counted here."""
        key = str(message.place)
        self._tokens[key] = message.tokens
        library = self._library
        if message.role == "user":
            made = library.HumanMessage(content=key, id=key)
        elif message.role == "result":
            made = library.ToolMessage(content=key, id=key, tool_call_id=key)
        else:
            made = library.AIMessage(content=key, id=key)
        self._made.append(made)

    def _count(self, messages: Iterable[Any]) -> int:
        return sum(self._tokens[message.id] for message in messages)


_LIBRARIES: tuple[tuple[str, type[LangChainTrim]], ...] = (("langchain_core", LangChainTrim),)
"""The package that a policy needs, and the policy."""


def installed_peers() -> Mapping[str, Callable[[], PeerPolicy]]:
    """Policies of the libraries that are installed here, by name."""
    return {policy.name: policy for package, policy in _LIBRARIES if find_spec(package) is not None}
