"""An agent on OpenAI's Chat Completions API, with the official SDK.

    python -m examples.openai_chat_agent --engine-key KEY [--engine-url URL] [--provider-url URL] [--turns N] [--thinking]

This API keeps its reasoning to itself: only the effort can be chosen. Where reasoning is to be carried from step to step, use
the Responses API.
"""

from __future__ import annotations

from typing import Any

import openai

from examples.command import run_agent
from examples.engine import ModelRefused


class ChatModel:
    """A GPT behind Chat Completions."""

    provider = "openai"

    def __init__(
        self, *, name: str = "", base_url: str = "", api_key: str = "", thinking: bool = False
    ) -> None:
        self.name = name or "gpt-5.6-terra"
        # Retries are the loop's: the engine wants to know of every refusal.
        self._client = openai.OpenAI(
            base_url=base_url or None, api_key=api_key or None, max_retries=0
        )
        self._thinking = thinking

    def ask(self, request: dict[str, Any]) -> str:
        """Send the request as it is; effort is the runtime's own setting and must not change within a session."""
        settings: dict[str, Any] = {"reasoning_effort": "medium"} if self._thinking else {}
        try:
            answer = self._client.chat.completions.with_raw_response.create(**request, **settings)
        except openai.APIStatusError as error:
            after = error.response.headers.get("retry-after")
            raise ModelRefused(
                error.status_code, error.response.text, float(after) if after else None
            ) from error
        except openai.APIConnectionError as error:
            raise ModelRefused(503, str(error)) from error
        return answer.http_response.text

    def close(self) -> None:
        """Hang up."""
        self._client.close()


if __name__ == "__main__":
    raise SystemExit(run_agent(ChatModel, __doc__))
