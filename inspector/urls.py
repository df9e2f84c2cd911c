"""Addresses of the console; every page of a tenant lives under its name."""

from __future__ import annotations

from django.contrib.auth import views as auth
from django.urls import path, register_converter

from inspector.pages import (
    agents,
    alerts,
    api_keys,
    audit,
    configure,
    diff,
    evidence,
    glossary,
    history_acts,
    home,
    imports,
    items,
    jobs,
    jump,
    lab,
    lab_step,
    members,
    metrics,
    models,
    overview,
    personas,
    prove,
    providers,
    request_change,
    request_events,
    request_items,
    request_json,
    request_rows,
    requests,
    rotate,
    search,
    session,
    session_checkpoints,
    session_compactions,
    session_epochs,
    session_events,
    session_plan,
    session_state,
    session_turns,
    sessions,
    shortcuts,
    styleguide,
    take_away,
    tool_acts,
    views,
)
from inspector.render import PageTwinConverter, TwinConverter

register_converter(TwinConverter, "list_twin")
register_converter(PageTwinConverter, "page_twin")
register_converter(items.ItemConverter, "item")
register_converter(personas.PrincipalConverter, "principal")
register_converter(models.ModelKeyConverter, "model_key")

app_name = "inspector"

T = "t/<slug:slug>"
S = f"{T}/sessions/<uuid:session_id>"
R = f"{T}/requests/<uuid:request_id>"

