"""What every endpoint shares: keys, scopes, problem documents, and writes that are done once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import timedelta
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from django.db import transaction
from django.http import HttpResponse
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from api import idempotency
from api.answers import json_response
from api.auth import READ, RUNTIME, BearerKey, HasScope, Scopes, actor_of
from api.bodies import body_bytes, json_body
from api.pagination import parameters_of
from api.problems import Problem, handle_error
from api.schema import ApiSchema, Operations, Parameters
from api.shapes.base import FieldErrors
from api.throttling import KeyRate
from ctxengine.engine.lexeme import Node
from ctxengine.service.specs import Actor, ServiceError

SpecT = TypeVar("SpecT")

REPLAYED_HEADER = "Idempotency-Replayed"


class AlwaysJson(BaseContentNegotiation):
    """There is one form of answer, so an Accept header is not asked."""

    def select_parser(self, request: Request, parsers: Any) -> None:
        """No parser: bodies are read as text by `api.bodies`."""

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[JSONRenderer, str]:
        """JSON."""
        return JSONRenderer(), "application/json"


class ApiView(APIView):
    """An endpoint behind an API key."""

    authentication_classes = (BearerKey,)
    permission_classes = (HasScope,)
    throttle_classes = (KeyRate,)
    parser_classes = ()
    renderer_classes = (JSONRenderer,)
    content_negotiation_class = AlwaysJson
    metadata_class = None
    schema = ApiSchema()

    scopes: ClassVar[Scopes] = {}
    """Scopes by method; a key needs one of them. Left out: any key may read."""
    operations: ClassVar[Operations] = {}
    """What OpenAPI says about each method."""
    parameters: ClassVar[Parameters] = {}
    """Query parameters of the GET method."""

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], HttpResponse]:
        """Problem documents for everything."""
        return handle_error

    def actor(self) -> Actor:
        """Who reads."""
        return actor_of(self.request)

    def query(self) -> dict[str, Any]:
        """The query parameters that were sent."""
        return parameters_of(self.request, self.parameters)


class ReadView(ApiView):
    """An endpoint that only reads."""

    scopes: ClassVar[Scopes] = {"GET": READ}


class Done(NamedTuple):
    """What a write did."""

    resource: dict[str, Any]
    """The ids from which its answer can be made again."""
    body: bytes
    """The answer, ready JSON."""
    status: int = 200


class Write(Generic[SpecT]):
    """One write: what it does, and how its answer is made again."""

    repeatable: ClassVar[bool] = False
    """Whether doing it again does nothing new. Other writes share one transaction with the mark that
    they were done, so that a process that dies leaves both or neither."""

    lease: ClassVar[timedelta] = idempotency.LEASE
    """How long it may take: a repeat that comes later takes the first call's process for dead, and does the work again."""

    @abstractmethod
    def perform(self, actor: Actor, spec: SpecT, ids: Mapping[str, Any]) -> Done:
        """Call the use case."""

    @abstractmethod
    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The same answer from stored ids."""

    def follow(self, actor: Actor, spec: SpecT, done: Done) -> Done:
        """What is added to the answer once the write is committed; nothing as a rule."""
        return done


class JsonWrite(Write[SpecT]):
    """A write whose body is a JSON object."""

    @abstractmethod
    def parse(self, body: Node) -> SpecT:
        """The spec in a body.

        Raises:
            FieldErrors: fields that cannot be used.
        """


class WriteView(ApiView):
    """An endpoint that writes through one `JsonWrite`."""

    scopes: ClassVar[Scopes] = {"POST": RUNTIME}
    write: ClassVar[JsonWrite[Any]]

    def post(self, request: Request, **ids: Any) -> HttpResponse:
        """Do the write once, however often it is sent with the same Idempotency-Key."""
        key = idempotency.key_of(request)
        actor = actor_of(request, key)
        parameters_of(request, {})
        spec = parsed(self.write, request)
        return answered(request, actor, self.write, spec, ids, body_bytes(request))


def parsed(write: JsonWrite[SpecT], request: Request) -> SpecT:
    """The spec of a request with a JSON body.

    Raises:
        Problem: the body or a field of it cannot be used.
    """
    try:
        return write.parse(json_body(request))
    except FieldErrors as errors:
        raise errors.problem() from None


def answered(
    request: Request,
    actor: Actor,
    write: Write[SpecT],
    spec: SpecT,
    ids: Mapping[str, Any],
    *content: bytes,
) -> HttpResponse:
    """Perform a write, or answer its repeat; `content` is what makes two bodies the same."""
    if not actor.idempotency_key:
        done = write.follow(actor, spec, write.perform(actor, spec, ids))
        return json_response(done.body, done.status)
    call = idempotency.call_of(
        request, actor.tenant_id, actor.idempotency_key, *content, lease=write.lease
    )
    earlier = idempotency.begin(call)
    if earlier is not None:
        response = json_response(write.rebuild(actor, earlier.resource), earlier.status)
        response[REPLAYED_HEADER] = "true"
        return response
    done = _done_once(call, actor, write, spec, ids)
    followed = write.follow(actor, spec, done)
    if followed is not done:
        idempotency.amend(call, followed.resource)
    return json_response(followed.body, followed.status)


def _done_once(
    call: idempotency.Call, actor: Actor, write: Write[SpecT], spec: SpecT, ids: Mapping[str, Any]
) -> Done:
    refusal: Exception | None = None
    try:
        with nullcontext() if write.repeatable else transaction.atomic():
            try:
                done = write.perform(actor, spec, ids)
            except (ServiceError, Problem) as error:
                # What a refusal recorded (a budget that was exceeded) stays recorded.
                refusal = error
            else:
                idempotency.finish(call, done.status, done.resource)
                return done
    except Exception:
        idempotency.forget(call)
        raise
    idempotency.forget(call)
    raise refusal
