"""`docs/architecture.md` names every room there is, and none that is not."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = ROOT / "ctxengine"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def rooms(title: str) -> list[str]:
    """What the first column of a section's table names, without trailing slashes."""
    section = PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [name.rstrip("/") for row in rows for name in re.findall(r"`([^`]+)`", row)]


def there(folder: Path) -> set[str]:
    """Modules and packages that lie directly in a folder."""
    modules = {path.stem for path in folder.glob("*.py") if path.stem != "__init__"}
    return modules | {path.parent.name for path in folder.glob("*/__init__.py")}


def test_the_engines_table_is_the_engines_folder() -> None:
    named, found = rooms("The engine, room by room"), there(CODE / "engine")
    assert [name for name in named if not any(fnmatch(room, name) for room in found)] == []
    assert [room for room in found if not any(fnmatch(room, name) for name in named)] == []
    assert len(named) == len(set(named)), "a room stands in one row"


def test_the_other_table_names_rooms_that_are_there_and_every_package() -> None:
    named = rooms("The rooms with I/O")
    for name in named:
        layer, _, room = name.partition("/")
        assert room.partition("/")[0] in there(CODE / layer), name
    for layer in ("service", "providers", "ledger"):
        packages = {path.parent.name for path in (CODE / layer).glob("*/__init__.py")}
        missing = {f"{layer}/{room}" for room in packages - {"migrations"}} - set(named)
        assert not missing
    providers = {f"providers/{room}" for room in there(CODE / "providers")}
    assert providers <= set(named)
