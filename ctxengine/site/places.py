"""Where an instance keeps its files: one data folder per checkout, named by setting or derived."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path

from ctxengine.site import env

CHECKOUT = Path(__file__).resolve().parents[2]
"""The folder that holds manage.py."""


def data_folder() -> Path:
    """The instance's data folder: `CTX_DATA_DIR`, else one per checkout in the user's data directory.

    For root, whose home other accounts cannot enter (Postgres refuses to run as root), it lies in /var/tmp.
    The folder need not exist; nothing is created here.
    """
    return env.folder("CTX_DATA_DIR") or default_data_folder(CHECKOUT)


def default_data_folder(checkout: Path) -> Path:
    """The data folder of a checkout where no setting names one; two checkouts never share it."""
    name = f"ctxengine-{_slug(checkout.name)}-{_short_hash(checkout)}"
    base = env.folder("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    if os.geteuid() == 0 and not open_to_others(base):
        return Path("/var/tmp") / name  # noqa: S108  the owner is checked before use
    return base / name


def open_to_others(path: Path) -> bool:
    """Whether any account may pass through each existing folder on the way to `path`, itself included."""
    for part in (path, *path.parents):
        try:
            mode = part.stat().st_mode
        except FileNotFoundError:
            continue
        except PermissionError:
            return False
        if not mode & stat.S_IXOTH:
            return False
    return True


def shadow_folder(path: Path) -> Path:
    """A folder in /var/tmp that stands in for `path` where other accounts cannot reach that."""
    return Path("/var/tmp") / f"ctxengine-{_short_hash(path)}"  # noqa: S108  see make_private


def make_data_folder(path: Path) -> Path:
    """Create an instance's data folder where it is missing; one that exists keeps its mode.

    Raises:
        PermissionError: it lies in a folder open to everybody (such as /var/tmp) and is not ours.
    """
    missing = [part for part in (path, *path.parents) if not part.exists()]
    for part in reversed(missing):
        part.mkdir(exist_ok=True, mode=0o700)
        if os.geteuid() == 0:
            part.chmod(0o711)  # the account that runs Postgres for root has to pass through
    if path.parent.stat().st_mode & stat.S_ISVTX:
        _require_own(path)
    return path


def make_private(path: Path, *, mode: int = 0o700) -> Path:
    """Create `path` where it is missing, and make sure that it is ours alone to change.

    Raises:
        PermissionError: it exists as a link, or belongs to another account.
    """
    path.mkdir(parents=True, exist_ok=True, mode=mode)
    _require_own(path)
    if stat.S_IMODE(path.stat().st_mode) != mode:
        path.chmod(mode)
    return path


def _require_own(path: Path) -> None:
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise PermissionError(
            f"{path} must be a folder owned by user {os.geteuid()}, but it is a link or belongs to"
            f" user {found.st_uid}. Remove it, or name another with --data or CTX_DATA_DIR."
        )


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "checkout"


def _short_hash(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:10]
