"""Conversations that a builder could hand to any renderer."""

from __future__ import annotations

from hypothesis import strategies as st

from ctxengine.engine.wire.base import (
    WireCall,
    WireImage,
    WireMessage,
    WireOpaque,
    WireParams,
    WirePart,
    WirePrefix,
    WireResult,
    WireText,
    WireTool,
)

PARAMS = WireParams("claude-sonnet-4-6", 1_024, "session-0123456789abcdef0123456789abcdef")
PREFIX = WirePrefix(
    system=("You look after the house.", "Persona: calm."),
    tools=(
        WireTool("look", "Looks around.", '{"properties":{},"type":"object"}'),
        WireTool("write", "", '{"type":"object"}'),
    ),
)
NO_PREFIX = WirePrefix(system=(), tools=())

PIXEL = WireImage("image/png", base64="iVBORw0KGgo=")

texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12).filter(
    lambda text: bool(text.strip())
)
"""Text as the model view leaves it: whole characters, no controls."""

arguments = st.sampled_from(["{}", '{ "b":1.0,"a":12345678901234567890}', '{"t":"ä \\"x\\" 🎉"}'])


@st.composite
def steps(draw: st.DrawFn, number: int) -> tuple[WireMessage, WireMessage]:
    """One assistant step with calls, and all their results in call order."""
    names = draw(st.lists(st.sampled_from(["look", "write"]), min_size=1, max_size=3))
    said = draw(st.none() | texts)
    calls = tuple(
        WireCall(f"call_{number}_{place}", name, draw(arguments))
        for place, name in enumerate(names)
    )
    results = tuple(
        WireResult(
            call.call_id,
            call.name,
            (WireText(draw(texts)), *([PIXEL] if draw(st.booleans()) else [])),
            draw(st.booleans()),
        )
        for call in calls
    )
    spoken: tuple[WirePart, ...] = (WireText(said),) if said else ()
    return WireMessage("assistant", spoken + calls), WireMessage("user", results)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[WireMessage, ...]:
    """Alternating turns that begin and end with the user, some of them steps with calls."""
    messages = [WireMessage("user", (WireText(draw(texts)),))]
    for number in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            messages.extend(draw(steps(number)))
        else:
            messages.append(WireMessage("assistant", (WireText(draw(texts)),)))
            shown: tuple[WirePart, ...] = (PIXEL,) if draw(st.booleans()) else ()
            messages.append(WireMessage("user", (WireText(draw(texts)), *shown)))
    return tuple(messages)


THINKING = WireOpaque('{"type":"thinking", "thinking":"Hm.", "signature":"SIG=="}', "thinking")
REDACTED = WireOpaque('{"data":"BLOB==","type":"redacted_thinking"}', "redacted_thinking")
REASONING = WireOpaque(
    '{"type":"reasoning","id":"rs_1", "summary":[],"encrypted_content":"OPAQUE1"}',
    "reasoning",
    "fc_1",
)
