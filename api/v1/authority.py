"""`sessions/{session}/authority`: the scopes granted to a session's principal (frozen-prefix spec, Authorization changes)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from api.answers import to_json
from api.edits import PutView
from api.openapi import component_of
from api.schema import Operation, Operations
from api.shapes.containers import Member, Record, build, texts
from api.shapes.scalars import Identifier
from api.views import Done, JsonWrite
from ctxengine.engine.lexeme import Node
from ctxengine.service.plan_specs import AuthorityView, SetAuthority
from ctxengine.service.set_authority import set_authority
from ctxengine.service.specs import Actor

AUTHORITY = component_of("Authority", AuthorityView)
SET_AUTHORITY = Record(
    Member("scopes", texts(), required=True, note="All scopes granted from now on."),
    Member(
        "resolves_run",
        Identifier(),
        note="An open run that waits for this access and has done no model work: it gets a new plan, once.",
    ),
    spec=SetAuthority,
)


class SetAuthorityWrite(JsonWrite[SetAuthority]):
    """`PUT sessions/{session}/authority`."""

    def parse(self, body: Node) -> SetAuthority:
        """The scopes."""
        return build(SetAuthority, SET_AUTHORITY.read(body, ""))

    def perform(self, actor: Actor, spec: SetAuthority, ids: Mapping[str, Any]) -> Done:
        """Replace the scopes."""
        done = set_authority(actor=actor, session_id=ids["session"], spec=spec)
        resource = {name: getattr(done, name) for name in AuthorityView.__dataclass_fields__}
        return Done(resource, to_json(done))

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The same answer: scopes are names of our own and were kept with the mark."""
        return to_json(AuthorityView(**resource))


class AuthorityDocumentView(PutView):
    """A session's authority."""

    write = SetAuthorityWrite()
    operations: ClassVar[Operations] = {
        "PUT": Operation(
            id="set_authority",
            summary="Grant or reduce the scopes of a session",
            tag="sessions",
            answer=AUTHORITY,
            answer_note=(
                "What changed. A reduction holds at once and changes no byte of the prefix; "
                "a grant makes a new plan at the next run's start."
            ),
            body=SET_AUTHORITY,
            problems=("session_ended", "access_not_awaited", "plan_overflow", "stale_head"),
        )
    }
