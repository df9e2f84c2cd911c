"""`find_tools`: which listed tools a query is about, and their whole schemas as body content (capacity spec 5; design 7.1)."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from ctxengine.engine.plan.tool import PinnedTool
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.turns.index_text import terms_of

MOST_FOUND = 6
"""Most schemas that one search gives."""
_IN_NAME, _IN_SERVES, _IN_DESCRIPTION = 4, 3, 1


def matching(tools: Sequence[PinnedTool], query: str) -> tuple[PinnedTool, ...]:
    """The tools that share words with a query, best first; a tool's own name finds it alone.

    Args:
        tools: those that are listed without being defined.
    """
    named = tuple(tool for tool in tools if tool.name == query.strip())
    if named:
        return named
    wanted = frozenset(terms_of(query))
    scored = [(_score(tool, wanted), tool) for tool in tools]
    ranked = sorted(
        (pair for pair in scored if pair[0] > 0), key=lambda pair: (-pair[0], pair[1].name)
    )
    return tuple(tool for _, tool in ranked[:MOST_FOUND])


def serving(
    tools: Sequence[PinnedTool], domains: Collection[str], room: int
) -> tuple[PinnedTool, ...]:
    """The tools that serve any of these domains and fit the room, by name.

    Args:
        room: tokens that their definitions may take together.
    """
    wanted, found, left = frozenset(domains), [], room
    for tool in sorted(tools, key=lambda tool: tool.name):
        if wanted & set(tool.serves) and tool.tokens <= left:
            found.append(tool)
            left -= tool.tokens
    return tuple(found)


def schemas_text(tools: Sequence[PinnedTool], *, caller: str) -> str:
    """Names, descriptions and whole input schemas as they are pinned.

    Args:
        caller: wire name of the tool by which they are called.
    """
    lines = [
        f'{{"name":{json.dumps(tool.name)},"description":{json.dumps(tool.description)},'
        f'"input_schema":{tool.input_schema}}}'
        for tool in tools
    ]
    return f'{{"call_with":{json.dumps(caller)},"tools":[' + ",".join(lines) + "]}"


def schemas_trust(tools: Sequence[PinnedTool]) -> Trust:
    """What a server wrote of its tools is a server's text."""
    if any(tool.discovered for tool in tools):
        return Trust.EXTERNAL_UNTRUSTED
    return Trust.TRUSTED_CONFIGURATION


def _score(tool: PinnedTool, wanted: frozenset[str]) -> int:
    name = wanted & set(terms_of(tool.name))
    serves = wanted & {term for served in tool.serves for term in terms_of(served)}
    said = wanted & set(terms_of(tool.description))
    return _IN_NAME * len(name) + _IN_SERVES * len(serves) + _IN_DESCRIPTION * len(said)
