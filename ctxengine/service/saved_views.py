"""Keeping a list with its filters under a name, for oneself or for the whole tenant."""

from __future__ import annotations

from uuid import UUID, uuid4

from django.db import IntegrityError, transaction

from ctxengine.engine.trust.model_view import model_view
from ctxengine.ledger.models import SavedView
from ctxengine.service.access import not_found
from ctxengine.service.audit import record_audit
from ctxengine.service.clock import utc_now
from ctxengine.service.specs import Actor, ServiceError

PAGES = ("sessions", "requests", "search")
MOST_VIEWS = 100
_MOST_NAME_CHARS, _MOST_QUERY_CHARS = 80, 4_000


def save_view(
    *, actor: Actor, owner: str, page: str, name: str, query: str, shared: bool
) -> SavedView:
    """Save a view.

    Raises:
        ServiceError: 422 for an unknown list, an empty or long name, or an address that is too long; 409 `name_taken`, and
            409 `too_many` beyond 100 views of one person.
    """
    name = model_view(name).strip()
    if page not in PAGES:
        raise ServiceError("invalid_field", 422, f"Lists are {', '.join(PAGES)}.")
    if not 1 <= len(name) <= _MOST_NAME_CHARS:
        raise ServiceError("invalid_field", 422, f"A name has 1 to {_MOST_NAME_CHARS} characters.")
    if len(query) > _MOST_QUERY_CHARS or "\x00" in query:
        raise ServiceError("invalid_field", 422, "The filters are too long to be saved.")
    if SavedView.objects.filter(tenant_id=actor.tenant_id, owner=owner).count() >= MOST_VIEWS:
        raise ServiceError("too_many", 409, f"You have {MOST_VIEWS} views; remove one first.")
    view = SavedView(
        tenant_id=actor.tenant_id,
        id=uuid4(),
        page=page,
        name=name,
        query=query,
        owner=owner,
        shared=shared,
        created_at=utc_now(),
    )
    try:
        with transaction.atomic():
            view.save(force_insert=True)
            if shared:
                record_audit(actor=actor, action="view.shared", target=name, after={"page": page})
    except IntegrityError as error:
        raise ServiceError("name_taken", 409, f"You have a view named {name!r} here.") from error
    return view


def remove_view(*, actor: Actor, owner: str, view_id: UUID, every: bool) -> SavedView:
    """Remove one's own view, or with `every` anybody's shared one.

    Raises:
        ServiceError: 404 where there is none that one may remove.
    """
    with transaction.atomic():
        row = (
            SavedView.objects.select_for_update()
            .filter(tenant_id=actor.tenant_id, id=view_id)
            .first()
        )
        if row is None or (row.owner != owner and not (every and row.shared)):
            raise not_found("view")
        SavedView.objects.filter(tenant_id=actor.tenant_id, id=view_id).delete()
        if row.shared:
            record_audit(
                actor=actor, action="view.removed", target=row.name, before={"page": row.page}
            )
    return row
