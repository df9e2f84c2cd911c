"""The lab without an instance: it needs settings, and no database."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def lab_ready() -> Iterator[Path]:
    """Settings that can be read, with an empty data folder for as long as the benchmark runs; gives the folder."""
    with tempfile.TemporaryDirectory(prefix="ctxengine-bench-") as folder:
        os.environ["CTX_DATA_DIR"] = folder
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ctxengine.site.settings")
        import django

        django.setup()
        yield Path(folder)
