"""Imports go down only, and what is imported is declared."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ctxengine", "inspector", "api", "workers")


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_import_contracts_hold() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def test_the_contracts_cover_every_package_and_optional_layers_are_really_missing() -> None:
    contracts = project()["tool"]["importlinter"]
    present = {name for name in PACKAGES if (ROOT / name / "__init__.py").exists()}
    assert set(contracts["root_packages"]) == present
    layers = " | ".join(
        next(c["layers"] for c in contracts["contracts"] if c["id"] == "layers")
    ).split(" | ")
    for layer in layers:
        folder = ROOT / layer.strip("()").replace(".", "/")
        if layer.startswith("("):
            assert not (folder / "__init__.py").exists(), f"{layer} has come: drop the parentheses"
        else:
            assert (folder / "__init__.py").exists()
    inside = {
        f"ctxengine.{path.parent.name}" for path in (ROOT / "ctxengine").glob("*/__init__.py")
    }
    assert inside - {"ctxengine.site"} <= set(layers)


def test_every_folder_with_modules_is_a_package_so_that_the_contracts_see_it() -> None:
    missing = {
        str(path.parent.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if not (path.parent / "__init__.py").exists()
    }
    assert missing == set()


def third_party_imports() -> set[str]:
    names: set[str] = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    names |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names) - set(PACKAGES)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_third_party_import_is_a_declared_dependency() -> None:
    declared = {
        normal(re.split(r"[ \[<>=;!~]", line, maxsplit=1)[0])
        for line in project()["project"]["dependencies"]
    }
    providers = packages_distributions()
    undeclared = {
        name
        for name in third_party_imports()
        if not {normal(found) for found in providers.get(name, [])} & declared
    }
    assert undeclared == set()


def test_the_locks_pin_every_declared_dependency_with_hashes_and_name_no_host() -> None:
    for lock, extras in (("requirements.lock", ()), ("requirements-test.lock", ("test",))):
        text = (ROOT / lock).read_text(encoding="utf-8")
        pinned = {normal(name) for name in re.findall(r"^([A-Za-z0-9_.-]+)==", text, re.MULTILINE)}
        wanted = list(project()["project"]["dependencies"])
        for extra in extras:
            wanted += project()["project"]["optional-dependencies"][extra]
        for line in wanted:
            assert normal(re.split(r"[ \[<>=;!~]", line, maxsplit=1)[0]) in pinned, (
                f"{line} in {lock}"
            )
        assert text.count("==") <= text.count("--hash=sha256:")
        assert "://" not in text
        assert "--index" not in text
