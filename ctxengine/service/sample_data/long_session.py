"""A long session made to measure: an operations agent of a parcel depot, through as many steps as wanted.

The same arguments give the same text, to the byte: there is no clock and no shared randomness. Kinds of content are
mixed on purpose (code, logs, JSON, diffs, tables, prose, other scripts), as are sizes and the length of runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ctxengine.service.sample_data.long_session_texts import (
    CLOSINGS,
    CODE,
    HOSTS,
    LOG_MESSAGES,
    MODULES,
    PROSE,
    QUESTIONS,
    REMARKS,
    SCRIPTS,
    SYSTEM,
)

DEFAULT_ITEMS = 1_500
DEFAULT_SEED = 20_261_105
MODEL = "gpt-4o"

T = TypeVar("T")
_Message = dict[str, Any]

_MASK = (1 << 64) - 1


class Draw:
    """A small generator of pseudo-random numbers of its own (SplitMix64): the same for ever, on every platform."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def below(self, limit: int) -> int:
        """A whole number from 0 to `limit` - 1."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return (mixed ^ (mixed >> 31)) % limit

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices."""
        return choices[self.below(len(choices))]


def long_session(items: int = DEFAULT_ITEMS, *, seed: int = DEFAULT_SEED) -> str:
    """JSON text of an OpenAI chat transcript with at least this many messages, calls and results.

    Args:
        items: How many items to reach; the run in which they are reached is finished.
        seed: Another number gives another session.
    """
    maker = _Maker(Draw(seed))
    while maker.items < items:
        maker.run()
    body = {"model": MODEL, "tools": _TOOLS, "messages": maker.messages}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


