"""The Postgres of the faults: one that a test may kill, apart from that of the run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxengine.site.postgres.server import EmbeddedPostgres


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
