"""Gate: hash-seed independence. One plan identity across processes, whatever order sets, servers and keys come in."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gate

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import json, sys
from ctxengine.engine.plan.plan import PinnedTool, wire_prefix
from ctxengine.engine.plan.planner import PlanRequest, resolve_plan
from ctxengine.engine.plan.schema import provider_schema
from ctxengine.engine.tokens.counter import counter_for
from ctxengine.engine.wire.registry import renderer_for

given = json.loads(sys.argv[1])
tools = [
    PinnedTool(
        name=tool["name"],
        wire_name="",
        description=tool["description"],
        input_schema=provider_schema(tool["schema"]),
        required_scopes=tuple(sorted(set(tool["scopes"]))),
        serves=tuple(sorted(set(tool["serves"]))),
        server=tool["server"],
    )
    for tool in given["tools"]
]
out = {}
for provider, model in (("anthropic", "claude-sonnet-4-6"), ("openai", "gpt-5.4"), ("openai-responses", "gpt-5.4")):
    renderer = renderer_for(provider)
    plan = resolve_plan(
        PlanRequest(
            engine="suffix", provider=provider, model=model, window=200_000, max_output=8_000, instructions="Work.",
            tools=tools, scopes=tuple({scope for scope in given["scopes"]}),
        ),
        counter=counter_for(provider, model), renderer=renderer, nonce_key=bytes(32),
    )
    out[provider] = [plan.prefix_sha256, plan.wire_prefix_sha256, plan.prefix_tokens, plan.row_counts,
                     renderer.prefix_bytes(wire_prefix(plan, bytes(32))).decode()]
print(json.dumps(out))
"""

SCHEMAS = [
    '{"type":"object","properties":{"b":{"type":"string","enum":["low","high"]},"a":{"type":"integer"}},'
    '"required":["b","a"]}',
    '{"required":["b","a"],"properties":{"a":{"type":"integer"},"b":{"enum":["low","high"],"type":"string"}},'
    '"type":"object"}',
]


def tools(schema: str) -> list[dict[str, object]]:
    return [
        {
            "name": name,
            "description": f"Does {name}.",
            "schema": schema,
            "scopes": ["s1", "s2", "s3"],
            "serves": ["mail", "files"],
            "server": server,
        }
        for name, server in (
            ("mail.send", "b"), ("mail_send", "a"), ("read", "c"), ("ein Name", "a"), ("x" * 90, "b"),
        )
    ]  # fmt: skip


def in_a_process(seed: str, given: dict[str, object]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(given)],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def shuffled() -> list[tuple[str, dict[str, object]]]:
    """(hash seed, declarations): the same tools and scopes, each time in another order and spelling."""
    orders = list(itertools.permutations(range(5)))
    scopes = list(itertools.permutations(["net", "files", "mail"]))
    made = []
    for place, seed in enumerate(("0", "1", "777")):
        declared = tools(SCHEMAS[place % 2])
        declared = [declared[n] for n in orders[place * 37]]
        for entry in declared:
            entry["scopes"] = sorted(["s1", "s2", "s3"], reverse=bool(place % 2))
        made.append((seed, {"tools": declared, "scopes": list(scopes[place * 2])}))
    return made


def test_shuffled_tools_scopes_and_keys_give_one_plan_in_every_process() -> None:
    assert len({in_a_process(seed, given) for seed, given in shuffled()}) == 1
