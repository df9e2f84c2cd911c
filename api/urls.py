"""Addresses of the REST door. Anything else under it is a problem document too, not a page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, path, re_path, register_converter
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.views import SpectacularAPIView

from api.problems import problem_response
from api.schema import docs
from api.v1.assemble import AssembleView
from api.v1.authority import AuthorityDocumentView
from api.v1.capacity import CapacityView
from api.v1.cards import CardsView
from api.v1.compactions import CompactionsView, UndoCompactionView
from api.v1.configure import ConfiguredSessionView
from api.v1.ends import EndRunView, EndSessionView
from api.v1.epochs import EpochsView
from api.v1.events import EventsView
from api.v1.evidence import EvidenceView, SessionEvidenceView
from api.v1.exports import ExportView
from api.v1.imports import ImportsView, ImportView
from api.v1.items import ItemView
from api.v1.jobs import CancelJobView, JobsView, JobView, RetryJobView
from api.v1.metrics import MetricsView
from api.v1.people import ErasePersonView
from api.v1.personas import PersonaDocumentView, PersonasView
from api.v1.plans import CurrentPlanView, EpochPlanView, PlansView
from api.v1.presentation import PresentationView
from api.v1.presentations import (
    FeedbackView,
    PresentationEventView,
    PresentationsView,
    SelectionView,
)
from api.v1.replays import LabReplayView, ReplayStepsView, ReplaysView
from api.v1.requests import DiffView, ReplayView, RequestBodyView, RequestsView, RequestView
from api.v1.reset import ResetView
from api.v1.responses import ResponsesView
from api.v1.retention import RetentionView
from api.v1.runs import RunsView
from api.v1.sessions import SessionsView
from api.v1.tool_acts import RestoreToolView, RevokeToolView
from api.v1.tool_results import InputView, ToolResultsView
from api.v1.working_state import WorkingStateView
from ctxengine.engine.ids import ItemId, parse_item_id


class ItemConverter:
    """An item id in an address: `12.0`."""

    regex = r"[0-9]{1,18}\.[0-9]{1,9}"

    def to_python(self, value: str) -> ItemId:
        """The id."""
        return parse_item_id(value)

    def to_url(self, value: ItemId | str) -> str:
        """Its text."""
        return str(value)


class DigestConverter:
    """A SHA-256 in an address."""

    regex = "[0-9a-f]{64}"

    def to_python(self, value: str) -> str:
        """The digits."""
        return value

    def to_url(self, value: str) -> str:
        """The digits."""
        return value


class EpochConverter:
    """An epoch number in an address."""

    regex = "[1-9][0-9]{0,8}"

    def to_python(self, value: str) -> int:
        """The number."""
        return int(value)

    def to_url(self, value: int) -> str:
        """Its digits."""
        return str(value)


@csrf_exempt
def nothing_here(request: HttpRequest, rest: str) -> HttpResponse:
    """The answer for every other address."""
    return problem_response(
        "not_found", 404, "There is no such address; /api/docs/ lists those there are."
    )


register_converter(ItemConverter, "ctx_item")
register_converter(DigestConverter, "ctx_sha256")
register_converter(EpochConverter, "ctx_epoch")

_SESSION = "v1/sessions/<uuid:session>"
_RUN = "v1/runs/<uuid:run>"
_REQUEST = "v1/requests/<uuid:wanted>"

urlpatterns: list[URLPattern | URLResolver] = [
    path("schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("docs/", docs, name="api-docs"),
    path("v1/sessions", SessionsView.as_view(), name="api-sessions"),
    path("v1/retention", RetentionView.as_view(), name="api-retention"),
    path(_SESSION, ConfiguredSessionView.as_view(), name="api-session"),
    path(f"{_SESSION}/working-state", WorkingStateView.as_view(), name="api-working-state"),
    path(f"{_SESSION}/compactions", CompactionsView.as_view(), name="api-compactions"),
    path(
        f"{_SESSION}/compactions/<ctx_epoch:event>/undo",
        UndoCompactionView.as_view(),
        name="api-undo-compaction",
    ),
    path(f"{_SESSION}/presentation", PresentationView.as_view(), name="api-presentation"),
    path(f"{_SESSION}/presentations", PresentationsView.as_view(), name="api-presentations"),
    path(
        f"{_SESSION}/presentations/<ctx_epoch:event>",
        PresentationEventView.as_view(),
        name="api-presentation-event",
    ),
    path(
        f"{_SESSION}/presentations/<ctx_epoch:event>/feedback",
        FeedbackView.as_view(),
        name="api-presentation-feedback",
    ),
    path(
        f"{_SESSION}/presentations/<ctx_epoch:event>/selection",
        SelectionView.as_view(),
        name="api-presentation-selection",
    ),
    path(f"{_SESSION}/authority", AuthorityDocumentView.as_view(), name="api-authority"),
    path(f"{_SESSION}/tools/<path:tool>/revoke", RevokeToolView.as_view(), name="api-revoke-tool"),
    path(
        f"{_SESSION}/tools/<path:tool>/restore", RestoreToolView.as_view(), name="api-restore-tool"
    ),
    path(f"{_SESSION}/runs", RunsView.as_view(), name="api-runs"),
    path(f"{_SESSION}/end", EndSessionView.as_view(), name="api-end-session"),
    path(f"{_SESSION}/reset", ResetView.as_view(), name="api-reset-session"),
    path(f"{_SESSION}/epochs", EpochsView.as_view(), name="api-epochs"),
    path(f"{_SESSION}/events", EventsView.as_view(), name="api-events"),
    path(f"{_SESSION}/requests", RequestsView.as_view(), name="api-requests"),
    path(f"{_SESSION}/export", ExportView.as_view(), name="api-export"),
    path(f"{_SESSION}/items/<ctx_item:item>", ItemView.as_view(), name="api-item"),
    path(f"{_SESSION}/cards", CardsView.as_view(), name="api-cards"),
    path(
        f"{_SESSION}/evidence/<ctx_item:item>",
        SessionEvidenceView.as_view(),
        name="api-session-evidence",
    ),
    path("v1/evidence/<uuid:session>:<ctx_item:item>", EvidenceView.as_view(), name="api-evidence"),
    path(f"{_SESSION}/plan", CurrentPlanView.as_view(), name="api-plan"),
    path(f"{_SESSION}/plans", PlansView.as_view(), name="api-plans"),
    path(f"{_SESSION}/plans/<ctx_epoch:epoch>", EpochPlanView.as_view(), name="api-epoch-plan"),
    path(f"{_RUN}/assemble", AssembleView.as_view(), name="api-assemble"),
    path(f"{_RUN}/responses", ResponsesView.as_view(), name="api-responses"),
    path(f"{_RUN}/tool-results", ToolResultsView.as_view(), name="api-tool-results"),
    path(f"{_RUN}/input", InputView.as_view(), name="api-input"),
    path(f"{_RUN}/end", EndRunView.as_view(), name="api-end-run"),
    path(_REQUEST, RequestView.as_view(), name="api-request"),
    path(f"{_REQUEST}/body", RequestBodyView.as_view(), name="api-request-body"),
    path(f"{_REQUEST}/replay", ReplayView.as_view(), name="api-replay"),
    path(f"{_REQUEST}/diff/<uuid:other>", DiffView.as_view(), name="api-diff"),
    path("v1/personas", PersonasView.as_view(), name="api-personas"),
    path("v1/personas/<path:principal>", PersonaDocumentView.as_view(), name="api-persona"),
    path("v1/people/<path:principal>/erase", ErasePersonView.as_view(), name="api-erase-person"),
    path("v1/capacity-profiles", CapacityView.as_view(), name="api-capacity-profiles"),
    path("v1/metrics", MetricsView.as_view(), name="api-metrics"),
    path("v1/jobs", JobsView.as_view(), name="api-jobs"),
    path("v1/jobs/<uuid:job>", JobView.as_view(), name="api-job"),
    path("v1/jobs/<uuid:job>/cancel", CancelJobView.as_view(), name="api-cancel-job"),
    path("v1/jobs/<uuid:job>/retry", RetryJobView.as_view(), name="api-retry-job"),
    path("v1/replays", ReplaysView.as_view(), name="api-replays"),
    path("v1/replays/<uuid:replay>", LabReplayView.as_view(), name="api-lab-replay"),
    path(
        "v1/replays/<uuid:replay>/cells/<ctx_epoch:cell>/steps",
        ReplayStepsView.as_view(),
        name="api-replay-steps",
    ),
    path("v1/imports", ImportsView.as_view(), name="api-imports"),
    path("v1/imports/<ctx_sha256:sha256>", ImportView.as_view(), name="api-import"),
    # Line ends included, or such an address would be answered by the console's page.
    re_path(r"^(?P<rest>[\s\S]*)\Z", nothing_here),
]
