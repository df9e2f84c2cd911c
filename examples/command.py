"""Command lines of the example agents, and the table they print."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from contextlib import closing

from examples.engine import Agent, Engine, EngineRefused, Model, Tally, converse

INSTRUCTIONS = (
    "You are a travel desk. Look things up with your tools before you answer, and answer in one or two sentences. "
    "Say plainly when a tool failed."
)


def run_agent(make: Callable[..., Model], about: str | None) -> int:
    """Read the options, hold the conversation, print what it came to; 1 on any refusal that was not recovered from."""
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    parser.add_argument("--engine-url", default=os.environ.get("CTX_URL", "http://127.0.0.1:8000"))
    parser.add_argument(
        "--engine-key", default=os.environ.get("CTX_API_KEY", ""), help="or CTX_API_KEY"
    )
    parser.add_argument("--provider-url", default="", help="default: the SDK's own address")
    parser.add_argument("--provider-key", default="", help="default: the SDK's own variable")
    parser.add_argument("--model", default="")
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--thinking", action="store_true", help="reason, and carry the reasoning")
    args = parser.parse_args()
    model = make(
        name=args.model,
        base_url=args.provider_url,
        api_key=args.provider_key,
        thinking=args.thinking,
    )
    try:
        with closing(model), Engine(args.engine_url, args.engine_key) as engine:
            tally = converse(Agent(engine, model, instructions=INSTRUCTIONS), args.turns)
    except (EngineRefused, RuntimeError) as error:
        print(f"{type(error).__name__}: {error}")
        return 1
    print(table([(model.provider, tally)]))
    return int(tally.unproven > 0)


def table(lines: list[tuple[str, Tally]]) -> str:
    """One line for each conversation."""
    head = f"{'api':<18}{'turns':>6}{'requests':>10}{'calls':>7}{'cached':>8}{'epochs':>8}{'proven':>12}  recovered from"
    rows = [head]
    for name, tally in lines:
        cached = 100 * tally.cached_tokens / tally.prompt_tokens if tally.prompt_tokens else 0.0
        proven = f"{tally.proven}/{tally.proven + tally.unproven}"
        refusals = ", ".join(tally.refusals) or "-"
        rows.append(
            f"{name:<18}{tally.turns:>6}{tally.requests:>10}{tally.tool_calls:>7}{cached:>7.1f}%"
            f"{tally.epochs:>8}{proven:>12}  {refusals}"
        )
    return "\n".join(rows)
