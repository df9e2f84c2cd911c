"""A Responses request as the answering rules read it."""

from __future__ import annotations

from ctxengine.providers.strict_local.exchange import Json, object_of, text_of
from ctxengine.providers.strict_local.models import reasons
from ctxengine.providers.strict_local.openai_request import Request
from ctxengine.providers.strict_local.responses_items import OUTPUTS, Window, kind_of, parts_of
from ctxengine.providers.strict_local.responses_prompt import (
    added_tools,
    deferred_tools,
    loaded_tools,
)
from ctxengine.providers.strict_local.script import Offer, Turn, View


def view_of(request: Request, window: Window, tokens: int, body: str) -> View:
    """The request as the rules read it."""
    choice = request.body.get("tool_choice", "auto")
    named = object_of(choice).get("name")
    kind = {"required": "any"}.get(str(choice), str(choice)) if named is None else str(named)
    form = object_of(object_of(request.body.get("text")).get("format"))
    effort = object_of(request.body.get("reasoning")).get("effort")
    found = {tool.get("name") for tool in added_tools(window.items)}
    offers = [
        Offer(text_of(tool.get("name")), object_of(tool.get("parameters")), deferred)
        for tools, deferred in (
            (loaded_tools(request), False),
            (added_tools(window.items), False),
            ([t for t in deferred_tools(request) if t.get("name") not in found], True),
        )
        for tool in tools
        if tool.get("type") == "function"
    ]
    return View(
        api="openai-responses",
        model=request.model,
        tokens=tokens,
        turns=tuple(_turn(item) for item in window.items),
        offers=tuple(offers),
        choice=kind if not isinstance(choice, dict) or named else "auto",
        answer_schema=object_of(form.get("schema")) if form.get("type") == "json_schema" else None,
        thinks=reasons(request.model) and effort != "none",
        searches=any(tool.get("type") == "tool_search" for tool in request.tools),
        body_digest=body,
    )


def _turn(item: Json) -> Turn:
    kind = kind_of(item)
    if kind == "function_call":
        return Turn("assistant", calls=(text_of(item.get("name")),))
    texts = tuple(text_of(part.get("text")) for part in parts_of(item) if part.get("text"))
    if kind in OUTPUTS:
        return Turn("tool", results=("\n".join(texts),))
    return Turn(text_of(item.get("role")) or kind, texts if kind == "message" else ())
