"""The referee's workload and floor, imported by path from beside the repository (`../shared/bench`)."""

from __future__ import annotations

import gzip
import importlib
import os
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

FOLDER = Path(
    os.environ.get("CTX_BENCH_DIR") or Path(__file__).resolve().parents[2] / "shared/bench"
)
_RANKS_NAME = "fb374d419588a4632f3f557e76b4b70aebbca790"
"""Name under which tiktoken looks for the o200k_base ranks in its cache folder."""


def present() -> bool:
    """Whether the referee's scripts are there; says so on standard error when they are not."""
    if (FOLDER / "floor.py").exists():
        return True
    print(
        f"The referee's scripts are not in {FOLDER} (set CTX_BENCH_DIR to the folder that holds floor.py and workload.py): "
        "figures are given without a floor and without ratios to it.",
        file=sys.stderr,
    )
    return False


def module(name: str) -> Any:
    """One of the referee's scripts as a module, able to count offline with the vocabulary that this package ships."""
    if "TIKTOKEN_CACHE_DIR" not in os.environ:
        os.environ["TIKTOKEN_CACHE_DIR"] = ranks_folder()
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    sys.dont_write_bytecode = True
    return importlib.import_module(name)


def ranks_folder() -> str:
    """A folder with the plain rank file, made once per user and machine."""
    folder = Path(tempfile.gettempdir()) / f"ctxengine-bench-ranks-{os.geteuid()}"
    target = folder / _RANKS_NAME
    if not target.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        packed = resources.files("ctxengine.engine.tokens") / "data" / "o200k_base.tiktoken.gz"
        partial = folder / f"{_RANKS_NAME}.{os.getpid()}"
        partial.write_bytes(gzip.decompress(packed.read_bytes()))
        partial.replace(target)
    return str(folder)
