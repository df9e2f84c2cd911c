"""API keys in `Authorization: Bearer KEY`, and the scopes that endpoints ask for (design 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from ctxengine.service.issue_key import KeyIdentity, authenticate_key
from ctxengine.service.specs import Actor, ServiceError

Scopes = Mapping[str, frozenset[str]]
"""Scopes by HTTP method; a key needs one of them."""

READ = frozenset({"read", "runtime", "operate"})
"""Every key reads: a runtime must prove its requests, an operator must see what he changes."""
RUNTIME = frozenset({"runtime"})
OPERATE = frozenset({"operate"})

_MAX_HEADER_CHARS = 512


@dataclass(frozen=True, slots=True)
class KeyUser:
    """The caller behind a valid key, in the shape that the framework asks about."""

    identity: KeyIdentity

    is_authenticated = True
    is_active = True

    def __str__(self) -> str:
        """The public part of the key."""
        return f"key:{self.identity.prefix}"


class BearerKey(BaseAuthentication):
    """Finds the tenant of a key. Says nothing about why a key is not accepted."""

    def authenticate(self, request: Request) -> tuple[KeyUser, KeyIdentity] | None:
        """The caller, or None when no key was sent."""
        header = request.META.get("HTTP_AUTHORIZATION", "")
        scheme, _, raw = header.partition(" ")
        if not header:
            return None
        raw = raw.strip()
        if scheme.lower() != "bearer" or not raw or len(header) > _MAX_HEADER_CHARS:
            raise AuthenticationFailed("Send the header as `Authorization: Bearer KEY`.")
        if not (raw.isascii() and raw.isprintable()):
            raise AuthenticationFailed("The key is not valid, has expired, or was revoked.")
        try:
            identity = authenticate_key(raw)
        except ServiceError:
            raise AuthenticationFailed(
                "The key is not valid, has expired, or was revoked."
            ) from None
        return KeyUser(identity), identity

    def authenticate_header(self, request: Request) -> str:
        """The challenge that makes a refusal a 401."""
        return 'Bearer realm="api"'


class ScopeMissing(PermissionDenied):
    """A valid key without the scope that the endpoint needs."""

    def __init__(self, needed: frozenset[str], held: frozenset[str]) -> None:
        names = " or ".join(f"`{name}`" for name in sorted(needed))
        super().__init__(f"This needs a key with the scope {names}.")
        self.members = {"needed": sorted(needed), "held": sorted(held)}


class HasScope(BasePermission):
    """Lets a key pass that holds one of the scopes the view names for the method."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """True, or raises.

        Raises:
            ScopeMissing: the key holds none of the scopes.
        """
        if not isinstance(request.auth, KeyIdentity):
            return False
        needed: frozenset[str] = getattr(view, "scopes", {}).get(request.method, READ)
        held = frozenset(str(scope) for scope in request.auth.scopes)
        if not needed & held:
            raise ScopeMissing(needed, held)
        return True


def need_operate(request: Any) -> None:
    """Let a key pass that may see secrets: only for `raw=1`, which any reader may leave out.

    Raises:
        ScopeMissing: the key does not hold `operate`.
    """
    held = request.auth.scopes if isinstance(request.auth, KeyIdentity) else ()
    if not OPERATE & {str(scope) for scope in held}:
        raise ScopeMissing(OPERATE, frozenset(str(scope) for scope in held))


def actor_of(request: Any, idempotency_key: str = "") -> Actor:
    """Who acts, for the use cases. Only for views behind `HasScope`."""
    identity: KeyIdentity = request.auth
    return Actor(
        tenant_id=identity.tenant_id,
        label=f"key:{identity.prefix}",
        idempotency_key=idempotency_key,
        scopes=frozenset(str(scope) for scope in identity.scopes),
    )
