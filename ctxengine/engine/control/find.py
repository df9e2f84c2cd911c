"""`find_tools`: which listed tools a query is about, and their whole schemas as body content (capacity spec 5; design 7.1).

What matches and is not given whole is named, so that the model can ask on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ctxengine.engine.plan.tool import PinnedTool
from ctxengine.engine.reading import Reading
from ctxengine.engine.trust.levels import Trust
from ctxengine.engine.turns.function_words import FUNCTION_WORDS
from ctxengine.engine.turns.index_text import terms_of

MOST_FOUND = 6
"""Most schemas that one search gives; the others that match are named."""
MOST_NAMED = 24
"""Most names of such others; how many more there are is told by their count."""
MOST_NAMED_CHARS = 1_600
"""Most that such names take together (characters of JSON): a server may give its tools any name."""
_IN_NAME, _IN_SERVES, _IN_SERVER, _IN_DESCRIPTION = 4, 3, 3, 1


class Served(NamedTuple):
    """What listed tools a turn is shown without asking."""

    tools: tuple[PinnedTool, ...] = ()
    """With their schemas, best first."""
    left: tuple[PinnedTool, ...] = ()
    """Those that serve it too and for whose schemas there was no room, best first."""


class ToolTerms(NamedTuple):
    """What a tool is found by."""

    name: frozenset[str]
    serves: frozenset[str]
    server: frozenset[str]
    description: frozenset[str]
    """Without small words: every description has them; in a name they are chosen."""


def tool_terms(tool: PinnedTool) -> ToolTerms:
    """The words of a tool; a caller that asks for the same tools again and again keeps them."""
    return ToolTerms(
        frozenset(terms_of(tool.name)),
        frozenset(term for served in tool.serves for term in terms_of(served)),
        frozenset(terms_of(tool.server)),
        frozenset(terms_of(tool.description)) - FUNCTION_WORDS,
    )


def matching(
    tools: Sequence[PinnedTool],
    query: str,
    *,
    terms: Callable[[PinnedTool], ToolTerms] = tool_terms,
) -> tuple[PinnedTool, ...]:
    """All tools that share words with a query, best first; a tool's own name finds it alone.

    Words of the name count most, then those of what it serves and of the server it came from, then those of its description.

    Args:
        tools: those that are listed without being defined.
        terms: gives the words of a tool.
    """
    named = tuple(tool for tool in tools if tool.name == query.strip())
    if named:
        return named
    wanted = frozenset(terms_of(query))
    scored = [(_score(terms(tool), wanted), tool) for tool in tools]
    ranked = sorted(
        (pair for pair in scored if pair[0] > 0), key=lambda pair: (-pair[0], pair[1].name)
    )
    return tuple(tool for _, tool in ranked)


def serving(
    tools: Sequence[PinnedTool],
    reading: Reading,
    room: int,
    *,
    directive: str = "",
    naming: Callable[[Sequence[PinnedTool]], int] = lambda _: 0,
    terms: Callable[[PinnedTool], ToolTerms] = tool_terms,
) -> Served:
    """The tools that serve what a reading asks for, as many as fit the room beside the names of the others.

    Best first: those that serve more of its domains, then those that share more words with what it is about, then by name.

    Args:
        room: tokens that their definitions and those names may take together.
        directive: the words that were read.
        naming: what it takes to name those that are left (tokens).
        terms: gives the words of a tool.
    """
    domains = frozenset(reading.required_domains)
    words = frozenset(terms_of(directive)) | frozenset(reading.extra_terms)
    able = [tool for tool in tools if domains & set(tool.serves)]
    able.sort(key=lambda t: (-len(domains & set(t.serves)), -_score(terms(t), words), t.name))
    kept_free = 0
    while True:
        served = _fitting(able, room - kept_free)
        names = naming(served.left) if served.left else 0
        if names <= kept_free:
            return served
        kept_free = names


def _fitting(tools: Sequence[PinnedTool], room: int) -> Served:
    found, rest, left = [], [], room
    for tool in tools:
        if tool.tokens <= left:
            found.append(tool)
            left -= tool.tokens
        else:
            rest.append(tool)
    return Served(tuple(found), tuple(rest))


def schemas_text(
    tools: Sequence[PinnedTool],
    *,
    caller: str,
    others: Sequence[PinnedTool] = (),
    finder: str = "",
) -> str:
    """Names, descriptions and whole input schemas as they are pinned.

    Args:
        caller: wire name of the tool by which they are called.
        others: tools of which only the names are told, best first.
        finder: wire name of the tool that gives the schemas of those.
    """
    lines = [
        f'{{"name":{json.dumps(tool.name)},"description":{json.dumps(tool.description)},'
        f'"input_schema":{tool.input_schema}}}'
        for tool in tools
    ]
    more = f',"more":{_named_only(others, finder)}' if others else ""
    return f'{{"call_with":{json.dumps(caller)},"tools":[' + ",".join(lines) + f"]{more}}}"


def _named_only(others: Sequence[PinnedTool], finder: str) -> str:
    names: list[str] = []
    left = MOST_NAMED_CHARS
    for tool in others[:MOST_NAMED]:
        left -= len(json.dumps(tool.name))
        if left < 0:
            break
        names.append(tool.name)
    told = {"count": len(others), "names": names, "schemas_by": finder}
    return json.dumps(told, separators=(",", ":"))


def schemas_trust(tools: Sequence[PinnedTool]) -> Trust:
    """What a server wrote of its tools is a server's text."""
    if any(tool.discovered for tool in tools):
        return Trust.EXTERNAL_UNTRUSTED
    return Trust.TRUSTED_CONFIGURATION


def _score(terms: ToolTerms, wanted: frozenset[str]) -> int:
    return (
        _IN_NAME * len(wanted & terms.name)
        + _IN_SERVES * len(wanted & terms.serves)
        + _IN_SERVER * len(wanted & terms.server)
        + _IN_DESCRIPTION * len(wanted & terms.description)
    )
