"""What the tests of working state and compaction share: a runtime that updates state, and looking outside of envelopes."""

from __future__ import annotations

import json
import re
from itertools import count
from typing import Any

from ctxengine.engine.standing import working_state_of
from ctxengine.engine.working_state.state import WorkingState
from ctxengine.service.compact import compact
from ctxengine.service.compacted import Compacted
from ctxengine.service.pin import Presented, set_presentation
from ctxengine.service.prove import replay_request
from ctxengine.service.specs import Compact, Present, UndoCompaction
from ctxengine.service.undo_compaction import undo_compaction
from tests.cast import Call, Runtime

_ENVELOPE = re.compile(
    r'<untrusted [^>\n]*nonce="([0-9a-f]+)"[^>\n]*>\n.*?\n</untrusted:\1>', re.DOTALL
)
_numbers = count(1)

PROSE = (
    "The northern depot sent its figures late, so the comparison with last year waits for them. "
    "Nobody knows yet whether the new counting rule changes the total, and by how much. "
)


def outside_envelopes(text: str) -> str:
    """What is left of a text when every envelope is taken out."""
    return _ENVELOPE.sub(" ", text)


def texts_of(request: dict[str, Any]) -> list[str]:
    """All texts of an Anthropic request that the platform or the user's role carries."""
    found = [block["text"] for block in request["system"]]
    for message in request["messages"]:
        if message["role"] != "user":
            continue
        for block in message["content"]:
            parts = block["content"] if block["type"] == "tool_result" else [block]
            found += [part["text"] for part in parts if part["type"] == "text"]
    return found


def row_nine(request: dict[str, Any]) -> str:
    """The first text of the first message: row 9 where something is left out."""
    text: str = request["messages"][0]["content"][0]["text"]
    return text


def body(built: Any) -> dict[str, Any]:
    """The request as plain data."""
    found: dict[str, Any] = json.loads(built.body)
    return found


class Shrinker(Runtime):
    """A runtime that also notes, compacts, undoes, pins, folds and excludes."""

    def note(self, **wish: Any) -> dict[str, Any]:
        """Let the model call the control tool in a step of its own; gives the platform's answer."""
        self.assemble()
        name = "context_update_working_state"
        taken = self.say("", Call(f"ws{next(_numbers)}", name, json.dumps(wish)))
        (answered,) = taken.calls
        assert answered.action == "answered"
        told: dict[str, Any] = json.loads(answered.result or "{}")
        return told

    @property
    def state(self) -> WorkingState:
        """The working state as the log gives it."""
        return working_state_of(self.log)[0]

    def shrink(self, **fields: Any) -> Compacted:
        """Compact by hand."""
        return compact(actor=self.actor, session_id=self.session, spec=Compact(**fields))

    def undo(self, event: int | None) -> int:
        """Undo a compaction."""
        assert event is not None
        return undo_compaction(
            actor=self.actor, session_id=self.session, event=event, spec=UndoCompaction()
        )

    def mark(self, target: str, form: str, scope: str = "unit", **fields: Any) -> Presented:
        """Pin, fold or exclude."""
        spec = Present(target=target, form=form, scope=scope, **fields)  # type: ignore[arg-type]
        return set_presentation(actor=self.actor, session_id=self.session, spec=spec)

    def talk(self, turns: int = 3, size: int = 8) -> None:
        """Runs with one tool call each."""
        for _ in range(turns):
            number = next(_numbers)
            self.ask(f"Question {number}: how does src/part{number}/main.py count? " + PROSE)
            self.look(f"c{number}", f"Listing {number}. " + f"Row of sheet {number}. " * 10 * size)
            self.assemble()
            self.say(f"Decision {number}: the limit stays at {number}41. " + PROSE * size)

    def all_proven(self) -> None:
        """Every recorded request rebuilds to its hash."""
        for request in self.requests:
            verdict = replay_request(actor=self.actor, request_id=request.id).verdict
            assert verdict == "identical", request

    def all_proven_but_erased(self) -> None:
        """Every recorded request rebuilds to its hash, as far as its content is still there."""
        for request in self.requests:
            found = replay_request(actor=self.actor, request_id=request.id)
            assert found.verdict in {"identical", "identical_except"}, found
