"""Secrets of an instance: made once, each in a file that its owner alone can read.

Settings only read them; the entry points that serve or write (`manage.py`, `wsgi`) make them first.
"""

from __future__ import annotations

import base64
import os
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path

from ctxengine.site import env, places

SECRET_KEY_FILE = "secret_key"  # noqa: S105  a file name
FIELD_KEY_FILE = "field_key"


def new_secret() -> str:
    """A text of 384 random bits, safe in URLs and command lines."""
    return secrets.token_urlsafe(48)


def new_field_key() -> str:
    """32 random bytes in URL-safe base64: the form that Fernet takes, and AES-256 after decoding."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode("ascii")


def ensure(data: Path) -> None:
    """Make the secrets of an instance that the environment does not give and no file holds yet."""
    folder = keys_folder(data)
    for name, file, make in (
        ("CTX_SECRET_KEY", SECRET_KEY_FILE, new_secret),
        ("CTX_FIELD_KEY", FIELD_KEY_FILE, new_field_key),
    ):
        if env.optional(name) is None:
            places.make_data_folder(data)
            places.make_private(folder)
            kept(folder / file, make)


def secret_key(data: Path) -> str:
    """Django's SECRET_KEY: from the environment, else the instance's file, else a passing one.

    Raises:
        SettingError: the environment gives one too short to be safe.
    """
    given = env.optional("CTX_SECRET_KEY")
    if given is not None and len(given) < 32:
        raise env.SettingError("CTX_SECRET_KEY", f"{len(given)} characters", "at least 32 long")
    return given or _read(keys_folder(data) / SECRET_KEY_FILE) or new_secret()


def field_key(data: Path) -> str:
    """The key that encrypts fields at rest: from the environment, else the file, else a passing one.

    Raises:
        SettingError: the environment gives one that is not 32 bytes in URL-safe base64.
    """
    given = env.optional("CTX_FIELD_KEY")
    if given is not None:
        try:
            size = len(base64.b64decode(given, altchars=b"-_", validate=True))
        except ValueError:
            size = 0
        if size != 32:
            raise env.SettingError("CTX_FIELD_KEY", "(hidden)", "32 bytes in URL-safe base64")
    return given or _read(keys_folder(data) / FIELD_KEY_FILE) or new_field_key()


def keys_folder(data: Path) -> Path:
    """The folder of an instance's secret files."""
    return data / "keys"


def kept(path: Path, make: Callable[[], str]) -> str:
    """The text of a secret file, made first where it is missing; two processes agree on one text."""
    found = _read(path)
    if found:
        return found
    # A link made from a finished file appears whole or not at all, and only the first one wins.
    handle, draft = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(make())
        out.flush()
        os.fsync(out.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        if not _read(path):
            Path(draft).replace(path)
            return path.read_text(encoding="utf-8").strip()
    Path(draft).unlink(missing_ok=True)
    return path.read_text(encoding="utf-8").strip()


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip() or None
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
