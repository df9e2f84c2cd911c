"""An agent on OpenAI's Responses API, with the official SDK.

    python -m examples.openai_responses_agent --engine-key KEY [--engine-url URL] [--provider-url URL] [--turns N] [--thinking]

The engine keeps the window, so nothing is stored at the provider (`store` is false in its requests). Encrypted reasoning items
come back with the step they belong to while their run is open.
"""

from __future__ import annotations

from typing import Any

import openai

from examples.command import run_agent
from examples.engine import ModelRefused


class ResponsesModel:
    """A GPT behind Responses."""

    provider = "openai-responses"

    def __init__(
        self, *, name: str = "", base_url: str = "", api_key: str = "", thinking: bool = False
    ) -> None:
        self.name = name or "gpt-5.6-terra"
        # Retries are the loop's: the engine wants to know of every refusal.
        self._client = openai.OpenAI(
            base_url=base_url or None, api_key=api_key or None, max_retries=0
        )
        self._thinking = thinking
        self._previous: str | None = None

    def ask(self, request: dict[str, Any]) -> str:
        """Send the request as it is; effort and the comparison for cache diagnostics are the runtime's own settings."""
        settings: dict[str, Any] = {"reasoning": {"effort": "medium"}} if self._thinking else {}
        if self._previous is not None and "prompt_cache_options" in request:
            compared = {"comparison_response_id": self._previous}
            request = request | {"prompt_cache_options": request["prompt_cache_options"] | compared}
        try:
            answer = self._client.responses.with_raw_response.create(**request, **settings)
        except openai.APIStatusError as error:
            after = error.response.headers.get("retry-after")
            raise ModelRefused(
                error.status_code, error.response.text, float(after) if after else None
            ) from error
        except openai.APIConnectionError as error:
            raise ModelRefused(503, str(error)) from error
        self._previous = answer.parse().id
        return answer.http_response.text

    def close(self) -> None:
        """Hang up."""
        self._client.close()


if __name__ == "__main__":
    raise SystemExit(run_agent(ResponsesModel, __doc__))
