"""Langfuse exports: a trace with its observations."""

from __future__ import annotations

from ctxengine.engine.importers.dialect import array_at, object_at, text_at
from ctxengine.engine.importers.instructions import system_text
from ctxengine.engine.importers.members import first_given
from ctxengine.engine.importers.span_messages import tools_of, value_of
from ctxengine.engine.importers.texts import time_of
from ctxengine.engine.importers.traces import Span, TraceReader
from ctxengine.engine.importers.transcript import ForeignUsage, Transcript
from ctxengine.engine.importers.usage import summed_usage
from ctxengine.engine.lexeme import Node

FORMAT = "langfuse_otel_trace"
_CACHE_READ = (
    "input_cache_read",
    "prompt_details.cache_read",
    "input_cached_tokens",
    "cache_read_input_tokens",
)
_PARTS = ("output_reasoning", "output_audio")
_CACHE_WRITE = ("input_cache_creation", "input_cache_write", "cache_creation_input_tokens")


def read_document(root: Node) -> Transcript:
    """Read an export of one trace."""
    observations = array_at(root, "observations") or array_at(
        object_at(root, "trace") or root, "observations"
    )
    spans = [_span(n, observation) for n, observation in enumerate(observations, 1)]
    transcript = TraceReader().read(spans, FORMAT)
    name = text_at(object_at(root, "trace"), "name")
    for session in transcript.sessions:
        if name and session.title == "Untitled session":
            session.title = name
    return transcript


def _span(number: int, observation: Node) -> Span:
    kind = (text_at(observation, "type") or "").lower()
    name = text_at(observation, "name") or ""
    start = text_at(observation, "startTime") or ""
    metadata = value_of(observation.get("metadata"))
    attributes = value_of(metadata.get("attributes")) if metadata is not None else None
    defined = first_given(attributes, "gen_ai.tool.definitions") or first_given(metadata, "tools")
    told = system_text(value_of(first_given(attributes, "gen_ai.system_instructions")))
    return Span(
        where=f"observation {number}",
        kind=kind,
        name=name.removeprefix("running tool: ").removeprefix("execute_tool "),
        span_id=text_at(observation, "id") or str(number),
        parent=text_at(observation, "parentObservationId"),
        start=start,
        at=time_of(start),
        request=observation.get("input"),
        answer=observation.get("output"),
        model=text_at(observation, "model"),
        usage=_usage(observation),
        instructions=told.text,
        tools=tools_of(value_of(defined)),
        unread=told.unread,
    )


def _usage(observation: Node) -> ForeignUsage | None:
    return summed_usage(
        object_at(observation, "usageDetails"),
        prompt="input",
        cache_read=_CACHE_READ,
        cache_write=_CACHE_WRITE,
        output="output",
        total="total",
        parts=_PARTS,
    )
