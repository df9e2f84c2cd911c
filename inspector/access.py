"""Who may see a page: one decorator, so that tenancy and role cannot be forgotten (style 2.11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.views.decorators.cache import never_cache

from ctxengine.ledger.models import Role
from ctxengine.service.access import TenantAccess, tenants_of
from ctxengine.service.specs import Actor, ServiceError
from inspector.filters import Asks, checked
from inspector.render import error_page

P = ParamSpec("P")

_RANK = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class Viewer:
    """The person at the page and the tenant they look at."""

    tenant_id: UUID
    slug: str
    name: str
    role: Role
    user_name: str
    tenants: tuple[TenantAccess, ...]
    """All tenants of the person, for the way from one to another."""

    @property
    def actor(self) -> Actor:
        """The person as use cases know them."""
        return Actor(tenant_id=self.tenant_id, label=f"user:{self.user_name}")

    def at_least(self, role: Role) -> bool:
        """Whether the person's role includes another."""
        return _RANK[self.role] >= _RANK[role]

    @property
    def read_only(self) -> bool:
        """Whether the whole site only reads for now."""
        return bool(settings.CTX_READ_ONLY)

    @property
    def is_operator(self) -> bool:
        """Whether the person may act, not only read."""
        return self.at_least(Role.OPERATOR) and not self.read_only

    @property
    def is_admin(self) -> bool:
        """Whether the person may also say who else may."""
        return self.at_least(Role.ADMIN) and not self.read_only

    def must_operate(self, act: str) -> None:
        """Refuse an act of a person who may only read.

        Raises:
            ServiceError: `role_too_low` (403), naming the act.
        """
        self._must(Role.OPERATOR, act)

    def must_administer(self, act: str) -> None:
        """Refuse an act that only admins do.

        Raises:
            ServiceError: `role_too_low` (403), naming the act.
        """
        self._must(Role.ADMIN, act)

    def _must(self, role: Role, act: str) -> None:
        if not self.at_least(role):
            raise ServiceError(
                "role_too_low",
                403,
                f"{act} needs the role {role.value}; yours here is {self.role.value}.",
            )


PageView = Callable[Concatenate[HttpRequest, Viewer, P], HttpResponseBase]


def member(
    least: Role = Role.VIEWER, asks: Asks | None = None
) -> Callable[[PageView[P]], Callable[..., HttpResponseBase]]:
    """Let a member of the tenant in the address through, from a role upwards.

    Strangers get 404 for a tenant that is not theirs; too low a role gets 403. Refusals of use
    cases become error pages with their own status. A page that names its parameters (`asks`) answers
    400 to any other. Whoever is not signed in is sent to sign in; a part of a page (HTMX) has the page do that.
    """

    def decorate(view: PageView[P]) -> Callable[..., HttpResponseBase]:
        @never_cache
        @_signed_in
        @wraps(view)
        def guarded(request: HttpRequest, slug: str, *args: Any, **kwargs: Any) -> HttpResponseBase:
            viewer = _viewer(request.user, slug)
            try:
                if any("\x00" in value for value in request.GET.dict().values()):
                    raise ServiceError(
                        "invalid_parameter", 400, "An address may not hold the character U+0000."
                    )
                if not viewer.at_least(least):
                    raise ServiceError(
                        "role_too_low",
                        403,
                        f"This needs the role {least.value}; yours here is {viewer.role.value}.",
                    )
                if asks is not None:
                    checked(request, asks)
                response = view(request, viewer, *args, **kwargs)
            except ServiceError as refused:
                if refused.status == 404:
                    raise Http404(refused.detail) from refused
                response = error_page(request, viewer.slug, refused)
            patch_vary_headers(response, ["HX-Request", "Cookie"])
            return response

        return guarded

    return decorate


def _signed_in(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """As `login_required`, but the sign-in page never takes the place of a part of a page that stood open too long."""
    guarded = login_required(view)

    @wraps(view)
    def asked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.headers.get("HX-Request") and not request.user.is_authenticated:
            response = HttpResponse(status=204, headers={"HX-Refresh": "true"})
            patch_vary_headers(response, ["HX-Request", "Cookie"])
            return response
        return guarded(request, *args, **kwargs)

    return asked


def _viewer(user: Any, slug: str) -> Viewer:
    tenants = tenants_of(user)
    here = next((tenant for tenant in tenants if tenant.slug == slug), None)
    if here is None:
        # Whether a tenant exists is nobody's business but its members'.
        raise Http404("No such tenant.")
    return Viewer(
        tenant_id=here.tenant_id,
        slug=here.slug,
        name=here.name,
        role=here.role,
        user_name=user.get_username(),
        tenants=tuple(tenants),
    )
