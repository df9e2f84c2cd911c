"""Filters and tags of the console's templates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django import template
from django.http import QueryDict
from django.template import Context
from django.urls import reverse
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from ctxengine.engine.manifest import Reason
from ctxengine.ledger.models import Role
from ctxengine.ledger.queries.paging import PAGE_SIZES
from inspector import figures, jsonview, trust, visible
from inspector.access import Viewer
from inspector.filters import page_size, size_of
from inspector.glossary import TERMS
from inspector.lab_conditions import conditions_in_words
from inspector.metric_views import Column, Datum, TableView
from inspector.reasons import class_title
from inspector.render import Twin
from inspector.twins import twin_of

register = template.Library()

register.filter("num", figures.number)
register.filter("told", figures.told)
register.filter("signed", figures.signed)
register.filter("size", figures.size)
register.filter("short", figures.short_hash)
register.filter("ratio", figures.percent)
register.filter("usd", figures.dollars)
register.filter("micro_usd", figures.micro_dollars)
register.filter("what_ifs", conditions_in_words)
register.filter("class_title", class_title)
register.filter("visible", visible.visible)
register.filter("plain", visible.plain)
register.filter("one_line", visible.one_line)


@register.filter
def share(part: float | None, whole: float | None) -> str:
    """A part of a whole in percent."""
    return figures.share(part, whole)


@register.filter
def cells(table: TableView, row: tuple[Datum, ...]) -> Iterator[tuple[Column, Datum]]:
    """A row's figures, each with its column."""
    return zip(table.columns, row, strict=True)


@register.filter
def look_up(mapping: dict[Any, Any], key: object) -> Any:
    """The value of a key that is itself a variable; empty when missing."""
    return mapping.get(key, "")


@register.filter
def when(moment: datetime | str | None) -> SafeString | str:
    """A time in UTC, with the exact second for machines and on focus; a stamp that is none stands as it is."""
    if moment is None:
        return figures.NONE
    try:
        at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    except ValueError:
        return visible.one_line(str(moment))
    utc = at.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        utc.isoformat(timespec="milliseconds"),
        f"{utc:%Y-%m-%d %H:%M:%S} UTC",
        f"{utc.day} {utc:%b %Y, %H:%M}",
    )


@register.filter
def kind_words(kind: str) -> str:
    """A word of a table in words; a code that nobody knows may hold anything."""
    return visible.plain(kind.replace("_", " "))


@register.filter
def cause_words(cause: str) -> str:
    """A cause class in words."""
    return visible.plain(cause.replace("_", " ").capitalize()) if cause else figures.NONE


@register.filter
def trust_css(level: str) -> str:
    """The class that draws a level's line pattern."""
    return trust.mark_of(level).css


@register.simple_tag(takes_context=True)
def json_twin(context: Context) -> SafeString | str:
    """The head's link to the page's twin with the same query; nothing on a page that has none."""
    request = context.get("request")
    address = twin_of(request) if request is not None else ""
    return (
        format_html('<link rel="alternate" type="application/json" href="{}">', address)
        if address
        else ""
    )


@register.simple_tag
def payload(value: Any) -> SafeString:
    """Data of ours as coloured JSON."""
    return jsonview.pretty(json.dumps(value, ensure_ascii=False, default=str))


@register.simple_tag
def json_text(text: str) -> SafeString:
    """A JSON text as it stands, coloured."""
    return jsonview.pretty(text)


@register.simple_tag
def trust_mark(level: str) -> SafeString:
    """A trust level: glyph, word and line pattern, so that hue is never alone."""
    mark = trust.mark_of(level)
    return format_html(
        '<span class="t {}"><span class="g" aria-hidden="true">{}</span><span class="w">{}</span></span>',
        mark.css,
        mark.glyph,
        mark.word,
    )


_REPLACED_AT: dict[str, str] = {
    Reason.SUMMARISED: "session-compactions",
    Reason.IN_PACKET: "session-compactions",
    Reason.IN_NATIVE_WINDOW: "session-checkpoints",
    Reason.IN_NOTE: "session-checkpoints",
}
"""Pages that say what an event put in the place of items, by the reason why these are out."""
_NAMED_EVENT = re.compile(r"\b(?:event|checkpoint) ([\d,]+)")


