"""The README's tables say what the code does: each setting and each command, and nothing else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from django.core.management import get_commands

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ctxengine", "inspector", "api", "workers")
_READERS = frozenset(
    {
        "text",
        "optional",
        "flag",
        "whole",
        "choice",
        "hosts",
        "origins",
        "places",
        "folder",
        "matching",
    }
)
_SET_BY_OURSELVES = frozenset({"DJANGO_SETTINGS_MODULE"})
_OUR_APPS = ("ctxengine.", "inspector", "api", "workers")


def section(title: str) -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def environment_names_read() -> set[str]:
    names: set[str] = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if "env" not in text:
                continue
            for node in ast.walk(ast.parse(text)):
                names |= _names_in(node)
    return names - _SET_BY_OURSELVES


def _names_in(node: ast.AST) -> set[str]:
    """Names in `env.flag("X", ...)`, `os.environ["X"]`, `os.environ.get("X")` and `os.getenv("X")`."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
        key: ast.AST | None = node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        owner = ast.unparse(node.func.value)
        reads = (owner == "env" and node.func.attr in _READERS) or (
            (owner, node.func.attr) in {("os.environ", "get"), ("os", "getenv")}
        )
        key = node.args[0] if reads else None
    else:
        key = None
    return {key.value} if isinstance(key, ast.Constant) and isinstance(key.value, str) else set()


def test_the_settings_table_lists_every_setting_and_no_other() -> None:
    documented = set(re.findall(r"^\| `([A-Z][A-Z0-9_]+)` \|", section("Settings"), re.MULTILINE))
    assert documented == environment_names_read()


def test_the_commands_table_lists_every_command_and_no_other() -> None:
    rows = [line for line in section("Commands").splitlines() if line.startswith("| `")]
    documented = {
        name for row in rows for name in re.findall(r"`manage\.py (\w+)", row.split(" | ")[0])
    }
    ours = {name for name, app in get_commands().items() if str(app).startswith(_OUR_APPS)}
    assert documented == ours


def test_the_commands_table_lists_every_make_target_and_no_other() -> None:
    rows = [line for line in section("Commands").splitlines() if line.startswith("| `")]
    documented = {
        name for row in rows for name in re.findall(r"`make ([a-z-]+)", row.split(" | ")[0])
    }
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = set(re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE).group(1).split())  # type: ignore[union-attr]
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert targets == phony
    assert documented == targets - {"help", "install-test"}


def test_continuous_integration_runs_the_readmes_test_command() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "make test" in section("Two commands")
