"""Fields encrypted at rest: nonce keys and opaque reasoning (design 4)."""

from __future__ import annotations

import os

from cryptography.fernet import Fernet
from django.conf import settings

NONCE_KEY_BYTES = 32
SALT_BYTES = 16


def _box() -> Fernet:
    return Fernet(settings.CTX_FIELD_KEY)


def encrypt(data: bytes) -> bytes:
    """Encrypt and authenticate."""
    return _box().encrypt(data)


def decrypt(data: bytes) -> bytes:
    """Reverse `encrypt`; raises `cryptography.fernet.InvalidToken` when the key or the data is wrong."""
    return _box().decrypt(bytes(data))


def new_nonce_key() -> bytes:
    """A session's key for envelope nonces; made once, never rotated."""
    return os.urandom(NONCE_KEY_BYTES)


def new_salt() -> bytes:
    """A body's salt."""
    return os.urandom(SALT_BYTES)
