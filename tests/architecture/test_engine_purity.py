"""The engine reads no clock, no environment, no files of its own choice and makes no randomness (design 3)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGINE = ROOT / "ctxengine" / "engine"
_FORBIDDEN_MODULES = frozenset(
    {
        "anthropic", "asyncio", "celery", "django", "httpx", "httpx2", "openai", "os", "psycopg",
        "random", "requests", "rest_framework", "secrets", "shutil", "socket", "subprocess",
        "tempfile", "threading", "time", "urllib.request",
    }
)  # fmt: skip
_FORBIDDEN_CALLS = frozenset(
    {"now", "utcnow", "today", "uuid1", "uuid4", "getenv", "urandom", "open", "input"}
)
_LIMITED_CALLS = {"hash": "differs from process to process", "id": "is an address in memory"}


def modules() -> list[Path]:
    return sorted(ENGINE.rglob("*.py"))


def imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def called(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                names.add(node.func.id)
            elif isinstance(node.func, ast.Attribute):
                names.add(node.func.attr)
    return names


def plainly_called(tree: ast.Module) -> set[str]:
    return {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ENGINE)))
def test_an_engine_module_is_a_function_of_its_arguments(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    roots = {name for name in imported(tree) if name in _FORBIDDEN_MODULES}
    roots |= {
        name for name in imported(tree) if name.split(".")[0] in _FORBIDDEN_MODULES - {"urllib"}
    }
    assert not roots
    reading = called(tree) & _FORBIDDEN_CALLS
    if "importlib.resources" in imported(tree):
        reading -= {"open"}  # package data, the same in every process
    assert not reading
    assert not plainly_called(tree) & set(_LIMITED_CALLS), _LIMITED_CALLS
