"""Joining fragments of one role into one message, for APIs whose turns alternate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctxengine.engine.wire.base import Fragment


def joined(
    fragments: Sequence[Fragment],
    roles: Mapping[str, str],
    key: bytes,
    behind: Mapping[int, bytes] | None = None,
) -> list[bytes]:
    """Pieces of the array's content: neighbours of one role stand in one message.

    Args:
        roles: the API's word for each role.
        key: member that holds a message's blocks.
        behind: blocks to set behind the fragment of that index.
    """
    pieces: list[bytes] = []
    role = ""
    for index, fragment in enumerate(fragments):
        if fragment.role == role:
            pieces.append(b",")
        else:
            if role:
                pieces.append(b"]},")
            role = fragment.role
            pieces.append(b'{"role":"%s","%s":[' % (roles[role].encode(), key))
        pieces.append(fragment.data)
        if behind and index in behind:
            pieces += (b",", behind[index])
    if role:
        pieces.append(b"]}")
    return pieces
