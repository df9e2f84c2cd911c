"""What the README shows of the loop runs as it stands there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_django.live_server_helper import LiveServer

from tests.api.door import key_for, new_tenant

ROOT = Path(__file__).parents[2]


def blocks(language: str) -> list[str]:
    """Code of the section in one language, without the line that names an address and a key."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("\n## The loop\n")[2].partition("\n## ")[0]
    found = re.findall(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return [re.sub(r"^export URL=.*\n", "", code, flags=re.MULTILINE) for code in found]


def environment(server: LiveServer, key: str) -> dict[str, str]:
    return {**os.environ, "URL": f"{server.url}/api/v1", "KEY": key}


@pytest.mark.django_db(transaction=True)
def test_the_loop_in_curl_ends_with_a_proof(live_server: LiveServer) -> None:
    if shutil.which("curl") is None:
        pytest.skip("the README's loop is shown with curl, which is not installed")
    (code,) = blocks("sh")
    env = environment(live_server, key_for(new_tenant("readme")))
    shown = subprocess.run(
        ["sh", "-euc", code], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    assert '"action":"execute"' in shown.stdout
    assert '"assembled":{' in shown.stdout
    assert '"identical":true' in shown.stdout


@pytest.mark.django_db(transaction=True)
def test_the_loop_in_python_ends_with_a_proof(live_server: LiveServer) -> None:
    for code in blocks("python"):
        env = environment(live_server, key_for(new_tenant("readme")))
        shown = subprocess.run(
            [sys.executable, "-c", code],
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        proof = shown.stdout.replace("'", '"').replace("True", "true").replace("None", "null")
        assert json.loads(proof)["identical"] is True
