"""How Anthropic words a breach of each of the engine's rules (providers.md 2.1, 2.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctxengine.engine.wire.rules import Violation
from ctxengine.providers.strict_local.exchange import Json, object_of, objects, text_of
from ctxengine.providers.strict_local.refusal import Refusal
from ctxengine.providers.strict_local.rules import Wording, at, dotted, members, message_of

_Found = Sequence[Violation]


def _unanswered(found: _Found, body: Json) -> Refusal:
    where = message_of(found[0].path)
    same = [violation for violation in found if message_of(violation.path) == where]
    return Refusal(
        f"{where}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{members(same, body, 'id')}. Each `tool_use` block must have a corresponding "
        "`tool_result` block in the next message."
    )


def _orphan(found: _Found, body: Json) -> Refusal:
    return Refusal(
        f"{dotted(found[0].path)}: unexpected `tool_use_id` found in `tool_result` blocks: "
        f"{members(found[:1], body, 'tool_use_id')}. Each `tool_result` block must have a "
        "corresponding `tool_use` block in the previous message."
    )


def _twice(found: _Found, body: Json) -> Refusal:
    return Refusal(
        f"{dotted(found[0].path)}: each tool_use must have a single result. Found multiple "
        f"`tool_result` blocks with id: {members(found[:1], body, 'tool_use_id')}"
    )


def _same_id(found: _Found, body: Json) -> Refusal:
    return Refusal(f"{dotted(found[0].path)}: `tool_use` ids must be unique")


def _id_pattern(found: _Found, body: Json) -> Refusal:
    path = found[0].path
    kind = at(body, path.removesuffix(".id")).get("type")
    pattern = "^srvtoolu_[a-zA-Z0-9_]+$" if kind == "server_tool_use" else "^[a-zA-Z0-9_-]+$"
    where = dotted(path.removesuffix(".id"))
    return Refusal(f"{where}.{kind}.id: String should match pattern '{pattern}'")


def _name_pattern(found: _Found, _body: Json) -> Refusal:
    path = dotted(found[0].path)
    path = path.replace(".name", ".custom.name" if path.startswith("tools") else ".tool_use.name")
    return Refusal(f"{path}: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")


def _lone_server_result(found: _Found, body: Json) -> Refusal:
    return Refusal(
        f"{dotted(found[0].path)}: unexpected `tool_use_id` found in the result of a server tool: "
        f"{members(found[:1], body, 'tool_use_id')}. Its `server_tool_use` block must stand before it."
    )


def _server_answered(found: _Found, body: Json) -> Refusal:
    return Refusal(
        f"{dotted(found[0].path)}: unexpected `tool_use_id` found in `tool_result` blocks: "
        f"{members(found[:1], body, 'tool_use_id')}. Results of server tools are not sent by the "
        "client."
    )


def _open_server_turn(found: _Found, _body: Json) -> Refusal:
    return Refusal(
        f"{message_of(found[0].path)}: a server tool is still running; only `tool_result` blocks "
        "may follow it"
    )


def _results_late(found: _Found, body: Json) -> Refusal:
    number = int(message_of(found[0].path).rpartition(".")[2])
    return Refusal(
        f"messages.{number - 1}: `tool_use` ids were found without `tool_result` blocks "
        f"immediately after: {members(found, body, 'tool_use_id')}. Each `tool_use` block must "
        "have a corresponding `tool_result` block in the next message."
    )


def _empty_text(found: _Found, body: Json) -> Refusal:
    blank = members(found[:1], body, "text")
    if blank:
        return Refusal(
            f"{message_of(found[0].path)}: text content blocks must contain non-whitespace text"
        )
    return Refusal(f"{message_of(found[0].path)}: text content blocks must be non-empty")


def _empty_message(found: _Found, _body: Json) -> Refusal:
    return Refusal(
        f"{message_of(found[0].path)}: all messages must have non-empty content except for the "
        "optional final assistant message"
    )


def _ends_with_assistant(found: _Found, _body: Json) -> Refusal:
    if "white space" in found[0].message:
        return Refusal("messages: final assistant content cannot end with trailing whitespace")
    return Refusal(
        "This model does not support assistant message prefill. The conversation must end with a "
        "user message."
    )


def _markers(found: _Found, _body: Json) -> Refusal:
    return Refusal(
        f"A maximum of 4 blocks with cache_control may be provided. Found {4 + len(found)}."
    )


def _marker_lives(found: _Found, _body: Json) -> Refusal:
    return Refusal(
        f"{dotted(found[0].path)}.cache_control.ttl: a ttl='1h' cache_control block must not come "
        "after a ttl='5m' cache_control block. Note that blocks are processed in the following "
        "order: `tools`, `system`, `messages`."
    )


def _marker_place(found: _Found, body: Json) -> Refusal:
    path = dotted(found[0].path)
    if found[0].path.startswith("$.tools"):
        return Refusal(f"{path}: cache_control cannot be set on a tool with defer_loading=true")
    kind = at(body, found[0].path).get("type")
    return Refusal(f"{path}.{kind}.cache_control: Extra inputs are not permitted")


def _reference(found: _Found, body: Json) -> Refusal:
    content = at(body, found[0].path).get("content")
    inner = object_of(content).get("tool_references") if isinstance(content, dict) else content
    declared = {tool.get("name") for tool in objects(body.get("tools"))}
    names = [text_of(entry.get("tool_name")) for entry in objects(inner)]
    gone = next(name for name in names if name not in declared)
    return Refusal(f"{dotted(found[0].path)}: Tool reference '{gone}' not found in available tools")


def _said(text: str) -> Wording:
    """A wording that names the place in front of fixed words."""
    return lambda found, _body: Refusal(f"{dotted(found[0].path)}{text}")


def _fixed(text: str) -> Wording:
    return lambda _found, _body: Refusal(text)


WORDINGS: Mapping[str, Wording] = {
    "anthropic.body.json": _fixed("The request body is not valid JSON"),
    "anthropic.body.surrogates": _fixed(
        "The request body is not valid JSON: no low surrogate in string"
    ),
    "anthropic.pairs.next": _unanswered,
    "anthropic.pairs.orphan": _orphan,
    "anthropic.pairs.single": _twice,
    "anthropic.ids.unique": _same_id,
    "anthropic.ids.pattern": _id_pattern,
    "anthropic.server.answered": _server_answered,
    "anthropic.server.open_turn": _open_server_turn,
    "anthropic.server.lone_result": _lone_server_result,
    "anthropic.tools.name": _name_pattern,
    "anthropic.tools.unique": _fixed("tools: Tool names must be unique."),
    "anthropic.tools.prompt": _fixed("At least one tool must have defer_loading=false"),
    "anthropic.tools.references": _reference,
    "anthropic.text.empty": _empty_text,
    "anthropic.message.empty": _empty_message,
    "anthropic.first.user": _fixed('messages: first message must use the "user" role'),
    "anthropic.last.user": _ends_with_assistant,
    "anthropic.results.first": _results_late,
    "anthropic.markers.count": _markers,
    "anthropic.markers.lives": _marker_lives,
    "anthropic.markers.place": _marker_place,
    "anthropic.arguments.object": lambda found, _body: Refusal(
        f"{dotted(found[0].path).removesuffix('.input')}.tool_use.input: Input should be a valid "
        "dictionary"
    ),
    "anthropic.thinking.signed": _said(".thinking.signature: Field required"),
}
"""One wording for each of the engine's rules for this API."""
