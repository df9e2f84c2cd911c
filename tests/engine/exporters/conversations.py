"""Conversations of any content, written as Chat and as Messages bodies by a second, simpler hand than the product's."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hypothesis import strategies as st

TEXTS = st.text(
    alphabet=st.one_of(
        st.sampled_from('ab \n"\\{}[]<>&\0\u2028😀\ud83d\udc00ж'),
        st.characters(codec=None),
    ),
    max_size=24,
).filter(str.strip)
ARGUMENTS = st.one_of(
    st.sampled_from(
        [
            "{}",
            '{"b":1.0,"a":1}',
            '{"n":123456789012345678901234567890,"x":1e-7}',
            '{"k":1,"k":2}',
            '{ "spaced" : [ 1 , {} ] }',
            '{"half":"\\ud800","nul":"\\u0000"}',
        ]
    ),
    st.dictionaries(TEXTS, TEXTS, max_size=3).map(json.dumps),
)
BROKEN = st.sampled_from(['{"a": tru', "[1,2]", "plain words", '{"a": NaN}', "null"])
NAMES = st.sampled_from(["read_file", "web.fetch", "búsqueda", "a b"])


@dataclass(frozen=True)
class Call:
    name: str
    arguments: str
    result: str
    failed: bool


@dataclass(frozen=True)
class Step:
    said: tuple[str, ...]
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Turn:
    asked: str
    steps: tuple[Step, ...]
    answer: str


def turns(*, broken: bool) -> st.SearchStrategy[list[Turn]]:
    """Conversations; with broken arguments among the calls' or without."""
    arguments = st.one_of(ARGUMENTS, BROKEN) if broken else ARGUMENTS
    calls = st.builds(Call, NAMES, arguments, st.one_of(st.just(""), TEXTS), st.booleans())
    steps = st.builds(
        Step,
        st.lists(TEXTS, max_size=2).map(tuple),
        st.lists(calls, min_size=1, max_size=3).map(tuple),
    )
    return st.lists(
        st.builds(Turn, TEXTS, st.lists(steps, max_size=3).map(tuple), TEXTS),
        min_size=1,
        max_size=4,
    )


def chat_body(conversation: list[Turn]) -> str:
    """As a Chat Completions body; the API marks no failure."""
    messages: list[dict[str, object]] = [{"role": "system", "content": "Be brief."}]
    for number, turn in enumerate(conversation):
        messages.append({"role": "user", "content": turn.asked})
        for place, step in enumerate(turn.steps):
            ids = [f"call_{number}_{place}_{n}" for n in range(len(step.calls))]
            texts = [{"type": "text", "text": text} for text in step.said]
            messages.append(
                {
                    "role": "assistant",
                    "content": texts or None,
                    "tool_calls": [
                        {
                            "id": call_id,
                            "type": "function",
                            "function": {"name": call.name, "arguments": call.arguments},
                        }
                        for call_id, call in zip(ids, step.calls, strict=True)
                    ],
                }
            )
            messages += [
                {"role": "tool", "tool_call_id": call_id, "content": call.result}
                for call_id, call in zip(ids, step.calls, strict=True)
            ]
        messages.append({"role": "assistant", "content": turn.answer})
    return json.dumps({"model": "gpt-5.5", "messages": messages})


def anthropic_body(conversation: list[Turn]) -> str:
    """As a Messages body; arguments stand in it as they are written."""
    messages: list[str] = []
    for number, turn in enumerate(conversation):
        messages.append(f'{{"role":"user","content":{json.dumps(turn.asked)}}}')
        for place, step in enumerate(turn.steps):
            ids = [f"toolu_{number}_{place}_{n}" for n in range(len(step.calls))]
            blocks = [json.dumps({"type": "text", "text": text}) for text in step.said]
            results = []
            for call_id, call in zip(ids, step.calls, strict=True):
                blocks.append(
                    f'{{"type":"tool_use","id":"{call_id}","name":{json.dumps(call.name)},'
                    f'"input":{call.arguments}}}'
                )
                results.append(
                    {
                        "type": "tool_result",
                        "tool_use_id": call_id,
                        "content": call.result,
                        "is_error": call.failed,
                    }
                )
            messages.append(f'{{"role":"assistant","content":[{",".join(blocks)}]}}')
            messages.append(json.dumps({"role": "user", "content": results}))
        messages.append(f'{{"role":"assistant","content":{json.dumps(turn.answer)}}}')
    return (
        '{"model":"claude-sonnet-4-6","system":"Be brief.","messages":[' + ",".join(messages) + "]}"
    )
