"""The list of faults: what each test breaks and when, the checks that pass afterwards, and the page that says so.

A test names its fault and its checks by `@fault(...)`. It fails where it did not make a check that it names, or made one that
it does not name. `docs/faults.md` is written from the tests that passed (`make faults` does so); a test compares it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "faults.md"
Test = TypeVar("Test", bound=Callable[..., Any])
_ATTRIBUTE = "injects"

_HEAD = """# Faults

What the tests break on purpose, and what they found to hold afterwards. `make faults` runs them alone and writes this page from
those that passed; a test compares it. The processes are real: a web server, workers, a Postgres, and each of the three brokers.

| check | what it means |
|---|---|
"""
_TABLE = """
| fault | when | checks that passed | test |
|---|---|---|---|
"""


class Check(Enum):
    """What is looked at once the fault is over: a word for the table, and what it means."""

    CHAIN = "chain", "`verify_chains`: every session's hash chain, its bodies and its end are whole"
    COUNTS = (
        "counts",
        "events stand without a gap, and the sums of sessions, units and items are those of their parts",
    )
    PROOF = "proof", "every recorded request is rebuilt from the ledger to its hash"
    ONCE = "once", "what was asked for stands in the ledger once: not lost, not doubled"
    RETRY = (
        "retry",
        "the same call with the same Idempotency-Key completes, and its repeat answers the same",
    )
    SAME = "same", "the log has the same events, in the same order, as one that met no fault"
    JOBS = "jobs", "every job has ended, and none is held by a worker that is gone"
    SERVES = "serves", "the process still serves, and says in plain words what it could not do"
    NOTHING = "nothing", "nothing was written that the refusal would have had to take back"

    def __init__(self, word: str, meaning: str) -> None:
        self.word = word
        self.meaning = meaning

    def passed(self) -> None:
        """Say that the running test has looked at this, and that it holds."""
        _made.add(self)


_made: set[Check] = set()
"""Checks that the running test made so far."""


class Fault(NamedTuple):
    """One row of the table."""

    what: str
    when: str
    checks: tuple[Check, ...]
    test: str

    def row(self) -> str:
        words = ", ".join(check.word for check in self.checks)
        return f"| {self.what} | {self.when} | {words} | {self.test} |\n"


def fault(what: str, when: str, *checks: Check) -> Callable[[Test], Test]:
    """Name the fault that a test injects, and the checks that it makes afterwards."""
    assert checks, "a fault without a check proves nothing"

    def named(test: Test) -> Test:
        said = test.__name__.removeprefix("test_").replace("_", " ")
        ordered = tuple(check for check in Check if check in checks)
        setattr(test, _ATTRIBUTE, Fault(what, when, ordered, said))
        return test

    return named


def fault_of(test: Any) -> Fault | None:
    """The fault that a test function injects."""
    found: Fault | None = getattr(test, _ATTRIBUTE, None)
    return found


def begin() -> None:
    """Forget the checks of the test before."""
    _made.clear()


def require(injected: Fault) -> None:
    """Fail where the checks made are not those that were named."""
    missing = [check.word for check in injected.checks if check not in _made]
    unnamed = [check.word for check in _made if check not in injected.checks]
    if missing or unnamed:
        pytest.fail(f"checks named but not made: {missing}; made but not named: {unnamed}")


def text(faults: Iterable[Fault]) -> str:
    """The page."""
    rows = sorted(faults, key=lambda fault: (fault.what, fault.when, fault.test))
    means = "".join(f"| {check.word} | {check.meaning} |\n" for check in Check)
    return _HEAD + means + _TABLE + "".join(fault.row() for fault in _without_twins(rows))


def _without_twins(rows: list[Fault]) -> list[Fault]:
    """A test with many cases is one row."""
    return list(dict.fromkeys(rows))
