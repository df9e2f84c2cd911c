"""The OpenAPI document: made from the same tables that read bodies and queries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent

from api.pagination import Parameter
from api.problems import PROBLEM_TYPE, PROBLEMS
from api.shapes.base import Schema, Shape

_ALWAYS = ("unauthenticated", "scope_missing", "unknown_parameter", "internal_error", "unavailable")
_ON_WRITES = (
    "invalid_json",
    "invalid_utf8",
    "too_deep",
    "unreadable_body",
    "unknown_field",
    "duplicate_field",
    "missing_field",
    "invalid_field",
    "invalid_idempotency_key",
    "idempotency_mismatch",
    "idempotency_in_progress",
    "length_required",
    "too_large",
    "unsupported_media_type",
)
_STATUS_OF = {kind.code: kind.status for kind in PROBLEMS}


@dataclass(frozen=True, slots=True)
class Component:
    """A schema with a name, which the document holds once."""

    name: str
    schema: Schema
    parts: tuple[Component, ...] = ()
    """Components that the schema refers to."""

    @property
    def ref(self) -> Schema:
        """The reference to it."""
        return {"$ref": f"#/components/schemas/{self.name}"}


@dataclass(frozen=True, slots=True)
class Operation:
    """What the document says about one method of an endpoint."""

    id: str
    summary: str
    tag: str
    answer: Component | Schema
    answer_note: str
    status: int = 200
    more_statuses: Mapping[int, str] = field(default_factory=dict)
    """Other good statuses with the same answer, and what each means."""
    other_answers: Mapping[int, tuple[Component, str]] = field(default_factory=dict)
    """Good statuses with an answer of their own: the answer, and what it means."""
    body: Shape[Any] | None = None
    body_contents: Mapping[str, Schema] | None = None
    """Bodies by media type, where the body is not JSON."""
    body_required: bool = True
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    """Codes beyond those that every endpoint may answer."""
    description: str = ""


Operations = Mapping[str, Operation]
"""Operations by HTTP method."""
Parameters = Mapping[str, Parameter]
"""Query parameters by name."""

PROBLEM = Component(
    "Problem",
    {
        "type": "object",
        "description": "An RFC 9457 problem document; some codes add members of their own.",
        "required": ["type", "title", "status", "detail", "code"],
        "properties": {
            "type": {"type": "string", "description": "`urn:ctxengine:problem:` and the code."},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string", "description": "What, limit, found, what to do."},
            "code": {"type": "string", "description": "Stable; programs decide by it."},
            "remedy": {"type": "string", "description": "What to do; for people."},
            "errors": {
                "type": "array",
                "description": "Fields at fault, each with its path.",
                "items": {
                    "type": "object",
                    "required": ["field", "fault", "code"],
                    "properties": {
                        "field": {"type": "string"},
                        "fault": {"type": "string"},
                        "code": {"type": "string"},
                    },
                },
            },
        },
        "additionalProperties": True,
    },
)


class BearerKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describes the API key."""

    target_class = "api.auth.BearerKey"
    name = "apiKey"

    def get_security_definition(self, auto_schema: AutoSchema) -> Schema:
        """A bearer token."""
        return {"type": "http", "scheme": "bearer", "description": "A tenant's API key."}


class ApiSchema(AutoSchema):
    """Writes an operation from the view's own `Operation`; nothing is guessed."""

    def get_operation(
        self, path: str, path_regex: str, path_prefix: str, method: str, registry: Any
    ) -> Schema | None:
        """The OpenAPI operation of one method; None where the view declares none."""
        self.registry = registry
        self.path, self.path_regex, self.path_prefix = path, path_regex, path_prefix
        self.method = method.upper()
        declared: Operation | None = getattr(self.view, "operations", {}).get(self.method)
        if declared is None:
            return None
        writes = self.method != "GET"
        operation: Schema = {
            "operationId": declared.id,
            "summary": declared.summary,
            "tags": [declared.tag],
            "security": self.get_auth(),
            "responses": self._responses(declared, writes),
        }
        if declared.description:
            operation["description"] = declared.description
        parameters = self._path_parameters() + _query_parameters(declared.parameters)
        if writes:
            parameters.append(_IDEMPOTENCY_PARAMETER)
            body = _request_body(declared)
            if body:
                operation["requestBody"] = body
        if parameters:
            operation["parameters"] = parameters
        # Later stages of the generator write into what they are given, and our tables are shared.
        return deepcopy(operation)

    def _path_parameters(self) -> list[Schema]:
        return [
            {
                "in": "path",
                "name": name,
                "required": True,
                "schema": _PATH_SCHEMAS.get(name, {"type": "string", "format": "uuid"}),
            }
            for name in _names_in(self.path)
        ]

    def _responses(self, declared: Operation, writes: bool) -> Schema:
        answer = self._ready(declared.answer)
        good = {declared.status: declared.answer_note, **declared.more_statuses}
        responses: Schema = {
            str(status): {
                "description": note,
                "content": {"application/json": {"schema": answer}},
            }
            for status, note in good.items()
        }
        for status, (other, note) in declared.other_answers.items():
            responses[str(status)] = {
                "description": note,
                "content": {"application/json": {"schema": self._ready(other)}},
            }
        codes = set(declared.problems) | set(_ALWAYS) | (set(_ON_WRITES) if writes else set())
        if "{" in self.path:
            codes.add("not_found")
        problem = {PROBLEM_TYPE: {"schema": self._ready(PROBLEM)}}
        for status in sorted({_STATUS_OF[code] for code in codes}):
            named = sorted(code for code in codes if _STATUS_OF[code] == status)
            responses[str(status)] = {
                "description": ", ".join(f"`{code}`" for code in named),
                "content": problem,
            }
        return responses

    def _ready(self, answer: Component | Schema) -> Schema:
        if isinstance(answer, dict):
            return answer
        for part in answer.parts:
            self._ready(part)
        self.registry.register_on_missing(
            ResolvedComponent(  # type: ignore[no-untyped-call]
                name=answer.name,
                type=ResolvedComponent.SCHEMA,
                object=answer.name,
                schema=deepcopy(answer.schema),
            )
        )
        return answer.ref


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """Browsable documentation, served from this origin alone."""
    return render(request, "api/docs.html")


def _names_in(path: str) -> list[str]:
    return re.findall(r"\{([^}]+)\}", path)


def _query_parameters(parameters: Mapping[str, Parameter]) -> list[Schema]:
    return [
        {"in": "query", "name": name, "description": parameter.note, "schema": parameter.schema}
        for name, parameter in parameters.items()
    ]


def _request_body(declared: Operation) -> Schema | None:
    if declared.body_contents is not None:
        content = {name: {"schema": schema} for name, schema in declared.body_contents.items()}
    elif declared.body is not None:
        content = {"application/json": {"schema": declared.body.schema()}}
    else:
        return None
    return {"required": declared.body_required, "content": content}


_PATH_SCHEMAS: dict[str, Schema] = {
    "item": {"type": "string", "pattern": r"^[0-9]{1,18}\.[0-9]{1,9}$", "example": "12.0"},
    "epoch": {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
    "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    "principal": {"type": "string", "minLength": 1, "maxLength": 200},
    "tool": {"type": "string", "minLength": 1, "maxLength": 200},
}
_IDEMPOTENCY_PARAMETER: Schema = {
    "in": "header",
    "name": "Idempotency-Key",
    "description": (
        "Any text of your own. The same key and body are answered again for 24 hours without doing "
        "anything twice; another body with that key is a 409."
    ),
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
}
