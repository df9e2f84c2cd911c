"""Uploaded files on their way to the job that reads them: private, in the data folder, gone when the job is done.

Several web processes and workers must share that folder.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from django.conf import settings

_NAME = re.compile(r"[0-9a-f]{32}")
_KEPT_S = 2 * 24 * 3600
"""So long a file waits for its job, and for another try of one that did not succeed."""


def stage(chunks: Iterable[bytes]) -> str:
    """Write an upload to a file that only this system's user can read, and give its name.

    Raises:
        OSError: there is no room for it, or the folder is closed to this process.
    """
    folder = made_folder()
    drop_forgotten()
    name = uuid4().hex
    path = folder / name
    try:
        with path.open("xb") as file:
            path.chmod(0o600)
            file.writelines(chunks)
    except OSError:
        discard(name)
        raise
    return name


def staged(name: str) -> Path:
    """Where a staged file lies.

    Raises:
        ValueError: the name is none that `stage` gives.
    """
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r:.80} names no uploaded file.")
    return _folder() / name


def discard(name: str) -> None:
    """Remove a staged file; one that is gone already stays gone."""
    staged(name).unlink(missing_ok=True)


def made_folder() -> Path:
    """The folder of uploads, closed to others; made where it is missing.

    Raises:
        OSError: it cannot be made.
    """
    folder = _folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.geteuid() == 0:
        # A command of root's must not close the folder to those whom the data belongs to.
        owner = folder.parent.stat()
        os.chown(folder, owner.st_uid, owner.st_gid)
    return folder


def _folder() -> Path:
    return Path(settings.CTX_DATA_DIR) / "uploads"


def drop_forgotten() -> None:
    """Remove what jobs left behind that did not succeed."""
    folder, oldest = _folder(), time.time() - _KEPT_S
    for path in folder.iterdir() if folder.is_dir() else ():
        with suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()
