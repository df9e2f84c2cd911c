"""Predicted cache reads against those of the strict local provider, step by step, over the whole corpus.

    python -m bench.prediction [--corpus PATH] [--steps 60] [--only FORMAT] [--target NAME] [--show 20]

Every conversation of the corpus is lived again on each API (and, for OpenAI, on each of its two caches), with gaps between the
steps that now and then outlast a cache life. Printed: steps, equal ones in percent, and every difference with what is known of
it. How the two sides are made comparable is said in `bench.replaying`. Exits with 1 where any target stays below 99 % or had
nothing to measure, and with 2 where there is no corpus.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_GAPS = (2.0, 9.0, 30.0, 4.0, 120.0, 3.0, 15.0, 400.0, 5.0, 8.0, 60.0, 2_000.0)
"""Seconds between steps, in turn."""
LEAST_PERCENT = 99
"""Share of steps of each target whose cache reads must be as predicted."""
NO_CORPUS = 2


def main(argv: list[str] | None = None) -> int:
    """Measure on a Postgres of its own; gives the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=None)
    parser.add_argument("--steps", type=int, default=60, help="most steps of one conversation")
    parser.add_argument("--only", default="", help="formats that contain this")
    parser.add_argument("--target", default="", help="targets that contain this, such as gpt-5.4")
    parser.add_argument("--show", type=int, default=20, help="most differences printed per API")
    args = parser.parse_args(argv)
    corpus = args.corpus or Path(os.environ.get("CTX_CORPUS_DIR") or ROOT / "../shared/corpus")
    if not corpus.is_dir():
        print(f"There is no corpus at {corpus}; nothing was measured. Name one with --corpus.")
        return NO_CORPUS
    with tempfile.TemporaryDirectory(prefix="ctxengine-bench-") as folder:
        Path(folder).chmod(0o711)
        os.environ["CTX_DATA_DIR"] = folder
        from ctxengine.site import keys
        from ctxengine.site.postgres.server import EmbeddedPostgres

        keys.ensure(Path(folder))
        server = EmbeddedPostgres(Path(folder), durable=False)
        server.start()
        try:
            os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ctxengine.site.settings")
            import django

            django.setup()
            from django.core.management import call_command

            call_command("migrate", interactive=False, verbosity=0)
            code = exit_code(measure(corpus, args))
        finally:
            from django.db import connections

            connections.close_all()
            server.stop()
    return code


def measure(corpus: Path, args: argparse.Namespace) -> dict[str, list[Any]]:
    """Print one block for each API and model; gives the steps of each."""
    from bench.replaying import TARGETS, Clock, Replaying, on_clock, replay, tools_of
    from ctxengine.engine.importers.registry import NotATranscript, read
    from ctxengine.ledger.models import Tenant
    from ctxengine.service.specs import Actor, ServiceError

    tenant = Tenant.objects.create(
        id=uuid.uuid4(), slug="bench", name="Bench", created_at=datetime.now(UTC)
    )
    actor = Actor(tenant.id, "bench")
    sessions: list[tuple[str, Any]] = []
    for path in files(corpus, args.only):
        try:
            found = read(path.read_text(encoding="utf-8", errors="replace"), name=path.name)
        except NotATranscript:
            continue
        sessions += [(f"{path.parent.name}/{path.name}", one) for one in found.sessions]
    measured: dict[str, list[Any]] = {}
    for provider, model in TARGETS:
        if args.target not in f"{provider} {model}":
            continue
        began, steps, skipped = time.monotonic(), [], Counter[str]()
        for name, foreign in sessions:
            clock = Clock()
            try:
                with on_clock(clock):
                    driver = Replaying(
                        actor,
                        provider,
                        model,
                        name=f"{name}-{uuid.uuid4().hex[:6]}",
                        instructions=foreign.instructions,
                        tools=tools_of(foreign),
                        clock=clock,
                    )
            except ServiceError as error:
                skipped[error.code] += 1
                continue
            driver.name = name
            try:
                with on_clock(clock):
                    for number, _ in enumerate(replay(foreign, driver, most_steps=args.steps)):
                        clock.advance(_GAPS[number % len(_GAPS)])
            except (ServiceError, RuntimeError) as error:
                skipped[f"ended early: {getattr(error, 'code', str(error)[:120])}"] += 1
            steps += driver.compared
        title = f"{provider} {model}"
        measured[title] = steps
        report(title, steps, skipped, time.monotonic() - began, args.show)
    return measured


def exit_code(measured: dict[str, list[Any]]) -> int:
    """0 where every target met the threshold, else 1, with a line for each that did not."""
    below = {title: steps for title, steps in measured.items() if not good_enough(steps)}
    for title, steps in below.items():
        equal = sum(step.equal for step in steps)
        print(f"Below {LEAST_PERCENT} %: {title}, {equal:,} of {len(steps):,} steps as predicted.")
    if not measured:
        print("No target was measured. Name one with --target, or none for all.")
    return 0 if measured and not below else 1


def good_enough(steps: list[Any]) -> bool:
    """Whether enough steps are as predicted; none at all prove nothing."""
    return bool(steps) and 100 * sum(step.equal for step in steps) >= LEAST_PERCENT * len(steps)


def files(corpus: Path, only: str) -> Iterator[Path]:
    """Transcripts of the corpus, in name order."""
    for folder in sorted(path for path in corpus.iterdir() if path.is_dir() and only in path.name):
        yield from sorted(path for path in folder.iterdir() if path.is_file())


def report(title: str, steps: list[Any], skipped: Counter[str], seconds: float, show: int) -> None:
    """Print the figures of one target."""
    equal = sum(step.equal for step in steps)
    exact = sum(step.expected == step.reported for step in steps)
    share = 100 * equal / len(steps) if steps else 0.0
    read = sum(step.reported for step in steps)
    print(
        f"{title}: {len(steps):,} steps, {share:.2f} % equal ({exact:,} to the token), "
        f"{read:,} tokens read, {seconds:.0f} s"
    )
    print(f"  why: {dict(Counter(step.why for step in steps))}")
    print(f"  verdicts: {dict(Counter(step.verdict.get('class') for step in steps))}")
    causes = Counter(step.cause for step in steps if step.cause)
    print(f"  causes: {dict(causes)}")
    short = [step for step in steps if step.verdict.get("class") in ("shortfall", "surplus")]
    for step in short[:show]:
        print(f"  verdict {step.verdict['class']}: {step.session} #{step.step} {step.verdict}")
    for why, count in skipped.items():
        print(f"  left out: {count} ({why})")
    for step in [step for step in steps if not step.equal][:show]:
        print(
            f"  differs: {step.session} #{step.step}: expected {step.expected:,}, "
            f"reported {step.reported:,} ({step.why} {step.cause})"
        )
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
