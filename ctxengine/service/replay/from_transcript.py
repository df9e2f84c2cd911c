"""A foreign transcript as a source: its own instructions and tools, and a step before each answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxengine.engine.importers.transcript import Entry, EntryType, ForeignSession, ForeignTool
from ctxengine.engine.plan.plan import PinnedTool
from ctxengine.engine.plan.schema import SchemaError, provider_schema
from ctxengine.engine.trust.model_view import model_view
from ctxengine.service.imports.plain import EVENT_OF, SOURCE_OF
from ctxengine.service.original import moment_of
from ctxengine.service.replay.source import Beat, Source


def source_of_transcript(foreign: ForeignSession, *, name: str) -> Source:
    """One conversation of a file."""
    return Source(
        name=name,
        title=model_view(foreign.title)[:300],
        provider=foreign.provider,
        model=foreign.model,
        beats=tuple(_beats(foreign.entries)),
        instructions=foreign.instructions,
        tools=pinned(foreign.tools),
        session=name,
    )


def pinned(tools: Sequence[ForeignTool]) -> tuple[PinnedTool, ...]:
    """A transcript's tools as the planner takes them, one of each name."""
    found: dict[str, PinnedTool] = {}
    for tool in tools:
        try:
            schema = provider_schema(tool.input_schema)
        except SchemaError:
            schema = '{"type":"object"}'
        name = model_view(tool.name) or "unnamed"
        found.setdefault(
            name,
            PinnedTool(
                name=name,
                wire_name="",
                description=model_view(tool.description),
                input_schema=schema,
                synthesised=tool.synthesised,
            ),
        )
    return tuple(found.values())


def _beats(entries: Sequence[Entry]) -> Iterator[Beat]:
    run = 0
    for place, entry in enumerate(entries):
        opens = entry.type is EntryType.USER or run == 0
        run += opens
        moment = moment_of(entry.at)
        at = moment.timestamp() if moment is not None else None
        if entry.type is EntryType.ASSISTANT and place > 0:
            yield Beat("step", place, run=str(run), at=None)
        yield Beat(
            "message",
            place,
            type=EVENT_OF[entry.type],
            at=at,
            format=entry.format,
            raw=entry.body,
            trust=entry.trust,
            source=SOURCE_OF.get(entry.type) or f"tool:{entry.name or ''}",
            run=str(run),
            answers=entry.call_ref if entry.type is EntryType.RESULT else None,
            is_error=entry.is_error,
            opens_run=opens,
        )
