"""`replays`: a session run again under other engines, models and budgets, without calling a provider (design 8)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpResponse
from pydantic import ValidationError
from rest_framework.request import Request

from api import pagination
from api.answers import json_response, to_json
from api.auth import OPERATE, READ, Scopes
from api.openapi import FREE, TEXT, TIME, UUID_TEXT, WHOLE, listed, nullable, page_of, record
from api.pagination import DEFAULT_LIMIT, Page
from api.schema import Component, Operation, Operations, Parameters
from api.shapes.base import FieldErrors
from api.shapes.containers import ListOf, Member, Record
from api.shapes.scalars import Identifier, Number, Text, Whole
from api.views import Done, JsonWrite, ReadView, WriteView
from ctxengine.engine.lexeme import Node
from ctxengine.ledger.models import ReplayRow
from ctxengine.ledger.queries.paging import Cursor
from ctxengine.ledger.queries.replays import cells_done, list_replays
from ctxengine.service.replay.read_replay import ReplayView, cell_of, cells_of, replay_of
from ctxengine.service.replay.start_replay import start_replay
from ctxengine.service.replay.wanted import (
    LEAST_BUDGET,
    MOST_BUDGET,
    ReplaySettings,
    ReplayWanted,
)
from ctxengine.service.specs import Actor

_NAMES = ListOf(Text(minLength=1, maxLength=250), least=1)
WANTED = Record(
    Member(
        "session", Identifier(), required=True, note="The session to replay; imported ones too."
    ),
    Member("engines", _NAMES, required=True, note="Engines of ours and peer policies, by name."),
    Member("models", _NAMES, required=True, note="Models, as NAME or PROVIDER/NAME."),
    Member(
        "budget",
        Whole(minimum=LEAST_BUDGET, maximum=MOST_BUDGET),
        note="Tokens of a whole request; left out: what the session's policy and the model allow.",
    ),
    Member(
        "ttl",
        Text(minLength=2, maxLength=2),
        note="Life asked for the history's cache entries: `5m` or `1h`.",
    ),
    Member("turn_gap", Number(), note="What if so many seconds passed between turns."),
    Member("low_water", Number(), note="What if a cut left this share of history's room."),
)
_SETTINGS = ("budget", "ttl", "turn_gap", "low_water")
_LINE: dict[str, Any] = {
    "id": UUID_TEXT,
    "session": UUID_TEXT,
    "title": TEXT,
    "engines": listed(TEXT),
    "models": listed(TEXT),
    "settings": FREE,
    "job": nullable(UUID_TEXT),
    "asked_by": TEXT,
    "created_at": TIME,
    "cells_wanted": WHOLE,
}
REPLAY_LINE = Component("ReplayLine", record(_LINE | {"cells_done": WHOLE}))
LAB_REPLAY = Component(
    "LabReplay",
    record(
        _LINE
        | {
            "cells": listed(
                {**FREE, "description": "Totals of one engine on one model, as they finish."}
            )
        }
    ),
)
CELL_STEPS = Component(
    "ReplaySteps",
    record(
        {
            "number": WHOLE,
            "engine": TEXT,
            "provider": TEXT,
            "model": TEXT,
            "figures": FREE,
            "notes": listed(TEXT),
            "skipped": TEXT,
            "steps": listed(
                {**FREE, "description": "One step: tokens, cache, cost, yields, fidelity."}
            ),
        }
    ),
)


class ReplayWrite(JsonWrite[ReplayWanted]):
    """`POST replays`."""

    def parse(self, body: Node) -> ReplayWanted:
        """What to replay."""
        values = WANTED.read(body, "")
        given = {name: values.pop(name) for name in _SETTINGS if name in values}
        try:
            return ReplayWanted(**values, settings=ReplaySettings(**given))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise FieldErrors.one(place, f"{first['msg']}.") from None

    def perform(self, actor: Actor, spec: ReplayWanted, ids: Mapping[str, Any]) -> Done:
        """Ask for it."""
        row = start_replay(actor=actor, wanted=spec, cause="REST")
        return Done({"replay": str(row.id)}, _view(row), 202)

    def rebuild(self, actor: Actor, resource: Mapping[str, Any]) -> bytes:
        """The replay as it stands now."""
        return _view(replay_of(actor=actor, replay_id=UUID(resource["replay"])))


def _view(row: ReplayRow) -> bytes:
    return to_json(ReplayView(row, cells_of(row)).as_json())


class ReplaysView(WriteView):
    """The replays of a tenant."""

    scopes: ClassVar[Scopes] = {"GET": READ, "POST": OPERATE}
    write = ReplayWrite()
    parameters: ClassVar[Parameters] = {
        "session": pagination.identifier("Only replays of this session."),
        "limit": pagination.limit(),
        "cursor": pagination.cursor(datetime, UUID),
    }
    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="list_replays",
            summary="List replays, the newest first",
            tag="replays",
            answer=page_of("ReplayPage", REPLAY_LINE),
            answer_note="One page.",
            parameters=parameters,
            problems=("invalid_parameter", "invalid_cursor"),
        ),
        "POST": Operation(
            id="start_replay",
            summary="Replay a session under other engines, models and budgets",
            tag="replays",
            body=WANTED,
            status=202,
            answer=LAB_REPLAY,
            answer_note="The replay; its cells fill as the job works.",
            problems=("unknown_engine", "unknown_model", "too_many_cells", "not_found"),
        ),
    }

    def get(self, request: Request) -> HttpResponse:
        """One page of replays."""
        tenant, query = self.actor().tenant_id, self.query()
        after = query.get("cursor")
        found = list_replays(
            tenant,
            after=Cursor(*after) if after else None,
            size=query.get("limit", DEFAULT_LIMIT),
            session_id=query.get("session"),
        )
        done = cells_done(tenant, (row.id for row in found.rows))
        items = []
        for row in found.rows:
            line = ReplayView(row, []).as_json()
            del line["cells"]
            items.append(to_json(line | {"cells_done": done.get(row.id, 0)}))
        last = found.rows[-1] if found.rows else None
        key = [last.created_at.isoformat(), str(last.id)] if last and found.after else None
        return json_response(Page(items, key).as_json())


class LabReplayView(ReadView):
    """One replay."""

    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="get_replay",
            summary="Look at a replay: the totals of each cell that is there",
            tag="replays",
            answer=LAB_REPLAY,
            answer_note="The replay.",
        )
    }

    def get(self, request: Request, replay: UUID) -> HttpResponse:
        """The replay."""
        self.query()
        return json_response(_view(replay_of(actor=self.actor(), replay_id=replay)))


class ReplayStepsView(ReadView):
    """The steps of one cell."""

    operations: ClassVar[Operations] = {
        "GET": Operation(
            id="get_replay_steps",
            summary="Look at one cell of a replay, step by step",
            tag="replays",
            answer=CELL_STEPS,
            answer_note="The cell.",
        )
    }

    def get(self, request: Request, replay: UUID, cell: int) -> HttpResponse:
        """The cell."""
        self.query()
        row = cell_of(replay_of(actor=self.actor(), replay_id=replay), cell)
        return json_response(
            to_json(
                {
                    "number": row.number,
                    "engine": row.engine,
                    "provider": row.provider,
                    "model": row.model,
                    "figures": row.figures,
                    "notes": row.notes,
                    "skipped": row.skipped,
                    "steps": row.steps,
                }
            )
        )
