"""`runs/{run}/tool-results` and `runs/{run}/input`: what happened outside the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from api.answers import joined, to_json
from api.openapi import TEXT, listed, record
from api.schema import Component, Operation, Operations
from api.shapes.base import Schema
from api.shapes.containers import ListOf, Member, Record, build
from api.shapes.content import Message, ResultContent
from api.shapes.scalars import AnyText, Flag, Identifier, Text
from api.v1.assemble import FOLLOW_UP_FIELDS, FOLLOW_UP_PARTS, followed, followed_again
from api.views import Done, JsonWrite, WriteView
from ctxengine.engine.lexeme import Node
from ctxengine.service.specs import Actor, ResultsTaken, TakeInput, TakeToolResults, ToolResult
from ctxengine.service.take_input import take_input
from ctxengine.service.take_tool_results import take_tool_results

SpecT = TypeVar("SpecT")

_RETAIN = Member("retain", Text(), note="What this content is kept for.")
_ASSEMBLE = Member("assemble", Flag(), note="Answer with the next request too, once no call waits.")


class _Result(Record):
    """A result with content, or with the child run whose answer it is."""

    def read(self, node: Node, at: str) -> dict[str, Any]:
        """The values; content may be left out where a child run is named."""
        named = {name for name, _ in node.items()}
        if "child_run" in named and "content" not in named:
            return Record(*(m for m in self.members.values() if m.name != "content")).read(node, at)
        return super().read(node, at)

    def schema(self) -> Schema:
        """As a record, content not being required of every result."""
        schema = super().schema()
        return {**schema, "required": [name for name in schema["required"] if name != "content"]}


TOOL_RESULTS = Record(
    Member(
        "results",
        ListOf(
            _Result(
                Member("call_id", AnyText(), required=True, note="As the request showed it."),
                Member(
                    "content",
                    ResultContent(),
                    required=True,
                    note="Left out where `child_run` is given.",
                ),
                Member(
                    "child_run",
                    Identifier(),
                    note="A finished child run: its answer is the result.",
                ),
                Member("is_error", Flag()),
                Member("trust", Text(), note="Left out: EXTERNAL_UNTRUSTED."),
                _RETAIN,
                Member("operation_id", Text()),
                spec=ToolResult,
            ),
            least=1,
        ),
        required=True,
    ),
    _ASSEMBLE,
    spec=TakeToolResults,
)
INPUT = Record(Member("message", Message(), required=True), _RETAIN, _ASSEMBLE, spec=TakeInput)

RESULTS_TAKEN = Component(
    "ResultsTaken",
    record(
        {
            "next": {"type": "string", "enum": ["assemble", "tools"]},
            "open_calls": {**listed(TEXT), "description": "Calls that still wait for a result."},
            **FOLLOW_UP_FIELDS,
        },
        optional=tuple(FOLLOW_UP_FIELDS),
    ),
    FOLLOW_UP_PARTS,
)


class Reported(NamedTuple, Generic[SpecT]):
    """What was reported, and whether the next request is wanted with the answer."""

    spec: SpecT
    assemble: bool


class ReportWrite(JsonWrite[Reported[SpecT]]):
    """What the writes of this module share: their answers."""

    def follow(self, actor: Actor, spec: Reported[SpecT], done: Done) -> Done:
        """The next request, where it was asked for and no call waits."""
        return followed(actor, done, done.resource["run"]) if done.resource["follow"] else done

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The same answer."""
        taken = ResultsTaken(next=resource["next"], open_calls=list(resource["open_calls"]))
        return followed_again(actor, _taken_json(taken), resource)


class TakeToolResultsWrite(ReportWrite[TakeToolResults]):
    """`POST runs/{run}/tool-results`."""

    def parse(self, body: Node) -> Reported[TakeToolResults]:
        """The results."""
        values = TOOL_RESULTS.read(body, "")
        assemble = values.pop("assemble", False)
        return Reported(build(TakeToolResults, values), assemble)

    def perform(
        self, actor: Actor, spec: Reported[TakeToolResults], ids: Mapping[str, Any]
    ) -> Done:
        """Append them all, or none."""
        taken = take_tool_results(actor=actor, run_id=ids["run"], spec=spec.spec)
        return _done(ids["run"], taken, assemble=spec.assemble)


class TakeInputWrite(ReportWrite[TakeInput]):
    """`POST runs/{run}/input`."""

    def parse(self, body: Node) -> Reported[TakeInput]:
        """The late message."""
        values = INPUT.read(body, "")
        assemble = values.pop("assemble", False)
        return Reported(build(TakeInput, values), assemble)

    def perform(self, actor: Actor, spec: Reported[TakeInput], ids: Mapping[str, Any]) -> Done:
        """Append it to the open run."""
        taken = take_input(actor=actor, run_id=ids["run"], spec=spec.spec)
        return _done(ids["run"], taken, assemble=spec.assemble)


class ToolResultsView(WriteView):
    """Results of a run's calls."""

    write = TakeToolResultsWrite()
    operations: ClassVar[Operations] = {
        "POST": Operation(
            id="take_tool_results",
            summary="Report results of tool calls",
            tag="runs",
            answer=RESULTS_TAKEN,
            answer_note="Whether calls still wait.",
            body=TOOL_RESULTS,
            problems=(
                "unknown_call",
                "child_running",
                "not_a_child",
                "trust_above_ceiling",
                "invalid_content",
                "run_ended",
                "stale_head",
            ),
        )
    }


class InputView(WriteView):
    """Messages that reach an open run."""

    write = TakeInputWrite()
    operations: ClassVar[Operations] = {
        "POST": Operation(
            id="take_input",
            summary="Add a user message to an open run",
            tag="runs",
            answer=RESULTS_TAKEN,
            answer_note="Whether calls still wait.",
            body=INPUT,
            problems=("invalid_content", "run_ended", "stale_head"),
        )
    }


def _done(run: Any, taken: ResultsTaken, *, assemble: bool) -> Done:
    resource = {
        "run": str(run),
        "next": taken.next,
        "open_calls": taken.open_calls,
        "follow": assemble and taken.next == "assemble",
    }
    return Done(resource, _taken_json(taken))


def _taken_json(taken: ResultsTaken) -> bytes:
    return joined({"next": to_json(taken.next), "open_calls": to_json(taken.open_calls)})
