"""What one running instance keeps about itself in its data folder: who serves it, and the demonstration login."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from ctxengine.site import keys, places
from ctxengine.site.postgres.locks import FileLock

_SERVING_FILE = "serving.json"
_LOGIN_FILE = "login.json"


class AlreadyServed(RuntimeError):
    """Another process serves this data folder; the message says where."""


@dataclass(frozen=True, slots=True)
class Login:
    """The first login and key of an instance, the same at each start."""

    username: str
    password: str
    api_key: str


class ServingLock:
    """The right to serve a data folder: one process at a time has it."""

    def __init__(self, data: Path) -> None:
        self._note = data / _SERVING_FILE
        self._data = data
        self._lock = FileLock(data / ".serving")

    @property
    def held(self) -> bool:
        """Whether this process has the right."""
        return self._lock.held

    def take(self) -> None:
        """Take the right.

        Raises:
            AlreadyServed: another process has it.
        """
        if not self._lock.acquire(wait=False):
            raise AlreadyServed(
                f"An instance already serves {self._data}{self._where()}. Stop it first, or name another"
                " data folder with --data."
            )

    def announce(self, url: str) -> None:
        """Leave a note for the next one who asks."""
        self._note.write_text(json.dumps({"url": url, "pid": os.getpid()}), encoding="utf-8")

    def give_back(self) -> None:
        """Let others serve the folder."""
        if self._lock.held:
            self._note.unlink(missing_ok=True)
            self._lock.release()

    def _where(self) -> str:
        with suppress(OSError, ValueError, KeyError, TypeError):
            note = json.loads(self._note.read_text(encoding="utf-8"))
            return f" at {note['url']} (process {note['pid']})"
        return ""


def first_login(data: Path) -> Login:
    """The login kept in the data folder, made where there is none yet."""
    text = keys.kept(_login_file(data), lambda: json.dumps(asdict(_new_login())))
    try:
        return Login(**json.loads(text))
    except (ValueError, TypeError):
        login = _new_login()
        keep_login(data, login)
        return login


def keep_login(data: Path, login: Login) -> None:
    """Replace the kept login."""
    path = _login_file(data)
    draft = path.with_suffix(".new")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(json.dumps(asdict(login)))
    draft.replace(path)


def _login_file(data: Path) -> Path:
    return places.make_private(keys.keys_folder(data)) / _LOGIN_FILE


def _new_login() -> Login:
    return Login("admin", secrets.token_urlsafe(12), "ctx_" + secrets.token_urlsafe(32))
