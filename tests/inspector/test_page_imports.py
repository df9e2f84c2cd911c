"""Imports: the list, the report, the form."""

from __future__ import annotations

import json

from django.core.files.uploadedfile import SimpleUploadedFile
from pytest_django import Settings

from ctxengine.ledger.models import ImportRow
from tests.inspector.conftest import Cast

TRANSCRIPT = json.dumps(
    {
        "model": "gpt-4o",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is left?"},
            {"role": "assistant", "content": "Two boxes."},
        ],
    }
).encode()


def upload(data: bytes, name: str = "talk.json") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, data)


def test_a_transcript_is_imported_once(cast: Cast) -> None:
    url = cast.url("imports/")
    first = cast.operator.post(url, {"file": upload(TRANSCRIPT)})
    assert first.status_code == 200, first.content.decode()[:3000]
    assert "✓ Imported" in first.content.decode()
    again = cast.operator.post(url, {"file": upload(TRANSCRIPT)})
    assert "nothing changed" in again.content.decode()
    assert ImportRow.objects.filter(tenant_id=cast.tenant.id).count() == 1
    page = cast.page(f"imports/{ImportRow.objects.get(tenant_id=cast.tenant.id).sha256}/")
    assert "Every item of the file is accounted for" in page


def test_a_rehearsal_keeps_nothing(cast: Cast) -> None:
    response = cast.operator.post(
        cast.url("imports/"), {"file": upload(TRANSCRIPT), "rehearse": "1"}
    )
    assert "nothing was kept" in response.content.decode()
    assert not ImportRow.objects.exists()


def test_what_is_no_transcript_is_refused_with_the_reason(cast: Cast) -> None:
    response = cast.operator.post(cast.url("imports/"), {"file": upload(b"<html>hello")})
    assert response.status_code == 422
    assert "✕ Refused" in response.content.decode()


def test_a_file_over_the_limit_is_not_read(cast: Cast, settings: Settings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100_000
    response = cast.operator.post(cast.url("imports/"), {"file": upload(b"x" * 200_000)})
    assert response.status_code == 413
    assert "100 kB are allowed" in response.content.decode()


def test_no_file_and_an_empty_file_are_told(cast: Cast) -> None:
    assert cast.operator.post(cast.url("imports/")).status_code == 400
    assert (
        "The file is empty"
        in cast.operator.post(cast.url("imports/"), {"file": upload(b"")}).content.decode()
    )


def test_a_viewer_sees_no_form_and_cannot_post(cast: Cast) -> None:
    assert b'type="file"' not in cast.viewer.get(cast.url("imports/")).content
    response = cast.viewer.post(cast.url("imports/"), {"file": upload(TRANSCRIPT)})
    assert response.status_code == 403
    assert not ImportRow.objects.exists()


def test_a_hostile_file_name_is_only_text(cast: Cast) -> None:
    name = "<img src=x onerror=alert(1)>\u202e.json"
    page = cast.operator.post(
        cast.url("imports/"), {"file": upload(TRANSCRIPT, name)}
    ).content.decode()
    assert "<img" not in page
    assert "\u202e" not in page
