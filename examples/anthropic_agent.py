"""An agent on Anthropic's Messages API, with the official SDK.

    python -m examples.anthropic_agent --engine-key KEY [--engine-url URL] [--provider-url URL] [--turns N] [--thinking]

Thinking blocks need no care here: the answer goes to the engine as it came, and the engine puts them back byte for byte while
their run is open.
"""

from __future__ import annotations

from typing import Any

import anthropic

from examples.command import run_agent
from examples.engine import ModelRefused


class Claude:
    """Claude, asked through the SDK."""

    provider = "anthropic"

    def __init__(
        self, *, name: str = "", base_url: str = "", api_key: str = "", thinking: bool = False
    ) -> None:
        self.name = name or "claude-sonnet-4-6"
        # Retries are the loop's: the engine wants to know of every refusal.
        self._client = anthropic.Anthropic(
            base_url=base_url or None, api_key=api_key or None, max_retries=0
        )
        self._thinking = thinking
        self._previous: str | None = None

    def ask(self, request: dict[str, Any]) -> str:
        """Send the request as it is; thinking and cache diagnostics are the runtime's own settings."""
        settings: dict[str, Any] = {"diagnostics": {"previous_message_id": self._previous}}
        if self._thinking:
            settings["thinking"] = {"type": "adaptive"}
        try:
            answer = self._client.messages.with_raw_response.create(**request, **settings)
        except anthropic.APIStatusError as error:
            after = error.response.headers.get("retry-after")
            raise ModelRefused(
                error.status_code, error.response.text, float(after) if after else None
            ) from error
        except anthropic.APIConnectionError as error:
            raise ModelRefused(503, str(error)) from error
        self._previous = answer.parse().id
        return answer.http_response.text

    def close(self) -> None:
        """Hang up."""
        self._client.close()


if __name__ == "__main__":
    raise SystemExit(run_agent(Claude, __doc__))
