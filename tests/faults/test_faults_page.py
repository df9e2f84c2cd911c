"""docs/faults.md lists the faults that the tests inject, with the checks that each makes: no more, and no less."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from tests.faults import page
from tests.faults.page import Check, Fault, fault


def faults() -> list[Fault]:
    """Every fault that a test of this folder names."""
    modules = [
        import_module(f"tests.faults.{path.stem}")
        for path in sorted(Path(__file__).parent.glob("test_*.py"))
        if path.stem != Path(__file__).stem
    ]
    found = [page.fault_of(test) for module in modules for test in vars(module).values()]
    return [one for one in found if one is not None]


def test_the_page_is_what_the_tests_say() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.text(faults()), (
        "docs/faults.md is not what the tests inject: `make faults` writes it anew"
    )


def test_every_kind_of_check_is_made_after_some_fault() -> None:
    assert {check for one in faults() for check in one.checks} == set(Check)


def test_a_check_that_is_named_and_not_made_fails_the_test() -> None:
    @fault("a fault", "once", Check.CHAIN, Check.COUNTS)
    def forgetful() -> None:
        Check.CHAIN.passed()

    page.begin()
    forgetful()
    injected = page.fault_of(forgetful)
    assert injected is not None
    with pytest.raises(pytest.fail.Exception, match="counts"):
        page.require(injected)
    page.begin()
