"""The files for containers say what the code says: folders, queues, settings, server options."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from ctxengine.service.jobs.kinds import QUEUES, queue_on_broker
from ctxengine.site.management.commands.up import _web

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"])


def test_every_folder_that_the_image_copies_is_there() -> None:
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY ") and "--" not in line]
    assert copied
    for names in copied:
        for name in names:
            assert (ROOT / name).exists(), name


def test_the_workers_serve_every_queue_once(services: dict[str, Any]) -> None:
    served = [
        queue
        for service in services.values()
        if "--queues" in service.get("command", ())
        for queue in service["command"][service["command"].index("--queues") + 1].split(",")
    ]
    assert sorted(served) == sorted(map(queue_on_broker, QUEUES))


def test_every_setting_of_the_containers_is_one_that_the_readme_lists(
    services: dict[str, Any],
) -> None:
    readme = (ROOT / "README.md").read_text()
    names = set(services["web"]["environment"]) - {"REMAP_SIGTERM"}
    assert names >= {"DATABASE_URL", "CELERY_BROKER_URL", "CTX_SECRET_KEY", "CTX_FIELD_KEY"}
    for name in names:
        assert f"| `{name}` |" in readme, name


def test_the_container_serves_with_the_options_of_up(tmp_path: Path) -> None:
    with socket.socket() as bound:
        command = _web(bound, tmp_path).command
    options = {word for word in command if word.startswith("--")}
    script = (DEPLOY / "serve").read_text()
    assert options == set(re.findall(r"(?<= )--[a-z-]+", script)) - {"--noinput", "--verbosity"}


def test_no_secret_has_a_default(services: dict[str, Any]) -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    for name in ("POSTGRES_PASSWORD", "CTX_SECRET_KEY", "CTX_FIELD_KEY"):
        found = re.findall(r"\$\{" + name + r"([^}]*)\}", text)
        assert found and all(rest.startswith(":?") for rest in found), name
