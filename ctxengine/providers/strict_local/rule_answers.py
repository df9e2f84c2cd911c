"""Answers by rule: do what the last instruction says, as far as a fixed list of forms goes.

The instruction is the newest user text in one of these forms, else the last text of the newest user turn that holds no
tool results:

- `call NAME {json}` (several, `N times`): calls the tool, until it has as many results as were asked for;
- `reply with: X`, `answer only with this JSON: {...}`, `echo: X`, `say: X`: answers X and nothing else;
- `strict: truncate | refuse | think | stall SECONDS | cut | 429 | 500 | 503 | 529 [xN] [retry-after S]`.

Anything else is echoed. Errors by directive come N times (once unless said) for one body, so a retry succeeds.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from ctxengine.providers.strict_local.exchange import Json, object_of, objects
from ctxengine.providers.strict_local.models import horizon_of
from ctxengine.providers.strict_local.script import Offer, Reply, ScriptedCall, Turn, View

_DIRECTIVE = re.compile(r"\bstrict:\s*([^\n]+)")
_CALL = re.compile(
    r"\b(?:call|use)\s+(?:the\s+)?(?:tool\s+)?[`'\"]?([A-Za-z_][A-Za-z0-9_.-]*)", re.I
)
_AND_CALL = re.compile(r"\s*(?:,|;|and|then)\s+(?:call\s+)?[`'\"]?([A-Za-z_][A-Za-z0-9_.-]*)", re.I)
_TIMES = re.compile(r"\b(\d{1,3}) times\b")
_SAY = re.compile(
    r"\b(?:reply|answer|respond|say|echo|repeat|write|output)\b[^:\n{]{0,80}(?::\s*|(?=\{))(.+)",
    re.I | re.DOTALL,
)
_STATUS = re.compile(r"\b(429|500|503|529)\b(?:\s+x(\d+))?(?:.*?retry-after\s+([\d.]+))?")
_ECHOED_CHARS = 160
_TRUNCATED_TOKENS = 8
_LEFT_BEHIND = "Noted."


class _Instruction(NamedTuple):
    text: str
    results: tuple[str, ...]
    """Results that came after it."""
    calls: int
    """Calls made after it."""


class RuleAnswers:
    """The rules; remembers how often a body was refused by directive."""

    def __init__(self) -> None:
        """Nothing was refused yet."""
        self._refused: Counter[str] = Counter()

    def __call__(self, view: View) -> Reply:
        """The reply to a request."""
        instruction = _instruction(view)
        reply = self._directed(instruction.text, view.body_digest)
        if reply.status is not None or reply.refuse:
            return reply
        horizon = horizon_of(view.model)
        if horizon is not None and view.tokens >= horizon:
            return replace(reply, text=_earlier_answer(view.turns), plain=True)
        return _obey(reply, instruction, view)

    def _directed(self, text: str, body: str) -> Reply:
        match = _DIRECTIVE.search(text)
        if match is None:
            return Reply()
        words = match[1].lower()
        if status := _STATUS.search(words):
            self._refused[body] += 1
            if self._refused[body] <= int(status[2] or 1):
                retry_after = float(status[3]) if status[3] else None
                return Reply(status=int(status[1]), retry_after=retry_after)
        stall = re.search(r"stall\s+([\d.]+)", words)
        return Reply(
            refuse="refuse" in words,
            thinking="Thinking, as was asked." if "think" in words else None,
            truncate_after_tokens=_TRUNCATED_TOKENS if "truncate" in words else None,
            stall_seconds=float(stall[1]) if stall else 0.0,
            cut_after_events=2 if "cut" in words else None,
        )


def _instruction(view: View) -> _Instruction:
    results: list[str] = []
    calls = 0
    for index in range(len(view.turns) - 1, -1, -1):
        turn = view.turns[index]
        calls += len(turn.calls)
        results[:0] = turn.results
        if turn.role != "user":
            continue
        for text in reversed(turn.texts):
            if _understood(text, view.offers):
                return _Instruction(text, tuple(results), calls)
        # Text beside results, or right behind them, goes with the loop and asks for nothing new.
        in_loop = turn.results or (index > 0 and view.turns[index - 1].role == "tool")
        if turn.texts and not in_loop:
            return _Instruction(turn.texts[-1], tuple(results), calls)
    return _Instruction("", tuple(results), calls)


def _understood(text: str, offers: tuple[Offer, ...]) -> bool:
    return bool(_DIRECTIVE.search(text) or _wanted(text, offers) or _SAY.search(text))


def _obey(reply: Reply, instruction: _Instruction, view: View) -> Reply:
    wanted = [] if view.choice == "none" else _wanted(instruction.text, view.offers)
    if view.choice not in {"auto", "none"} and not wanted and not instruction.results:
        wanted = _forced(view)
    times = int(match[1]) if (match := _TIMES.search(instruction.text)) else 1
    if wanted and instruction.calls < times * len(wanted):
        unknown = {offer.name for offer in view.offers if offer.deferred}
        searched = tuple(dict.fromkeys(c.name for c in wanted if c.name in unknown))
        return replace(reply, calls=tuple(wanted), searched=searched if view.searches else ())
    if view.answer_schema is not None:
        return replace(reply, text=_structured(instruction.text, view.answer_schema), plain=True)
    if instruction.results:
        last = instruction.results[-1][:_ECHOED_CHARS]
        return replace(
            reply, text=f"Done after {len(instruction.results)} results; the last: {last}"
        )
    if match := _SAY.search(instruction.text):
        return replace(reply, text=_said(match[1]), plain=True)
    return replace(reply, text=f"I was told: {instruction.text[:_ECHOED_CHARS]}")


def _wanted(text: str, offers: tuple[Offer, ...]) -> list[ScriptedCall]:
    known = {offer.name: offer for offer in offers}
    calls: list[ScriptedCall] = []
    match = _CALL.search(text)
    while match is not None:
        name = match[1].rstrip(".")
        end = match.end()
        if name in known:
            arguments, end = _arguments(text, end)
            given = arguments if arguments is not None else example_of(known[name].schema)
            calls.append(ScriptedCall(name, json.dumps(given)))
        follows = _AND_CALL.match(text, end) if calls else None
        match = follows if follows and follows[1] in known else _CALL.search(text, end)
    return calls


def _arguments(text: str, start: int) -> tuple[Json | None, int]:
    match = re.compile(r"[`'\"]?\s*(?:with\s*)?(?=\{)").match(text, start)
    if match is None:
        return None, start
    try:
        value, end = json.JSONDecoder().raw_decode(text, match.end())
    except ValueError:
        return None, start
    return (value, end) if isinstance(value, dict) else (None, start)


def _forced(view: View) -> list[ScriptedCall]:
    named = [offer for offer in view.offers if offer.name == view.choice]
    chosen = named or [offer for offer in view.offers if not offer.deferred][:1]
    return [ScriptedCall(offer.name, json.dumps(example_of(offer.schema))) for offer in chosen]


def _said(rest: str) -> str:
    text = rest.strip()
    if text.startswith(("{", "[")):
        try:
            _, end = json.JSONDecoder().raw_decode(text)
        except ValueError:
            end = len(text)
        return text[:end]
    line = text.split("\n", 1)[0].strip()
    quoted = len(line) > 2 and line[0] == line[-1] and line[0] in "`'\""
    return line[1:-1] if quoted else line


def _structured(instruction: str, schema: Json) -> str:
    match = _SAY.search(instruction)
    said = _said(match[1]) if match else ""
    return said if said.startswith("{") else json.dumps(example_of(schema))


def _earlier_answer(turns: tuple[Turn, ...]) -> str:
    for turn in reversed(turns):
        if turn.role == "assistant" and turn.texts:
            return turn.texts[-1]
    return _LEFT_BEHIND


def example_of(schema: Json) -> Json:
    """A small object that satisfies the plain parts of a JSON schema: its required members."""
    members = object_of(schema.get("properties"))
    names = [name for name in schema.get("required", []) if isinstance(name, str)]
    return {name: _example(object_of(members.get(name))) for name in names}


def _example(schema: Json) -> object:
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if choices := schema.get("enum"):
        return choices[0]
    if options := objects(schema.get("anyOf")) or objects(schema.get("oneOf")):
        return _example(options[0])
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object":
        return example_of(schema)
    plain = {"integer": 1, "number": 1, "boolean": True, "array": [], "null": None}
    return plain.get(str(kind), "scripted")
