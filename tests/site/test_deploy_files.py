"""The files for containers say what the code says: folders, queues, settings, server options."""

from __future__ import annotations

import re
import socket
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands

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


# --- what a container runtime would refuse, looked at without one ---

KEYS = {
    "image", "build", "restart", "environment", "volumes", "ports", "healthcheck", "depends_on", "command",
}  # fmt: skip
"""Keys of a service in the Compose specification, as far as this file uses them."""
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text()))


def test_every_service_is_made_of_keys_that_compose_knows(compose: dict[str, Any]) -> None:
    assert {name for name in compose if not name.startswith("x-")} == {"services", "volumes"}
    for name, service in compose["services"].items():
        assert service.keys() <= KEYS, name
        assert service.keys() & {"image", "build"}, name
        assert service.get("restart") in {"no", "always", "on-failure", "unless-stopped"}, name


def test_what_a_service_waits_for_is_there_and_can_be_waited_for(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name, service in services.items():
        for other, asked in service.get("depends_on", {}).items():
            assert asked["condition"] in CONDITIONS, (name, other)
            if asked["condition"] == "service_healthy":
                assert "healthcheck" in services[other], (name, other)
            if asked["condition"] == "service_completed_successfully":
                assert services[other]["restart"] == "no", (name, other)
    for name in ("web", "worker", "probes"):
        assert "migrate" in services[name]["depends_on"], name


def test_every_named_volume_is_declared_and_the_data_folder_is_on_one(
    compose: dict[str, Any],
) -> None:
    mounts = {
        mount.partition(":")
        for service in compose["services"].values()
        for mount in service.get("volumes", ())
    }
    assert {volume for volume, _, _ in mounts} == set(compose["volumes"])
    image = (DEPLOY / "Containerfile").read_text()
    for name in ("web", "worker", "probes"):
        (mount,) = compose["services"][name]["volumes"]
        assert f"CTX_DATA_DIR={mount.partition(':')[2]}\n" in image, name


def test_hosts_of_the_addresses_are_services(compose: dict[str, Any]) -> None:
    told = compose["services"]["web"]["environment"]
    for name in ("DATABASE_URL", "CELERY_BROKER_URL"):
        host = re.search(r"(?:@|//)([a-z]+):\d+/", told[name])
        assert host and host[1] in compose["services"], name


def test_the_port_that_is_published_is_the_one_that_is_served(compose: dict[str, Any]) -> None:
    (port,) = compose["services"]["web"]["ports"]
    address, outside, inside = port.split(":")
    assert address == "127.0.0.1", "a proxy that ends TLS stands in front"
    assert f"--bind 0.0.0.0:{inside}" in (DEPLOY / "serve").read_text()
    assert f"EXPOSE {inside}" in (DEPLOY / "Containerfile").read_text()
    assert f":{inside}/healthz" in " ".join(compose["services"]["web"]["healthcheck"]["test"])
    assert outside.isdigit()


def test_every_command_of_ours_that_a_container_runs_exists(compose: dict[str, Any]) -> None:
    commands = get_commands()
    for name, service in compose["services"].items():
        match service.get("command"):
            case ["python", "manage.py", command, *_]:
                assert command in commands, name
            case ["celery", *words]:
                app = words[words.index("-A") + 1]
                assert import_module(app).app.main == "ctxengine", name
            case other:
                assert other is None, name


def test_every_variable_that_is_asked_for_is_told_in_the_file_or_has_a_default() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    head = text[: text.index("\nservices:")]
    for name, rest in re.findall(r"\$\{(\w+)([^}]*)\}", text):
        assert name in head.split("x-engine")[0] or rest.startswith(":-"), name