class _Maker:
    """Writes runs until there are enough."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.messages: list[_Message] = [{"role": "system", "content": SYSTEM}]
        self.items = 0
        self._calls = 0
        self._minute = 8 * 60

    def run(self) -> None:
        """One question, some steps, one answer."""
        draw = self.draw
        host, module = draw.pick(HOSTS), draw.pick(MODULES)
        question = draw.pick(QUESTIONS).format(host=host, module=module)
        if draw.below(9) == 0:
            question = f"{question}\n\n{draw.pick(SCRIPTS)}"
        self._say("user", question)
        for _ in range(draw.pick((1, 2, 2, 3, 4, 5, 6, 9, 14))):
            self._step(host, module)
        closing = draw.pick(CLOSINGS).format(host=host, module=module)
        self._say("assistant", f"{closing}\n\n{self._prose(draw.between(1, 3))}")

    def _say(self, role: str, text: str) -> None:
        self.messages.append({"role": role, "content": text})
        self.items += 1

    def _step(self, host: str, module: str) -> None:
        """One model answer with one to three calls, and their results."""
        draw = self.draw
        makers = [draw.pick(_KINDS) for _ in range(draw.pick((1, 1, 1, 1, 2, 3)))]
        calls: list[_Message] = []
        results: list[_Message] = []
        for name, arguments, result in (make(self, host, module) for make in makers):
            self._calls += 1
            call_id = f"call_{self._calls:05d}"
            function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
            calls.append({"id": call_id, "type": "function", "function": function})
            results.append({"role": "tool", "tool_call_id": call_id, "content": result})
        remark = draw.pick(REMARKS).format(host=host) if draw.below(2) else None
        self.messages.append({"role": "assistant", "content": remark, "tool_calls": calls})
        self.messages.extend(results)
        self.items += (remark is not None) + 2 * len(calls)

    def _prose(self, sentences: int) -> str:
        return " ".join(self.draw.pick(PROSE) for _ in range(sentences))

    def _stamp(self) -> str:
        self._minute += self.draw.between(1, 3)
        day, minute = divmod(self._minute, 1_440)
        seconds = self.draw.below(60)
        return f"2026-11-{2 + day % 27:02d}T{minute // 60:02d}:{minute % 60:02d}:{seconds:02d}Z"

    def logs(self, host: str, module: str) -> tuple[str, dict[str, Any], str]:
        """Lines of a service log, now and then with colour codes and a trace."""
        draw = self.draw
        lines: list[str] = []
        for _ in range(draw.between(4, 40)):
            level = draw.pick(("INFO", "INFO", "INFO", "DEBUG", "WARN", "\x1b[31mERROR\x1b[0m"))
            message = draw.pick(LOG_MESSAGES).format(
                n=draw.below(9_000), parcel=f"PX{draw.below(10**8):08d}"
            )
            lines.append(
                f"{self._stamp()} {host} {module}[{draw.between(300, 900)}] {level} {message}"
            )
        return "read_log", {"host": host, "unit": module, "lines": len(lines)}, "\n".join(lines)

    def json_rows(self, host: str, module: str) -> tuple[str, dict[str, Any], str]:
        """Rows of a query, as JSON."""
        draw = self.draw
        rows = [
            {
                "parcel": f"PX{draw.below(10**8):08d}",
                "belt": draw.between(1, 18),
                "weight_g": draw.between(60, 31_500),
                "state": draw.pick(("sorted", "held", "misrouted", "loaded")),
                "seen": self._stamp(),
                "ratio": draw.below(1_000) / 1_000,
            }
            for _ in range(draw.between(2, 22))
        ]
        arguments = {"table": "scan", "source": module, "newest": len(rows)}
        return "query", arguments, json.dumps({"rows": rows, "host": host})

    def code(self, host: str, module: str) -> tuple[str, dict[str, Any], str]:
        """Part of a source file, with line numbers."""
        draw = self.draw
        start = draw.between(1, 300)
        pieces = [draw.pick(CODE).replace("MODULE", module) for _ in range(draw.between(1, 4))]
        numbered = enumerate("\n\n".join(pieces).split("\n"), start)
        text = "\n".join(f"{number:6d}\t{line}" for number, line in numbered)
        return "read_file", {"path": f"depot/{module}.py", "offset": start, "host": host}, text

    def diff(self, host: str, module: str) -> tuple[str, dict[str, Any], str]:
        """An edit and the difference it made."""
        draw = self.draw
        old, new = draw.between(1, 40), draw.between(41, 90)
        text = (
            f"--- a/depot/{module}.py\n+++ b/depot/{module}.py\n@@ -{old},3 +{old},3 @@\n"
            f"-RETRY_AFTER_S = {old}\n+RETRY_AFTER_S = {new}\n"
        )
        arguments = {"path": f"depot/{module}.py", "old": f"= {old}", "new": f"= {new}"}
        return "edit_file", {**arguments, "reason": f"load on {host}"}, text

    def page(self, host: str, module: str) -> tuple[str, dict[str, Any], str]:
        """A page of the handbook: prose, a table, sometimes another script."""
        draw = self.draw
        table = "\n".join(
            f"| belt {belt} | {draw.between(20, 99)} % | {draw.between(1, 400)} |"
            for belt in range(1, draw.between(3, 12))
        )
        other = f"\n\n> {draw.pick(SCRIPTS)}" if draw.below(3) == 0 else ""
        text = (
            f"# Handbook: {module}\n\n{self._prose(draw.between(3, 9))}{other}\n\n"
            f"| belt | use | misroutes |\n|---|---|---|\n{table}\n"
        )
        return "open_page", {"url": f"https://handbook.depot.example/{module}?h={host}"}, text

    def command(self, host: str, module: str) -> tuple[str, dict[str, Any], str]:
        """A command that prints little or nothing."""
        draw = self.draw
        verb = draw.pick(("restart", "reload", "status", "drain"))
        shown = draw.pick(("", "ok", f"{module}: {verb} done on {host}\n", "exit status 1: busy\n"))
        return "run", {"host": host, "command": f"depotctl {verb} {module}"}, shown


_Kind = Callable[[_Maker, str, str], tuple[str, dict[str, Any], str]]
_KINDS: tuple[_Kind, ...] = (
    _Maker.logs,
    _Maker.json_rows,
    _Maker.code,
    _Maker.diff,
    _Maker.page,
    _Maker.command,
)


def _tool(name: str, description: str, *arguments: str) -> dict[str, Any]:
    properties = {argument: {"type": "string"} for argument in arguments}
    schema = {"type": "object", "properties": properties}
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


_TOOLS = [
    _tool("read_log", "Last lines of a unit's log on a host.", "host", "unit", "lines"),
    _tool("query", "Newest rows of a table of the scan database.", "table", "source", "newest"),
    _tool("read_file", "Part of a source file, with line numbers.", "path", "offset", "host"),
    _tool(
        "edit_file", "Replace text in a file; answers with the difference.", "path", "old", "new"
    ),
    _tool("open_page", "A page of the depot's handbook.", "url"),
    _tool("run", "Run a depotctl command on a host.", "host", "command"),
]
