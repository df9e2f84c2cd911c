"""VCR cassettes: recorded exchanges in YAML."""

from __future__ import annotations

import json
from typing import Any

import yaml

from ctxengine.engine.importers.aws_events import as_event_stream, is_aws_stream
from ctxengine.engine.importers.errors import NotATranscript
from ctxengine.engine.importers.exchanges import exchanges_of, read_exchanges
from ctxengine.engine.importers.transcript import Transcript
from ctxengine.engine.lexeme import LexemeError, parse

FORMAT = "vcr_yaml_sse"


class _Loader(yaml.CSafeLoader):
    """Plain values only, and dates stay texts."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def looks_like_cassette(head: str) -> bool:
    """Whether a text begins as cassettes do."""
    text = head.lstrip("\ufeff \t\r\n-")
    return text.startswith(("interactions:", "version:")) and "interactions:" in head


def read_text(text: str, *, name: str) -> Transcript:
    """Read a cassette.

    Raises:
        NotATranscript: the text is no YAML, or holds no recorded exchanges.
    """
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=_Loader)):
            # Aliases can make a small file endless, and recorders do not write them.
            raise NotATranscript(
                f"{name} is YAML that refers to itself by aliases; it is not read."
            )
        document = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader with fewer types
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise NotATranscript(f"{name} is no YAML that can be read: {_brief(error)}") from error
    interactions = document.get("interactions") if isinstance(document, dict) else None
    if not isinstance(interactions, list):
        raise NotATranscript(f"{name} is YAML but no cassette: it holds no list of interactions.")
    records = [_record(interaction) for interaction in interactions]
    try:
        root = parse(json.dumps({"exchanges": records}, default=str))
    except (LexemeError, ValueError, RecursionError) as error:
        raise NotATranscript(f"{name} cannot be read: {_brief(error)}") from error
    transcript = read_exchanges(exchanges_of(root))
    transcript.format = FORMAT
    return transcript


def _record(interaction: Any) -> dict[str, Any]:
    request = _object(interaction, "request")
    response = _object(interaction, "response")
    status = response.get("status")
    return {
        "method": request.get("method"),
        "uri": request.get("uri"),
        "request": _body(request),
        "response": _body(response),
        "status": status.get("code") if isinstance(status, dict) else status,
        "recorded_at": interaction.get("recorded_at") if isinstance(interaction, dict) else None,
    }


def _body(side: dict[str, Any]) -> Any:
    """A body the recorder parsed, or its text."""
    if "parsed_body" in side:
        return side["parsed_body"]
    body = side.get("body")
    text = body.get("string") if isinstance(body, dict) else body
    if not isinstance(text, bytes):
        return text
    return as_event_stream(text) if is_aws_stream(text) else text.decode("utf-8", "replace")


def _object(value: Any, key: str) -> dict[str, Any]:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _brief(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
