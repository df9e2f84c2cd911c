"""The rest of a conversation in a process of its own, which remembers nothing of what came before: the ledger alone does.

Called with a session and the numbers of its turns; where its database, keys and provider are, its environment says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[3]


def goes_on(runtime: Any, strict: Any, first: int, last: int, words: int) -> None:
    """Let another process take the turns from `first` to before `last`, and wait for it.

    What this process wrote must be committed.
    """
    from django.conf import settings
    from django.db import connection

    given = connection.settings_dict
    address = f"{quote(given['HOST'], safe='')}{':' + str(given['PORT']) if given['PORT'] else ''}"
    who = f"{quote(given['USER'])}:{quote(given['PASSWORD'])}"
    environment = {name: text for name, text in os.environ.items() if not name.startswith("CTX_")}
    environment |= {
        "DATABASE_URL": f"postgresql://{who}@{address}/{given['NAME']}",
        "CTX_DATA_DIR": os.environ["CTX_TEST_RUN_FOLDER"],
        "CTX_FIELD_KEY": settings.CTX_FIELD_KEY,
        "CTX_PROVIDER_URLS": f"anthropic={strict.url},openai={strict.openai_url}",
        "ANTHROPIC_API_KEY": "k",
        "OPENAI_API_KEY": "k",
    }
    told = {
        "tenant": str(runtime.actor.tenant_id),
        "session": str(runtime.session),
        "provider": runtime.provider,
        "url": strict.url,
        "turns": [first, last],
        "words": words,
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.service.boundary.after_restart", json.dumps(told)],
        env=environment, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3_000:]


def main(told: dict[str, Any]) -> None:
    """Take the turns."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ctxengine.site.settings")
    import django

    django.setup()
    from uuid import UUID

    from django.conf import settings

    from ctxengine.service.specs import Actor
    from tests.cast import Runtime
    from tests.service.boundary.talking import take_turns

    settings.CTX_JOB_SENDER = ""
    runtime = Runtime.__new__(Runtime)
    runtime.actor = Actor(UUID(told["tenant"]), "system")
    runtime.session, runtime.provider = UUID(told["session"]), told["provider"]
    take_turns(runtime, SimpleNamespace(url=told["url"]), *told["turns"], words=told["words"])


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