urlpatterns = [
    path("", home.home, name="home"),
    path("login/", auth.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path(f"{T}/", overview.overview, name="overview"),
    path(f"{T}/overview<page_twin:twin>", overview.overview, name="overview-twin"),
    path(f"{T}/sessions<list_twin:twin>", sessions.sessions, name="sessions"),
    path(f"{S}<page_twin:twin>", session.session, name="session"),
    path(f"{S}/events<list_twin:twin>", session_events.session_events, name="session-events"),
    path(f"{S}/events/<int:sequence>/", session_events.body, name="event-body"),
    path(f"{S}/events/<int:sequence>/raw", session_events.raw_body, name="event-raw"),
    path(f"{S}/plan<list_twin:twin>", session_plan.session_plan, name="session-plan"),
    path(f"{S}/plan/tool/", tool_acts.tool_act, name="tool-act"),
    path(f"{S}/epochs<list_twin:twin>", session_epochs.session_epochs, name="session-epochs"),
    path(f"{S}/epochs/diff<page_twin:twin>", session_epochs.epoch_diff, name="epoch-diff"),
    path(f"{S}/epochs/rotate/", rotate.rotate, name="rotate"),
    path(f"{S}/state<list_twin:twin>", session_state.session_state, name="session-state"),
    path(f"{S}/state/lift/", session_state.lift_constraint, name="lift-constraint"),
    path(
        f"{S}/checkpoints<list_twin:twin>",
        session_checkpoints.session_checkpoints,
        name="session-checkpoints",
    ),
    path(
        f"{S}/checkpoints/<int:event>/undo/", session_checkpoints.undo, name="undo-checkpoint"
    ),
    path(
        f"{S}/compactions<list_twin:twin>",
        session_compactions.session_compactions,
        name="session-compactions",
    ),
    path(f"{S}/compactions/new/", history_acts.compact_now, name="compact-now"),
    path(f"{S}/compactions/mark/", history_acts.mark, name="mark"),
    path(f"{S}/compactions/<int:event>/undo/", history_acts.undo, name="undo-compaction"),
    path(f"{S}/items/<item:item_id>/", items.item, name="item"),
    path(f"{S}/f/item/<item:item_id>/", items.item_fragment, name="item-fragment"),
    path(f"{T}/requests<list_twin:twin>", requests.requests, name="requests"),
    path(f"{R}<page_twin:twin>", request_rows.request_rows, name="request"),
    path(f"{R}/items<list_twin:twin>", request_items.request_items, name="request-items"),
    path(f"{R}/json/", request_json.request_json, name="request-json"),
    path(f"{R}/raw", request_json.request_raw, name="request-raw"),
    path(f"{R}/f/part/", request_json.json_part, name="json-part"),
    path(f"{R}/change<page_twin:twin>", request_change.request_change, name="request-change"),
    path(f"{R}/events/", request_events.request_events, name="request-events"),
    path(f"{R}/prove/", prove.prove, name="prove"),
    path(
        f"{T}/requests/<uuid:before_id>/diff/<uuid:after_id><page_twin:twin>",
        diff.diff,
        name="diff",
    ),
    path(f"{T}/diff/", diff.pick, name="diff-pick"),
    path(f"{T}/metrics<list_twin:twin>", metrics.metrics_page, name="metrics"),
    path(f"{T}/personas<list_twin:twin>", personas.personas, name="personas"),
    path(
        f"{T}/personas/preview/<principal:principal>/",
        personas.persona_preview,
        name="persona-preview",
    ),
    path(
        f"{T}/personas/of/<principal:principal><list_twin:twin>", personas.persona, name="persona"
    ),
    path(f"{T}/providers<list_twin:twin>", providers.providers, name="providers"),
    path(f"{T}/models<list_twin:twin>", models.models, name="models"),
    path(f"{T}/models/of/<model_key:key><page_twin:twin>", models.model, name="model"),
    path(f"{T}/f/models/<model_key:key>/ladder/", models.ladder, name="model-ladder"),
    path(f"{T}/agents<list_twin:twin>", agents.agents, name="agents"),
    path(f"{T}/policies<list_twin:twin>", agents.policies, name="policies"),
    path(f"{T}/imports<list_twin:twin>", imports.imports, name="imports"),
    path(f"{T}/imports/jobs/<uuid:job_id>/", imports.import_progress, name="import-job"),
    path(f"{T}/imports/<slug:sha256><page_twin:twin>", imports.import_report, name="import"),
    path(f"{T}/imports/<slug:sha256>/text/<int:place>/", imports.repair_text, name="repair-text"),
    path(f"{T}/jobs<list_twin:twin>", jobs.jobs, name="jobs"),
    path(f"{T}/jobs/<uuid:job_id><page_twin:twin>", jobs.job, name="job"),
    path(f"{T}/lab<page_twin:twin>", lab.lab, name="lab"),
    path(f"{T}/lab/<uuid:replay_id><list_twin:twin>", lab.replay, name="lab-replay"),
    path(f"{T}/f/lab/<uuid:replay_id>/matrix/", lab.matrix, name="lab-matrix"),
    path(f"{T}/lab/<uuid:replay_id>/cells/<int:number><list_twin:twin>", lab.cell, name="lab-cell"),
    path(
        f"{T}/lab/<uuid:replay_id>/cells/<int:number>/steps/<int:step>/",
        lab_step.step,
        name="lab-step",
    ),
    path(
        f"{T}/lab/<uuid:replay_id>/cells/<int:number>/steps/<int:step>/raw",
        lab_step.raw,
        name="lab-step-raw",
    ),
    path(f"{S}/turns<list_twin:twin>", session_turns.session_turns, name="session-turns"),
    path(f"{S}/evidence/<item:item_id><page_twin:twin>", evidence.evidence, name="evidence"),
    path(f"{S}/prove/", prove.prove_newest, name="prove-newest"),
    path(f"{S}/settings/", configure.configure, name="configure"),
    path(f"{R}/take-away/", take_away.take_away, name="request-take-away"),
    path(f"{R}/ticket", take_away.ticket, name="request-ticket"),
    path(f"{R}/curl", take_away.curl, name="request-curl"),
    path(f"{T}/search<list_twin:twin>", search.search, name="search"),
    path(f"{T}/views/save/", views.save, name="save-view"),
    path(f"{T}/views/<uuid:view_id>/remove/", views.remove, name="remove-view"),
    path(f"{T}/alerts<list_twin:twin>", alerts.alerts, name="alerts"),
    path(f"{T}/audit<list_twin:twin>", audit.audit, name="audit"),
    path(f"{T}/api-keys<list_twin:twin>", api_keys.api_keys, name="api-keys"),
    path(f"{T}/members<list_twin:twin>", members.members, name="members"),
    path(f"{T}/glossary<page_twin:twin>", glossary.glossary, name="glossary"),
    path(f"{T}/tour/", glossary.tour, name="tour"),
    path(f"{T}/styleguide/", styleguide.styleguide, name="styleguide"),
    path(f"{T}/jump/", jump.jump, name="jump"),
    path(f"{T}/keys/", shortcuts.shortcuts, name="keys"),
]
