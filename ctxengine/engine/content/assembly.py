"""Collecting blocks into items: the grouping rule shared by every format.

One rule: consecutive parts that are neither calls nor results make one message item; every call and
every result is an item of its own. Opaque blocks make no item and split no group, so that a body
decodes to the same items with and without them; their place is kept as (item, part).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ctxengine.engine.items import DecodedItem, ItemKind, Opaque, Part


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything one body holds."""

    items: tuple[DecodedItem, ...]
    opaque: tuple[Opaque, ...]


class Assembly:
    """Takes blocks in order and gives the items they make."""

    def __init__(self, kind: ItemKind) -> None:
        """Messages of this body are of `kind` until `speak` says otherwise."""
        self._kind = kind
        self._phase: str | None = None
        self._items: list[DecodedItem] = []
        self._open: list[Part] = []
        self._opaque: list[Opaque] = []

    def speak(self, kind: ItemKind, phase: str | None = None) -> None:
        """Close the open message; the next parts belong to a new one of this kind."""
        self._close()
        self._kind = kind
        self._phase = phase

    def part(self, part: Part) -> None:
        """Add a part to the open message."""
        self._open.append(part)

    def call(self, call_id: str | None, name: str, arguments: str) -> None:
        """Add a tool call."""
        self._close()
        self._items.append(
            DecodedItem(
                ordinal=len(self._items),
                kind=ItemKind.TOOL_CALL,
                call_id=call_id,
                name=name,
                arguments=arguments,
            )
        )

    def result(
        self,
        call_id: str | None,
        parts: tuple[Part, ...],
        *,
        is_error: bool = False,
        name: str | None = None,
    ) -> None:
        """Add a tool result."""
        self._close()
        self._items.append(
            DecodedItem(
                ordinal=len(self._items),
                kind=ItemKind.TOOL_RESULT,
                parts=parts,
                call_id=call_id,
                name=name,
                is_error=is_error,
            )
        )

    def opaque(self, kind: str, raw: str, api: str, follower_id: str | None = None) -> None:
        """Note a reasoning block at the current place."""
        self._opaque.append(
            Opaque(
                before=len(self._items),
                kind=kind,
                raw=raw,
                api=api,
                before_part=len(self._open),
                follower_id=follower_id,
            )
        )

    def reading(self) -> Reading:
        """Close what is open and hand everything over."""
        self._close()
        return Reading(tuple(self._items), tuple(self._opaque))

    def _close(self) -> None:
        if not self._open:
            return
        ordinal, size = len(self._items), len(self._open)
        self._items.append(
            DecodedItem(
                ordinal=ordinal, kind=self._kind, parts=tuple(self._open), phase=self._phase
            )
        )
        self._open.clear()
        # A block after the last part of a message stands in front of the next item.
        self._opaque = [
            replace(o, before=ordinal + 1, before_part=0)
            if (o.before, o.before_part) == (ordinal, size)
            else o
            for o in self._opaque
        ]
