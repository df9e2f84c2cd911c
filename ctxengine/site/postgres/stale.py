"""Lock files that a killed Postgres leaves behind, and how to tell them from a living server's."""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")


def drop_stale_lock_files(cluster: Path, socket_lock: Path) -> None:
    """Remove the lock files whose server is gone; a living server's stay."""
    for path in (cluster / "postmaster.pid", socket_lock):
        pid = _pid_in(path)
        if pid is not None and not _serves(pid, cluster):
            path.unlink(missing_ok=True)


def _pid_in(path: Path) -> int | None:
    try:
        first = path.read_text(encoding="ascii", errors="replace").split("\n", 1)[0]
        return abs(int(first))
    except (OSError, ValueError):
        return None


def _serves(pid: int, cluster: Path) -> bool:
    """Whether that process is alive and works in that cluster's folder, as a postmaster does."""
    if not _PROC.is_dir():
        return _answers_signals(pid)
    try:
        state = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        if state.rpartition(")")[2].split()[0] in {"Z", "X"}:
            return False
        return (_PROC / str(pid) / "cwd").resolve() == cluster.resolve()
    except PermissionError:
        return False  # a stranger's process: ours could be read
    except OSError:
        return False


def _answers_signals(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