@register.simple_tag(takes_context=True)
def reason_linked(context: Context, words: str, reason: str, session_id: UUID) -> SafeString:
    """A reason in words whose event can be opened: where it says what it replaced, or else in the log.

    Args:
        reason: its code; empty where none is known.
    """
    slug: str = context["shell"].viewer.slug
    route = _REPLACED_AT.get(reason, "")
    place = "detail" if route else ""
    address = reverse(f"inspector:{route or 'session-events'}", args=[slug, session_id, Twin.HTML])

    def link(found: re.Match[str]) -> str:
        event = found[1].replace(",", "")
        return f'<a href="{address}?at={event}#{place or f"e-{event}"}">{found[0]}</a>'

    # Words and figures of ours: nothing of a session's content stands in a reason, and what is escaped holds no event.
    return mark_safe(_NAMED_EVENT.sub(link, escape(words)))  # noqa: S308


@register.simple_tag(takes_context=True)
def drop_filter(context: Context, name: str) -> str:
    """The page's own query string without one filter, from the first page on."""
    query: QueryDict = context["request"].GET.copy()
    query.pop(name, None)
    query.pop("after", None)
    return f"?{query.urlencode()}"


@register.simple_tag(takes_context=True)
def kept_size(context: Context) -> SafeString | str:
    """A form's field that keeps the size of a list's pages; nothing where the address names none."""
    asked = context["request"].GET.get("size", "")
    if not asked or page_size(asked):
        return ""
    return format_html('<input type="hidden" name="size" value="{}">', asked)


_TOLD_ONCE = ("at", "done", "made")
"""What an address says of one line or of an act just done; another page of the list does not say it again."""


@register.simple_tag(takes_context=True)
def page_sizes(context: Context) -> list[tuple[int, str]]:
    """Sizes that a list's pages may have, each with its address; the one that it has has none."""
    query: QueryDict = context["request"].GET.copy()
    for told in _TOLD_ONCE:
        query.pop(told, None)
    here, found = size_of(context["request"]), []
    for size in PAGE_SIZES:
        query["size"] = str(size)
        found.append((size, "" if size == here else f"?{query.urlencode()}"))
    return found


@register.simple_tag(takes_context=True)
def needs_role(context: Context, act: str, role: str) -> str:
    """Why somebody finds no button: the role that an act needs and theirs, or that the whole site only reads for now."""
    viewer: Viewer = context["shell"].viewer
    if viewer.read_only and viewer.at_least(Role(role)):
        return f"{act} is not possible: this site is read-only for now."
    return f"{act} needs the role {role}; yours is {viewer.role.value}."


@register.simple_tag(takes_context=True)
def with_query(context: Context, **changes: object) -> str:
    """The page's own query string with some parameters changed; an empty value drops one."""
    query: QueryDict = context["request"].GET.copy()
    for name, value in changes.items():
        if value is None or value == "":
            query.pop(name, None)
        else:
            query[name] = str(value)
    return f"?{query.urlencode()}"


@register.simple_tag(takes_context=True)
def term(context: Context, key: str, label: str = "") -> SafeString:
    """A word that opens its meaning, by key or click, with no script."""
    found = TERMS[key]
    # Counted on the request, which all parts of a page share, so that no two places have one id.
    seen: dict[str, int] = context["request"].META.setdefault("ctx.terms", {})
    seen[key] = seen.get(key, 0) + 1
    place = f"term-{key}-{seen[key]}"
    return format_html(
        '<button type="button" class="term" popovertarget="{}">{}</button>'
        '<span class="meaning" id="{}" popover role="note"><b>{}</b> {}</span>',
        place,
        label or found.word,
        place,
        found.word,
        found.meaning,
    )


@register.simple_tag(takes_context=True)
def drop_and_set(context: Context, name: str, value: object) -> str:
    """The page's own query string with one filter set, from the first page on."""
    query: QueryDict = context["request"].GET.copy()
    query.pop("after", None)
    query[name] = str(value)
    return f"?{query.urlencode()}"


@register.filter
def words(text: str) -> list[str]:
    """The words of a fixed text of ours, to go through."""
    return text.split()


@register.filter
def fact(value: Any) -> str:
    """A plain value of ours in one line: a figure, a text, or compact JSON."""
    if value is None or value == "":
        return figures.NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return visible.one_line(text)
