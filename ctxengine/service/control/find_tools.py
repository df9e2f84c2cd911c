"""`find_tools`: whole schemas of listed tools, which can be called from then on (capacity spec 5; design 7.1)."""

from __future__ import annotations

import json

from ctxengine.engine.control.find import MOST_FOUND, matching, schemas_text, schemas_trust
from ctxengine.engine.control.table import ControlTool
from ctxengine.engine.events import EventDraft, EventType
from ctxengine.engine.lexeme import parse
from ctxengine.engine.trust.levels import Trust
from ctxengine.service.calls import authority_of
from ctxengine.service.control.answers import ControlAnswer, ControlCall
from ctxengine.service.tool_terms import known_terms


def answer_find_tools(call: ControlCall) -> ControlAnswer:
    """Answer one search. What was revoked or is not granted is not found."""
    named = parse(call.arguments).get("query")
    query = (named.text() if named is not None else None) or ""
    if not query.strip():
        return ControlAnswer(
            json.dumps({"error": "no_query", "detail": "Say in `query` what the tool should do."}),
            is_error=True,
        )
    authority = authority_of(call.log, call.run)
    open_ones = [
        tool
        for tool in call.plan.indexed
        if tool.name not in authority.revoked
        and (authority.scopes is None or set(tool.required_scopes) <= authority.scopes)
    ]
    matched = matching(open_ones, query, terms=known_terms)
    found, others = matched[:MOST_FOUND], matched[MOST_FOUND:]
    draft = EventDraft(
        type=EventType.TOOLS_FOUND,
        trust=Trust.PLATFORM,
        run=str(call.run.id),
        payload={"names": [tool.name for tool in found], "listed": len(open_ones)},
    )
    caller = call.plan.wire_name(ControlTool.TOOL_CALL) or ControlTool.TOOL_CALL.value
    if not found:
        detail = "No listed tool is about that. Search with other words, or go on without it."
        return ControlAnswer(json.dumps({"tools": [], "detail": detail}), drafts=[draft])
    return ControlAnswer(
        schemas_text(
            found,
            caller=caller,
            others=others,
            finder=call.plan.wire_name(ControlTool.FIND_TOOLS) or ControlTool.FIND_TOOLS.value,
        ),
        trust=schemas_trust(matched),
        source="find_tools",
        drafts=[draft],
    )
