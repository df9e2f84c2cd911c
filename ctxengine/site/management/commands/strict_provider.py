"""`manage.py strict_provider`: the strict local provider in the foreground."""

from __future__ import annotations

import signal
import threading
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ctxengine.providers.strict_local.provider import StrictProvider
from ctxengine.providers.strict_local.server import StrictServer

_DEFAULT_PORT = 8010


class Command(BaseCommand):
    """Serves scripted models to the official SDKs until it is told to stop."""

    help = (
        "Serve a stand-in for Anthropic, OpenAI and Ollama on this machine: it refuses what they refuse, keeps a"
        " prefix cache as they do, and answers by script."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--port", type=int, default=_DEFAULT_PORT, help="default 8010; 0 takes a free one"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Serve until SIGTERM or Ctrl-C.

        Raises:
            CommandError: the port is taken.
        """
        try:
            server = StrictServer(StrictProvider(), options["port"])
        except (OSError, OverflowError) as error:
            raise CommandError(
                f"Cannot listen on port {options['port']}: {error}. Choose another with --port."
            ) from error
        ended = threading.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: ended.set())
        with server:
            self.stdout.write(f"Strict local provider at {server.url} (every answer is scripted)")
            self.stdout.write(f"  ANTHROPIC_BASE_URL={server.url}")
            self.stdout.write(f"  OPENAI_BASE_URL={server.openai_url}")
            self.stdout.write(f"  OLLAMA_HOST={server.url}")
            self.stdout.flush()
            ended.wait()
