"""Calls, results and tools in the events of OpenHands' SDK, in the forms that its versions gave them."""

from __future__ import annotations

from dataclasses import dataclass

from ctxengine.engine.content.media import standard_base64
from ctxengine.engine.importers.dialect import extra_of, gist, object_at, text_at
from ctxengine.engine.importers.loose_parts import Said, read_parts
from ctxengine.engine.importers.members import first_given, id_at
from ctxengine.engine.importers.transcript import ForeignTool
from ctxengine.engine.lexeme import Node, NodeKind, parse

_SHOWN = ("content", "output", "error")
"""Members of an observation that say something to the model, whichever its version has."""
_MESSAGE = "message"
"""What some observations say in the place of those; beside them it is a second telling."""
_SCREEN = "screenshot_data"
_READ = frozenset(("kind", "is_error", _MESSAGE, _SCREEN, *_SHOWN))


@dataclass(slots=True)
class Observed:
    """What came of a call."""

    said: Said
    failed: bool
    unread: str = ""
    """JSON text of an observation that says nothing in a member known here; it stands for the result."""
    beside: bool = False
    """Whether there are facts beside what the model was shown."""


def read_call(said: Said, event: Node) -> None:
    """The call of an action: flat, as litellm nests it, or from the event's own members where there is none."""
    call = object_at(event, "tool_call")
    function = object_at(call, "function") or call
    name = text_at(function, "name") or text_at(event, "tool_name")
    action = object_at(event, "action")
    if name is not None:
        arguments = first_given(function, "arguments", "input")
        if arguments is None and action is not None:
            arguments = parse(extra_of(action, frozenset(("kind",))) or "{}")
        said.pieces.call(id_of_call(event), name, arguments)
    elif (unnamed := call or action) is not None:
        said.unreadable.append(unnamed)


def id_of_call(event: Node) -> str | None:
    """The id of an action's call."""
    return id_at(object_at(event, "tool_call"), "id") or id_at(event, "tool_call_id")


def read_observed(event: Node) -> Observed:
    """The result that an event tells: of the tool, of an error, or of the user's refusal."""
    said = Said("tool")
    observation = first_given(event, "observation")
    is_error = first_given(observation, "is_error")
    failed = observation is None or (is_error is not None and is_error.kind is NodeKind.TRUE)
    known: set[str] = set()
    for name in _SHOWN:
        _show(said, known, first_given(observation, name))
    if observation is not None and observation.kind is not NodeKind.OBJECT:
        _show(said, known, observation)
    if not known:
        _show(said, known, first_given(observation, _MESSAGE))
    for holder in (observation, event):
        error = first_given(holder, "error")
        failed = failed or (error is not None and _tells(error))
    for name in ("error", "rejection_reason"):
        _show(said, known, first_given(event, name))
    screen = standard_base64(text_at(observation, _SCREEN) or "")
    if screen:
        said.pieces.media("image", "image/png", screen, None)
    return _with_rest(Observed(said, failed), observation)


def read_tool(node: Node) -> ForeignTool | None:
    """A tool that the system prompt's event declares; None where it has no name."""
    function = object_at(node, "function") or node
    name = text_at(function, "name")
    schema = object_at(function, "parameters") or object_at(function, "input_schema")
    if name is None:
        return None
    return ForeignTool(
        name=name,
        description=text_at(function, "description") or "",
        input_schema=schema.raw if schema is not None else '{"type":"object"}',
    )


def _tells(error: Node) -> bool:
    """Whether an error is one: a word, or a flag that is set."""
    return bool(error.text()) if error.kind is NodeKind.STRING else error.kind is not NodeKind.FALSE


def _show(said: Said, known: set[str], told: Node | None) -> None:
    """Take what a member says, once; a flag says nothing."""
    if told is None or told.kind not in (NodeKind.STRING, NodeKind.ARRAY, NodeKind.OBJECT):
        return
    words = gist(told.text() or "") if told.kind is NodeKind.STRING else told.raw
    if not words or words in known:
        return
    known.add(words)
    if told.kind is NodeKind.ARRAY:
        read_parts(said, told)
        known.update(gist(text) for part in told if (text := text_at(part, "text")))
    elif told.kind is NodeKind.STRING or text_at(told, "type") is not None:
        read_parts(said, [told])
    else:
        said.pieces.text(told)


def _with_rest(observed: Observed, observation: Node | None) -> Observed:
    """Account for members of an observation that nobody reads."""
    said = observed.said
    rest = extra_of(observation, _READ) if observation is not None else ""
    if said.pieces.blocks or said.results or said.unreadable:
        observed.beside = bool(rest)
    elif observation is not None and any(
        _is_said(node) for name, node in observation.items() if name not in _READ
    ):
        observed.unread = rest
        said.pieces.plain(rest)
    return observed


def _is_said(node: Node) -> bool:
    return node.raw not in ("null", '""', "[]", "{}")
