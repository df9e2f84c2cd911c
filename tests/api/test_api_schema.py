"""The OpenAPI document is valid, complete, and what the answers look like."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.test import Client
from jsonschema import Draft4Validator

from api.problems import PROBLEMS
from api.urls import urlpatterns
from tests.api.door import Door, api_document

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return api_document()


def test_the_document_validates_without_a_warning(tmp_path: Path) -> None:
    target = tmp_path / "schema.yaml"
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(target))
    assert yaml.safe_load(target.read_text(encoding="utf-8"))["paths"]


def test_the_document_is_the_same_however_often_it_is_made() -> None:
    made = [Client().get("/api/schema/").content for _ in range(3)]
    assert made[0] == made[1] == made[2]
    document = yaml.safe_load(made[0])
    references = set(re.findall(rb"#/components/schemas/(\w+)", made[0]))
    assert {name.decode() for name in references} <= set(document["components"]["schemas"])


def test_every_address_and_method_is_described(document: dict[str, Any]) -> None:
    described = {
        (path, method)
        for path, item in document["paths"].items()
        for method in item
        if method.upper() in METHODS
    }
    declared = 0
    for pattern in urlpatterns:
        view = getattr(getattr(pattern, "callback", None), "cls", None)
        operations = getattr(view, "operations", None)
        if operations is not None:
            declared += len(operations)
            served = {name for name in METHODS if name.lower() in view.http_method_names}
            assert {name for name in served if hasattr(view, name.lower())} == set(operations)
    assert len(described) == declared > 20


def test_every_operation_names_its_key_its_refusals_and_its_idempotency(
    document: dict[str, Any],
) -> None:
    ids = []
    for item in document["paths"].values():
        for method, operation in item.items():
            ids.append(operation["operationId"])
            assert operation["security"] == [{"apiKey": []}]
            assert {"401", "403"} <= set(operation["responses"])
            for status, response in operation["responses"].items():
                if status >= "400":
                    assert list(response["content"]) == ["application/problem+json"]
            names = {parameter["name"] for parameter in operation.get("parameters", ())}
            assert ("Idempotency-Key" in names) is (method != "get")
    assert len(set(ids)) == len(ids)


def test_bodies_are_closed_except_where_foreign_content_stands(document: dict[str, Any]) -> None:
    body = document["paths"]["/api/v1/sessions"]["post"]["requestBody"]["content"][
        "application/json"
    ]
    session = body["schema"]
    assert session["additionalProperties"] is False
    assert session["required"] == ["model", "agent"]
    assert session["properties"]["engine"]["enum"] == ["suffix", "working_set", "boundary"]
    tool = session["properties"]["tools"]["items"]
    assert tool["properties"]["input_schema"]["additionalProperties"] is True
    assert tool["properties"]["name"]["maxLength"] == 200


def resolved(schema: Any, document: dict[str, Any]) -> Any:
    """JSON Schema (draft 4, which OpenAPI 3.0 extends) without references and with null made plain."""
    if isinstance(schema, list):
        return [resolved(member, document) for member in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return resolved(document["components"]["schemas"][name], document)
    plain = {
        name: resolved(member, document) for name, member in schema.items() if name != "nullable"
    }
    return {"anyOf": [plain, {"type": "null"}]} if schema.get("nullable") is True else plain


def check(document: dict[str, Any], path: str, method: str, answer: Any) -> None:
    response = document["paths"][f"/api/v1/{path}"][method]["responses"][str(answer.status)]
    (content,) = response["content"].values()
    errors = list(Draft4Validator(resolved(content["schema"], document)).iter_errors(answer.json))
    assert not errors, f"{method} {path}: {errors[0].message} at {list(errors[0].path)}"
    if answer.status < 400 and content["schema"].get("$ref"):
        known = set(resolved(content["schema"], document).get("properties", answer.json))
        assert set(answer.json) <= known, f"{method} {path} answers undocumented members"


def test_answers_are_as_described(door: Door, document: dict[str, Any]) -> None:
    agent = {"name": "described", "version": "1"}
    tools = [{"name": "weather"}]
    model = {"provider": "anthropic", "name": "claude-sonnet-4-6"}
    opened = door.post("sessions", {"model": model, "agent": agent, "tools": tools})
    check(document, "sessions", "post", opened)
    session = opened.json["id"]
    started = door.post(f"sessions/{session}/runs", {"message": "x"})
    check(document, "sessions/{session}/runs", "post", started)
    run = started.json["id"]
    built = door.post(f"runs/{run}/assemble")
    check(document, "runs/{run}/assemble", "post", built)
    content: list[Any] = [
        {"type": "tool_use", "id": "a", "name": n, "input": {}} for n in ("weather", "none")
    ]
    taken = door.post(
        f"runs/{run}/responses", {"response": {"content": content, "stop_reason": "tool_use"}}
    )
    check(document, "runs/{run}/responses", "post", taken)
    call = taken.json["calls"][0]["id"]
    told = door.post(
        f"runs/{run}/tool-results",
        {"results": [{"call_id": call, "content": "x"}], "assemble": True},
    )
    check(document, "runs/{run}/tool-results", "post", told)
    check(document, "runs/{run}/input", "post", door.post(f"runs/{run}/input", {"message": "y"}))
    delta = door.post(f"runs/{run}/assemble", {"base_request_id": built.json["request_id"]})
    check(document, "runs/{run}/assemble", "post", delta)
    check(document, "runs/{run}/end", "post", door.post(f"runs/{run}/end"))
    rotated = door.post(f"sessions/{session}/epochs", {"reason": "operator", "note": "x"})
    check(document, "sessions/{session}/epochs", "post", rotated)
    one, two = built.json["request_id"], delta.json["request_id"]
    for path, real in {
        "sessions": "sessions",
        "sessions/{session}": f"sessions/{session}",
        "sessions/{session}/events": f"sessions/{session}/events?bodies=1",
        "sessions/{session}/requests": f"sessions/{session}/requests",
        "sessions/{session}/plan": f"sessions/{session}/plan",
        "sessions/{session}/plans": f"sessions/{session}/plans",
        "sessions/{session}/plans/{epoch}": f"sessions/{session}/plans/1",
        "sessions/{session}/items/{item}": f"sessions/{session}/items/3.0",
        "requests/{wanted}": f"requests/{one}",
        "requests/{wanted}/body": f"requests/{one}/body",
        "requests/{wanted}/replay": f"requests/{one}/replay",
        "requests/{wanted}/diff/{other}": f"requests/{one}/diff/{two}",
    }.items():
        check(document, path, "get", door.get(real))
    check(document, "sessions/{session}/end", "post", door.post(f"sessions/{session}/end"))
    check(
        document,
        "sessions/{session}/runs",
        "post",
        door.post(f"sessions/{session}/runs", {"message": "x"}),
    )
    check(document, "sessions", "post", door.post("sessions", {"colour": 1}))


def test_the_document_and_the_page_are_served_without_a_key_and_from_here_alone() -> None:
    client = Client()
    assert client.get("/api/schema/").status_code == 200
    page = client.get("/api/docs/")
    assert page.status_code == 200
    text = page.content.decode()
    assert "//" not in text.replace("http://testserver", "")
    assert "<script>" not in text
    assert "style=" not in text
    assert client.post("/api/docs/").status_code == 405


def test_codes_of_the_document_are_codes_of_the_table(document: dict[str, Any]) -> None:
    codes = {kind.code for kind in PROBLEMS}
    for item in document["paths"].values():
        for operation in item.values():
            for status, response in operation["responses"].items():
                if status >= "400":
                    named = {word.strip("` ") for word in response["description"].split(",")}
                    assert named <= codes
