"""Reading a request body as text and cutting it into nodes, without ever writing it again."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest
from django.utils.http import parse_header_parameters

from api.problems import Problem
from ctxengine.engine.lexeme import MAX_DEPTH, LexemeError, Node, NodeKind, parse, text_of

_UTF8_NAMES = frozenset({"", "utf-8", "utf8", "us-ascii"})


def body_bytes(request: HttpRequest) -> bytes:
    """The bytes of the body, at most what the setting allows.

    Raises:
        Problem: `too_large`, `length_required`, or `unsupported_media_type` for a packed body.
    """
    check_length(request)
    return request.body


def check_length(request: HttpRequest) -> None:
    """Refuse a body by its announced size, before a byte of it is read.

    Raises:
        Problem: `too_large`, `length_required`, or `unsupported_media_type` for a packed body.
    """
    announced = request.META.get("CONTENT_LENGTH") or "0"
    limit: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if request.META.get("HTTP_TRANSFER_ENCODING") and not request.META.get("CONTENT_LENGTH"):
        raise Problem("length_required", "A body sent in chunks has no length; send its length.")
    if not (announced.isascii() and announced.isdigit()):
        raise Problem("unreadable_body", "Content-Length is not a whole number.")
    if len(announced) > 18 or int(announced) > limit:
        raise Problem(
            "too_large",
            f"The body announces {announced[:30]} bytes; at most {limit:,} are accepted.",
            limit=limit,
        )
    packing = request.META.get("HTTP_CONTENT_ENCODING", "identity").strip().lower()
    if packing not in {"", "identity"}:
        raise Problem("unsupported_media_type", "The body is packed; send it as it is.")


def json_body(request: HttpRequest) -> Node:
    """The body as the node of one JSON object; no body at all reads as an empty object.

    Raises:
        Problem: naming what is wrong with the type, the encoding or the JSON.
    """
    body = body_bytes(request)
    if not body:
        return parse("{}")
    _check_type(request)
    return node_of(body)


def node_of(body: bytes) -> Node:
    """The JSON object in these bytes.

    Raises:
        Problem: `invalid_utf8`, `too_deep` or `invalid_json`, with the position.
    """
    try:
        text = text_of(body)
    except LexemeError as error:
        raise Problem("invalid_utf8", str(error), position=error.position) from None
    try:
        node = parse(text)
    except LexemeError as error:
        deep = f"deeper than {MAX_DEPTH}" in str(error)
        code = "too_deep" if deep else "invalid_json"
        raise Problem(code, str(error), position=error.position) from None
    if node.kind is not NodeKind.OBJECT:
        raise Problem("invalid_json", f"The body must be a JSON object, found {node.kind}.")
    return node


def media_type(request: HttpRequest) -> tuple[str, dict[str, str]]:
    """The body's media type in lower case, and its parameters."""
    name, parameters = parse_header_parameters(request.META.get("CONTENT_TYPE", ""))
    return name.strip().lower(), parameters


def _check_type(request: HttpRequest) -> None:
    try:
        name, parameters = media_type(request)
    except ValueError:
        name, parameters = "", {}
    is_json = name == "application/json" or (
        name.startswith("application/") and name.endswith("+json")
    )
    if not is_json:
        raise Problem(
            "unsupported_media_type",
            f"The body's type is {name[:80] or 'not given'}; send application/json.",
        )
    charset = str(parameters.get("charset", "")).lower()
    if charset not in _UTF8_NAMES:
        raise Problem(
            "unsupported_media_type", f"The charset {charset[:40]} is not read; send UTF-8."
        )
