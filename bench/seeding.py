"""Filling a session's log with a long past, straight through the ledger, and an empty database for the floor."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ctxengine.site.settings")
django.setup()

from django.db import connection  # noqa: E402

from ctxengine.engine.derive import Derivation  # noqa: E402
from ctxengine.engine.events import EventDraft, EventType  # noqa: E402
from ctxengine.engine.ids import EventSeq  # noqa: E402
from ctxengine.engine.items import ContentFormat, ItemKind  # noqa: E402
from ctxengine.engine.ports import OpenCall  # noqa: E402
from ctxengine.engine.trust.levels import Trust  # noqa: E402
from ctxengine.ledger.models import SessionRow  # noqa: E402
from ctxengine.service.drafts import content_draft  # noqa: E402
from ctxengine.service.wiring import counter_of, log_of  # noqa: E402

_EVENT_OF_ROLE = {
    "user": (EventType.USER_MESSAGE, Trust.USER, "user"),
    "assistant": (EventType.RESPONSE_COMPLETED, Trust.MODEL, "model"),
    "tool": (EventType.TOOL_RESULT, Trust.EXTERNAL_UNTRUSTED, "tool"),
}
_BATCH = 200


def fill(session_id: str, messages: list[dict[str, Any]]) -> None:
    """Append OpenAI chat messages as closed history."""
    session = SessionRow.objects.get(id=session_id)
    log, derivation = log_of(session), Derivation(counter_of(session.provider, session.model))
    calls: dict[str, OpenCall] = {}
    drafts: list[EventDraft] = []
    head = log.head().sequence
    for message in messages:
        kind, trust, source = _EVENT_OF_ROLE[message["role"]]
        sequence = EventSeq(head + len(drafts) + 1)
        draft = content_draft(
            log,
            type=kind,
            format=ContentFormat.OPENAI_CHAT,
            raw=json.dumps(message),
            trust=trust,
            sequence=sequence,
            derivation=derivation,
            run=None,
            source=source,
            answers=calls.pop(message["tool_call_id"]) if message["role"] == "tool" else None,
        )
        for item in draft.items:
            if item.kind is ItemKind.TOOL_CALL:
                calls[item.call_id] = OpenCall(
                    sequence, item.ordinal, item.name, item.call_id, item.wire_call_id, None
                )
        drafts.append(draft)
        if len(drafts) >= _BATCH and not calls:
            log.append(drafts, expected=head, at=datetime.now(UTC))
            head, drafts = log.head().sequence, []
    log.append(drafts, expected=head, at=datetime.now(UTC))


def floor_database() -> str:
    """Make an empty database beside ours; gives its connection string."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE bench_floor")
    names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD"}
    parts = [
        f"{key}={connection.settings_dict[name]}"
        for key, name in names.items()
        if connection.settings_dict[name]
    ]
    return " ".join([*parts, "dbname=bench_floor"])
