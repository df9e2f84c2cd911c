"""How OpenAI words a breach of each of the engine's rules, for both of its APIs (providers.md 2.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctxengine.engine.wire.rules import Violation
from ctxengine.providers.strict_local.exchange import Json, object_of, text_of
from ctxengine.providers.strict_local.refusal import Refusal
from ctxengine.providers.strict_local.rules import Wording, at, bracketed

_Found = Sequence[Violation]
_NAME_PATTERN = "^[a-zA-Z0-9_-]+$"
_ROLES = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'"
_RESPONSES_ROLES = "'assistant', 'system', 'developer', and 'user'"


def _unanswered(found: _Found, body: Json) -> Refusal:
    same = [violation for violation in found if violation.path == found[0].path]
    ids = ", ".join(violation.message.split("'")[1] for violation in same)
    return Refusal(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to "
        "each 'tool_call_id'. The following tool_call_ids did not have response messages: " + ids,
        param=bracketed(found[0].path),
    )


def _orphan(found: _Found, _body: Json) -> Refusal:
    return Refusal(
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "  # codespell:ignore
        "with 'tool_calls'.",
        param=bracketed(found[0].path) + ".role",
    )


def _output_missing(found: _Found, body: Json) -> Refusal:
    call_id = object_of(at(body, found[0].path)).get("call_id")
    return Refusal(f"No tool output found for function call {call_id}.", param="input")


def _output_orphan(found: _Found, body: Json) -> Refusal:
    call_id = object_of(at(body, found[0].path)).get("call_id")
    return Refusal(
        f"No tool call found for function call output with call_id {call_id}.", param="input"
    )


def pattern(path: str, wanted: str = _NAME_PATTERN) -> Refusal:
    """A string of the wrong characters."""
    return Refusal(
        f"Invalid '{path}': string does not match pattern. Expected a string that matches the "
        f"pattern '{wanted}'.",
        param=path,
        code="invalid_value",
    )


def too_long(path: str, limit: int, length: int) -> Refusal:
    """A string of too many characters."""
    return Refusal(
        f"Invalid '{path}': string too long. Expected a string with maximum length {limit}, but "
        f"got a string with length {length} instead.",
        param=path,
        code="string_above_max_length",
    )


def _limited(limit: int) -> Wording:
    """For names and ids that are either too long or of the wrong characters."""

    def word(found: _Found, body: Json) -> Refusal:
        path = found[0].path
        value = at(body, path)
        value = value.get("name") if isinstance(value, dict) else value
        shown = bracketed(path) + (".name" if path.endswith(".function") else "")
        if len(text_of(value)) > limit:
            return too_long(shown, limit, len(text_of(value)))
        return pattern(shown)

    return word


def _sizes(found: _Found, body: Json) -> Refusal:
    holder = object_of(at(body, found[0].path))
    limits = {"output": 10_485_760, "image_url": 20_971_520, "file_data": 73_400_320}
    for key, limit in limits.items():
        length = len(text_of(holder.get(key)))
        if length > limit:
            return too_long(f"{bracketed(found[0].path)}.{key}", limit, length)
    return Refusal(found[0].message, param="input")


def _followed(found: _Found, body: Json) -> Refusal:
    item_id = object_of(at(body, found[0].path)).get("id")
    return Refusal(
        f"Item '{item_id}' of type 'reasoning' was provided without its required following item.",
        param="input",
    )


def missing(path: str) -> Refusal:
    """A parameter that must be there."""
    return Refusal(
        f"Missing required parameter: '{path}'.", param=path, code="missing_required_parameter"
    )


def wrong_value(path: str, value: object, supported: str) -> Refusal:
    """A value outside a closed set."""
    return Refusal(
        f"Invalid value: '{value}'. Supported values are: {supported}.",
        param=path,
        code="invalid_value",
    )


def _role(supported: str) -> Wording:
    def word(found: _Found, body: Json) -> Refusal:
        return wrong_value(bracketed(found[0].path), at(body, found[0].path), supported)

    return word


def _tool_text(found: _Found, body: Json) -> Refusal:
    part, path = object_of(at(body, found[0].path)), bracketed(found[0].path)
    if part.get("type") == "image_url":
        message = path.split(".content")[0]
        return Refusal(
            f"Invalid '{message}'. Image URLs are only allowed for messages with role 'user', but "
            "this message with role 'tool' contains an image URL.",
            param=message,
            code="invalid_value",
        )
    return wrong_value(path, part.get("type", "null"), "'text'")


def _tool_count(_found: _Found, body: Json) -> Refusal:
    return Refusal(
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an "
        f"array with length {len(body['tools'])} instead.",
        param="tools",
        code="array_above_max_length",
    )


def _tools_served(_found: _Found, body: Json) -> Refusal:
    return Refusal(
        f"Function tools are not supported with {body.get('model')} in /v1/chat/completions. "
        "Please use /v1/responses instead.",
        param="tools",
    )


def _twice(found: _Found, _body: Json) -> Refusal:
    return Refusal(f"Duplicate value. {found[0].message}", param=bracketed(found[0].path))


def _no_json(_found: _Found, _body: Json) -> Refusal:
    return Refusal(
        "We could not parse the JSON body of your request. (HINT: This likely means you aren't "
        "using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was "
        "sent was not valid JSON.)"
    )


def _arguments(found: _Found, _body: Json) -> Refusal:
    path = bracketed(found[0].path)
    return Refusal(
        f"Invalid '{path}': expected a string that holds a JSON object.",
        param=path,
        code="invalid_value",
    )


CHAT: Mapping[str, Wording] = {
    "openai.body.json": _no_json,
    "openai.body.surrogates": _no_json,
    "openai.pairs.next": _unanswered,
    "openai.pairs.orphan": _orphan,
    "openai.pairs.single": _orphan,
    "openai.ids.pattern": _limited(40),
    "openai.tools.name": _limited(64),
    "openai.tools.unique": _twice,
    "openai.tools.count": _tool_count,
    "openai.tools.served": _tools_served,
    "openai.results.text": _tool_text,
    "openai.message.empty": lambda found, _body: Refusal(
        f"Invalid value for 'content': expected a string, got null. ({bracketed(found[0].path)})",
        param=bracketed(found[0].path) + ".content",
    ),
    "openai.arguments.object": _arguments,
    "openai.message.role": _role(_ROLES),
}
"""Chat Completions: one wording for each of the engine's rules that the API has."""

