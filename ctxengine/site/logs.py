"""Structured logs: one JSON object a line on stderr. Bodies, queries and parameters never stand in them."""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any

_MESSAGE_LIMIT_CHARS = 300
_FRAME_LIMIT = 25
_TALKATIVE = ("anthropic", "httpcore2", "httpx2", "openai")
"""Clients that write request bodies, or a line for every call, into their lower levels."""


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON line.

    Of an exception it keeps the type, the first line of its message (databases put values in the later ones) and
    the frames, without source text.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line, without a newline."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _first_line(record.getMessage()),
        }
        status = getattr(record, "status_code", None)
        if isinstance(status, int):
            line["status"] = status
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line["error"] = type(error).__name__
            line["error_message"] = _first_line(str(error))
            frames = traceback.extract_tb(record.exc_info[2])[-_FRAME_LIMIT:]
            line["frames"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        return json.dumps(line, ensure_ascii=True)


def logging_settings(level: str) -> dict[str, Any]:
    """Django's LOGGING: everything from `level` up, to stderr."""
    quiet = "ERROR" if level == "ERROR" else "WARNING"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "ctxengine.site.logs.JsonFormatter"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "level": level, "propagate": True},
            **{name: {"level": quiet} for name in _TALKATIVE},
        },
    }


def _first_line(message: str) -> str:
    line = message.partition("\n")[0]
    return line if len(line) <= _MESSAGE_LIMIT_CHARS else line[:_MESSAGE_LIMIT_CHARS] + "…"
