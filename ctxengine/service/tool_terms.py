"""What tools are found by, worked out once for each wording in this process; it can be lost at any moment (design 12).

Each step of a run and each search asks it of every listed tool again, and it follows from the tool's own texts alone.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from ctxengine.engine.control.find import ToolTerms, tool_terms
from ctxengine.engine.plan.tool import PinnedTool

TOOLS_KEPT = 4_096
"""Tools whose words are remembered."""

_Texts = tuple[str, str, str, tuple[str, ...]]


class _Kept:
    """The words of the tools that were asked for last."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._terms: OrderedDict[_Texts, ToolTerms] = OrderedDict()
        self._lock = Lock()

    def of(self, tool: PinnedTool) -> ToolTerms:
        """The words of a tool."""
        key = (tool.name, tool.server, tool.description, tool.serves)
        with self._lock:
            known = self._terms.get(key)
            if known is not None:
                self._terms.move_to_end(key)
                return known
        made = tool_terms(tool)
        with self._lock:
            self._terms[key] = made
            while len(self._terms) > self._limit:
                self._terms.popitem(last=False)
        return made


_KEPT = _Kept(TOOLS_KEPT)


def known_terms(tool: PinnedTool) -> ToolTerms:
    """The words of a tool, as `tool_terms` gives them."""
    return _KEPT.of(tool)
