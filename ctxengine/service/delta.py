"""The delta form of assemble: only what changed since a request the caller already has (design 5)."""

from __future__ import annotations

import hashlib
import json

from ctxengine.engine.lexeme import Node, parse
from ctxengine.engine.request import ModelRequest

_LISTS = ("messages", "input", "contents")
"""Where the APIs keep what a longer conversation appends to."""


def delta_of(base: ModelRequest, new: ModelRequest) -> bytes | None:
    """Ready JSON of the difference between two bodies of one API; None when the base cannot be rebuilt whole.

    `keep` counts messages (input items for the Responses API, contents for Gemini) of the base that stand unchanged at the
    head of the new request, cache markers included. Fields beside the messages are given only where they differ; `removed`
    names those that went.
    """
    if not base.body or not new.body or base.renderer.api is not new.renderer.api:
        return None
    before, after = _members(base.body), _members(new.body)
    key = next(name for name in _LISTS if name in after)
    old = [node.raw for node in before[key]]
    fresh = [node.raw for node in after[key]]
    keep = 0
    while keep < min(len(old), len(fresh)) and old[keep] == fresh[keep]:
        keep += 1
    fields = [
        f'"keep":{keep}',
        f"{json.dumps(key)}:[{','.join(fresh[keep:])}]",
        *(
            f"{json.dumps(name)}:{node.raw}"
            for name, node in after.items()
            if name != key and (name not in before or before[name].raw != node.raw)
        ),
        f'"base_sha256":"{hashlib.sha256(base.body).hexdigest()}"',
        f'"sha256":"{hashlib.sha256(new.body).hexdigest()}"',
    ]
    removed = sorted(set(before) - set(after))
    if removed:
        fields.append(f'"removed":{json.dumps(removed)}')
    return ("{" + ",".join(fields) + "}").encode()


def _members(body: bytes) -> dict[str, Node]:
    return dict(parse(body.decode()).items())
