"""Answering: a full page, its JSON or CSV twin, or an error page."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db.models import Model
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    JsonResponse,
    StreamingHttpResponse,
)
from django.shortcuts import render
from pydantic import BaseModel

from ctxengine.service.specs import ServiceError
from inspector.twins import row_columns

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Twin(StrEnum):
    """Forms in which one address answers."""

    HTML = "html"
    JSON = "json"
    CSV = "csv"


class TwinConverter:
    """The end of an address: `/` is the page, `.json` and `.csv` are its twins."""

    regex = r"/|\.json|\.csv"

    def to_python(self, value: str) -> Twin:
        """The form that an address asks for."""
        return Twin.HTML if value == "/" else Twin(value.removeprefix("."))

    def to_url(self, value: str) -> str:
        """The end of the address for a form."""
        return "/" if value == Twin.HTML else f".{value}"


class PageTwinConverter(TwinConverter):
    """As `TwinConverter`, for pages that are no list and have no CSV."""

    regex = r"/|\.json"


def show(
    request: HttpRequest, template: str, page: Any, twin: Twin = Twin.HTML, status: int = 200
) -> HttpResponse:
    """Render a page's context as HTML or as JSON."""
    context = {field.name: getattr(page, field.name) for field in fields(page)}
    if twin is Twin.JSON:
        context.pop("shell", None)
        return JsonResponse(jsonable(context), status=status)
    return render(request, template, context, status=status)


def fragment(request: HttpRequest, template: str, page: Any, status: int = 200) -> HttpResponse:
    """Render a part of a page; it is never stored."""
    response = show(request, template, page, status=status)
    response["Cache-Control"] = "no-store"
    return response


def error_page(request: HttpRequest, slug: str, refused: ServiceError) -> HttpResponse:
    """A use case's refusal, in the form the address asked for."""
    if request.path.endswith(".json"):
        problem = {"code": refused.code, "status": refused.status, "detail": refused.detail}
        return JsonResponse(problem, status=refused.status)
    context = {"refused": refused, "slug": slug}
    name = "error_fragment.html" if request.headers.get("HX-Request") else "error.html"
    return render(request, name, context, status=refused.status)


def see_other(address: str) -> HttpResponse:
    """After an act: go on to the page that shows what it did, so that reloading acts no more."""
    response = HttpResponseRedirect(address)
    response.status_code = 303
    return response


def csv_stream(
    name: str, header: Sequence[str], rows: Iterable[Sequence[object]]
) -> HttpResponseBase:
    """A table as CSV, sent as it is read."""
    response = StreamingHttpResponse(
        _csv_lines(header, rows), content_type="text/csv; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def json_stream(rows: Iterable[Any]) -> HttpResponseBase:
    """A list of results as one JSON array, sent as it is read."""

    def pieces() -> Iterator[str]:
        yield "["
        for place, row in enumerate(rows):
            yield (",\n" if place else "\n") + json.dumps(jsonable(row))
        yield "\n]\n"

    return StreamingHttpResponse(pieces(), content_type="application/json")


def raw_download(data: bytes, name: str) -> HttpResponse:
    """Bytes exactly as they are, never shown by the browser."""
    response = HttpResponse(data, content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def jsonable(value: Any) -> Any:
    """Plain data for JSON, from dataclasses, models, rows of tables, ids and times."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Model):
        return jsonable(row_columns(value))
    if isinstance(value, dict):
        return {str(key): jsonable(entry) for key, entry in value.items()}
    if hasattr(value, "_asdict"):
        return jsonable(value._asdict())
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(entry) for entry in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    return value


class _Echo:
    def write(self, text: str) -> str:
        return text


def _csv_lines(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    writer = csv.writer(_Echo())
    yield str(writer.writerow(header)).encode()
    for row in rows:
        line = writer.writerow([_cell(value) for value in row])
        yield str(line).encode("utf-8", "backslashreplace")


def _cell(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    # A spreadsheet would run a text cell that starts like a formula.
    if isinstance(value, str) and value.startswith(_FORMULA):
        return "'" + value
    return "" if value is None else value
