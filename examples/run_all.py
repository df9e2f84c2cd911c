"""Everything that the examples need, started and stopped: an instance, the strict local provider, then all three agents.

    python -m examples.run_all [--turns 8] [--thinking] [--trouble]

No key and no network: the provider's answers are scripted, and it refuses what the real ones do. Ends non-zero when an agent
met an error that it could not recover from, or a recorded request could not be proven. With `--trouble` each agent meets an
overload (529) and a refusal as too long on its way.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2

from examples.anthropic_agent import Claude
from examples.command import INSTRUCTIONS, table
from examples.engine import Agent, Engine, EngineRefused, Model, Tally, converse
from examples.openai_chat_agent import ChatModel
from examples.openai_responses_agent import ResponsesModel

ROOT = Path(__file__).resolve().parents[1]
_STOP_SECONDS = 30
_TOO_LONG = {
    "anthropic": "prompt is too long: 213462 tokens > 200000 maximum",
    "openai": "This model's maximum context length is 200000 tokens. However, your messages resulted in 213462 tokens.",
    "openai-responses": "Your input exceeds the context window of this model. Please adjust your input and try again.",
}


def main() -> int:
    """Run all three."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--thinking", action="store_true")
    parser.add_argument("--trouble", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ctxengine-examples-") as folder:
        # The database's account must be able to pass through.
        Path(folder).chmod(0o711)
        with provider() as provider_url, instance(folder) as (url, key):
            return run_all(
                url, key, provider_url, args.turns, thinking=args.thinking, trouble=args.trouble
            )


def run_all(
    url: str,
    key: str,
    provider_url: str,
    turns: int,
    *,
    thinking: bool = False,
    trouble: bool = False,
) -> int:
    """Hold the three conversations and print the table; 0 when all went through and every request was proven."""
    openai_url = f"{provider_url}/v1"
    models: list[Model] = [
        Claude(base_url=provider_url, api_key="local", thinking=thinking),
        ChatModel(base_url=openai_url, api_key="local", thinking=thinking),
        ResponsesModel(base_url=openai_url, api_key="local", thinking=thinking),
    ]
    lines: list[tuple[str, Tally]] = []
    failed = False
    for model in models:
        try:
            with closing(model), Engine(url, key) as engine:
                agent = Agent(engine, model, instructions=INSTRUCTIONS)
                tally = converse(agent, turns, Trouble(provider_url, model) if trouble else None)
        except (EngineRefused, RuntimeError) as error:
            print(f"{model.provider}: {type(error).__name__}: {error}")
            failed = True
            continue
        lines.append((model.provider, tally))
        failed = failed or tally.unproven > 0
    print(table(lines))
    return int(failed)


class Trouble:
    """Tells the strict provider to overload before the third turn and to refuse as too long before the fifth."""

    def __init__(self, provider_url: str, model: Model) -> None:
        self._script = f"{provider_url}/_strict/script"
        self._words = _TOO_LONG[model.provider]

    def __call__(self, turn: int) -> None:
        """Queue what the turn shall meet."""
        replies = {
            3: {"status": 529, "retry_after": 0.1},
            5: {"status": 400, "message": self._words},
        }
        if turn in replies:
            httpx2.post(self._script, json={"replies": [replies[turn]]}).raise_for_status()


@contextmanager
def instance(folder: str) -> Iterator[tuple[str, str]]:
    """A whole instance on a data folder of its own; gives its address and an API key."""
    options = ["--json", "--port", "0", "--no-samples", "--data", folder]
    with _started(["up", *options]) as line:
        ready = json.loads(line)
        yield ready["url"], ready["api_key"]


@contextmanager
def provider() -> Iterator[str]:
    """The strict local provider; gives its address."""
    with _started(["strict_provider", "--port", "0"]) as line:
        yield line.split(" at ", 1)[1].split(" ", 1)[0]


@contextmanager
def _started(command: list[str]) -> Iterator[str]:
    child = subprocess.Popen(
        [sys.executable, "manage.py", *command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        line = child.stdout.readline() if child.stdout else ""
        if not line:
            raise SystemExit(
                f"manage.py {command[0]} ended before it was ready; run it by hand to see why."
            )
        yield line
    finally:
        child.terminate()
        try:
            child.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()


if __name__ == "__main__":
    raise SystemExit(main())
