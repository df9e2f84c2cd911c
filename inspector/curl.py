"""A recorded request as a shell command. A key is never in it: the command names the variable that holds one."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote


class _Door(NamedTuple):
    """How a provider's public address is called."""

    url: str
    headers: tuple[str, ...]
    model_in_path: bool = False
    """Whether the model stands in the path, and must not stand in the body."""


_BEARER = "Authorization: Bearer ${{{name}:?set it to your key}}"

_DOORS = {
    "anthropic": _Door(
        "https://api.anthropic.com/v1/messages",
        ("x-api-key: ${ANTHROPIC_API_KEY:?set it to your key}", "anthropic-version: 2023-06-01"),
    ),
    "openai": _Door(
        "https://api.openai.com/v1/chat/completions", (_BEARER.format(name="OPENAI_API_KEY"),)
    ),
    "openai-responses": _Door(
        "https://api.openai.com/v1/responses", (_BEARER.format(name="OPENAI_API_KEY"),)
    ),
    "openrouter": _Door(
        "https://openrouter.ai/api/v1/chat/completions",
        (_BEARER.format(name="OPENROUTER_API_KEY"),),
    ),
    "openrouter-responses": _Door(
        "https://openrouter.ai/api/v1/responses", (_BEARER.format(name="OPENROUTER_API_KEY"),)
    ),
    "google": _Door(
        "https://generativelanguage.googleapis.com/v1beta/models/{model}:generateContent",
        ("x-goog-api-key: ${GOOGLE_API_KEY:?set it to your key}",),
        model_in_path=True,
    ),
    "bedrock": _Door(
        "https://bedrock-runtime.${AWS_REGION:-us-east-1}.amazonaws.com/model/{model}/converse",
        (_BEARER.format(name="AWS_BEARER_TOKEN_BEDROCK"),),
        model_in_path=True,
    ),
    "ollama": _Door("${OLLAMA_URL:-http://127.0.0.1:11434}/api/chat", ()),
    "compatible": _Door(
        "${COMPATIBLE_URL:?set it to the server}/chat/completions",
        (_BEARER.format(name="COMPATIBLE_API_KEY"),),
    ),
}


def curl_of(*, provider: str, model: str, body: str, digest: str) -> str:
    """The command, with the body word for word between two lines that no body can hold.

    Args:
        provider: whose API the body is for.
        model: stands in the path of some.
        body: the JSON as it was handed out, on whatever lines it has.
        digest: the request's hash; parts of it end the body, so that content cannot.
    """
    door = _DOORS[provider]
    end = f"END_OF_BODY_{digest[:16]}"
    while end in body:
        end += "_"
    # Percent-encoded, so that a runtime's name for a model is nothing that a shell reads.
    url = door.url.replace("{model}", quote(model, safe=""))
    headers = (*door.headers, "content-type: application/json")
    command = "\n".join(
        [
            f'curl -sS "{url}" \\',
            *(f'  -H "{header}" \\' for header in headers),
            "  --data-binary @-",
        ]
    )
    if door.model_in_path:
        return f"jq -c 'del(.model)' <<'{end}' |\n{body}\n{end}\n{command}\n"
    return f"{command} <<'{end}'\n{body}\n{end}\n"
