"""Keeps the processes of one instance running, and ends them all together.

Children die with the supervisor, even when it is killed: the kernel signals them (on Linux).
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

_PR_SET_PDEATHSIG = 1
_TICK_S = 0.25
_QUICK_DEATH_S = 10
"""A child that lives shorter than this has failed to start rather than been killed."""
_QUICK_DEATHS_ALLOWED = 5
_STOP_GRACE_S = 15


class SupervisorError(RuntimeError):
    """Something that should run does not, and starting it again does not help."""


@dataclass
class Child:
    """One supervised process."""

    name: str
    command: list[str]
    environment: Mapping[str, str]
    folder: str
    inherited: tuple[int, ...] = ()
    """File descriptors that it may use, such as a listening socket."""
    silent: bool = False
    """Whether its stdout goes nowhere; stderr never does."""
    before: Callable[[int], None] | None = None
    """Called before each start with the number of starts in a row that failed."""
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _started_at: float = field(default=0.0, init=False)
    _quick_deaths: int = field(default=0, init=False)

    def start(self) -> None:
        """Start it. What it prints goes to stderr: stdout belongs to the supervisor's own answer."""
        if self.before is not None:
            self.before(self._quick_deaths)
        self._started_at = time.monotonic()
        # Its own session: a Ctrl-C in the terminal comes to the supervisor alone, which ends things in order.
        self._process = subprocess.Popen(
            self.command, env=dict(self.environment), cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if self.silent else sys.stderr.fileno(), pass_fds=self.inherited, start_new_session=True,
            preexec_fn=_dies_with(os.getpid()),
        )  # fmt: skip

    def revive(self) -> bool:
        """Start it again where it has ended; True where it had.

        Raises:
            SupervisorError: it keeps ending right after its start.
        """
        if self._process is None or self._process.poll() is None:
            return False
        lived = time.monotonic() - self._started_at
        self._quick_deaths = self._quick_deaths + 1 if lived < _QUICK_DEATH_S else 0
        if self._quick_deaths > _QUICK_DEATHS_ALLOWED:
            raise SupervisorError(
                f"The {self.name} process ends right after its start"
                f" (status {self._process.returncode}); its last lines above say why."
            )
        time.sleep(min(2.0, 0.1 * 2**self._quick_deaths))
        self.start()
        return True

    def stop(self) -> None:
        """Ask it to end, and after a while make it."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Supervisor:
    """Watches children, and things that are mended rather than restarted (a database)."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._children: list[Child] = []
        self._checks: list[Callable[[], bool]] = []

    def add(self, child: Child) -> None:
        """Start a child and watch it."""
        child.start()
        self._children.append(child)

    def add_check(self, mend: Callable[[], bool]) -> None:
        """Call `mend` on every round; it answers True where it had to mend something."""
        self._checks.append(mend)

    def tick(self) -> None:
        """One round over everything, then a short rest.

        Raises:
            SupervisorError: a child cannot be kept alive.
        """
        for mend in self._checks:
            if mend():
                self._say("The database had stopped; it runs again.")
        for child in self._children:
            if child.revive():
                self._say(f"The {child.name} process had ended; it was started again.")
        time.sleep(_TICK_S)

    def wait_until(self, ready: Callable[[], bool], *, seconds: float, what: str) -> None:
        """Go round until `ready` says so.

        Raises:
            SupervisorError: it does not come to that in time.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > deadline:
                raise SupervisorError(f"{what} did not come within {seconds:.0f} s.")
            self.tick()

    def stop(self) -> None:
        """End the children, the last one started first."""
        for child in reversed(self._children):
            child.stop()


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Turn SIGTERM, SIGINT and SIGHUP into SystemExit(0), once: what follows them is left to finish."""

    def end(_number: int, _frame: FrameType | None) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise SystemExit(0)

    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _dies_with(parent: int) -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def ask_the_kernel() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)  # the parent died before the kernel knew

    return ask_the_kernel
