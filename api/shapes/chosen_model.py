"""The shape that names a model: of a session, or of a fallback leg."""

from __future__ import annotations

from api.shapes.containers import Member, Record
from api.shapes.scalars import Text, Whole
from ctxengine.service.specs import ModelRef

MODEL = Record(
    Member("provider", Text(), required=True),
    Member("name", Text(), required=True),
    Member("window", Whole()),
    Member("max_output", Whole()),
    spec=ModelRef,
)