RESPONSES: Mapping[str, Wording] = {
    "openai-responses.body.json": _no_json,
    "openai-responses.body.surrogates": _no_json,
    "openai-responses.pairs.missing": _output_missing,
    "openai-responses.pairs.orphan": _output_orphan,
    "openai-responses.pairs.single": _twice,
    "openai-responses.ids.unique": _twice,
    "openai-responses.ids.length": _limited(64),
    "openai-responses.tools.name": _limited(128),
    "openai-responses.tools.unique": _twice,
    "openai-responses.tools.search": lambda _found, _body: Refusal(
        "Deferred tools require tools.tool_search", param="tools"
    ),
    "openai-responses.sizes": _sizes,
    "openai-responses.reasoning.followed": _followed,
    "openai-responses.reasoning.summary": lambda found, _body: missing(
        bracketed(found[0].path) + ".summary"
    ),
    "openai-responses.message.empty": lambda found, _body: missing(
        bracketed(found[0].path) + ".content"
    ),
    "openai-responses.arguments.object": _arguments,
    "openai-responses.message.role": _role(_RESPONSES_ROLES),
    "openai-responses.state.once": lambda _found, _body: Refusal(
        "Mutually exclusive parameters. Ensure you are only providing one of: "
        "'previous_response_id' or 'conversation'.",
        param="previous_response_id",
        code="mutually_exclusive_parameters",
    ),
}
"""Responses: one wording for each of the engine's rules that the API has."""
