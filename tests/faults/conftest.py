"""The Postgres of the faults, one that a test may kill, apart from that of the run; and the list of what was broken."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxengine.site.postgres.server import EmbeddedPostgres
from tests.faults import page

WRITE_PAGE = "CTX_WRITE_FAULTS_PAGE"
"""Set by `make faults`: the run writes docs/faults.md from what passed."""
_passed: list[page.Fault] = []


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedPostgres]:
    """A durable server."""
    folder = Path(tempfile.mkdtemp(dir=os.environ["CTX_TEST_RUN_FOLDER"], prefix="faults-"))
    folder.chmod(0o711)
    found = EmbeddedPostgres(folder)
    found.start()
    yield found
    found.stop()
    found.remove()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Function) -> Iterator[None]:
    """Hold the checks that a test made against those that its fault names."""
    injected = page.fault_of(item.function)
    page.begin()
    result: Any = yield
    if injected is not None:
        page.require(injected)
        _passed.append(injected)
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the page, where that was asked for."""
    if os.environ.get(WRITE_PAGE) and not hasattr(session.config, "workerinput"):
        page.PAGE.write_text(page.text(_passed), encoding="utf-8")
