"""The sample sessions that ship with the product: written for it, each in another transcript format."""

from __future__ import annotations

from importlib.resources import files

from ctxengine.service.bootstrap import demo_actor
from ctxengine.service.import_transcript import ImportOutcome, import_file
from ctxengine.service.sample_data.long_session import long_session

_FOLDER = "ctxengine.service.sample_data"
_FILES = (
    "coding_agent.claude_code.jsonl",
    "support_agent.openai_chat.json",
    "research_agent.anthropic_messages.json",
    "migration_agent.codex_rollout.jsonl",
)


def load_samples() -> list[ImportOutcome]:
    """Import the samples into the demo tenant; those that are there already stay as they are."""
    actor = demo_actor()
    outcomes = [
        import_file(actor=actor, name=name, data=files(_FOLDER).joinpath(name).read_bytes())
        for name in _FILES
    ]
    long = long_session().encode()
    outcomes.append(import_file(actor=actor, name="long_session.openai_chat.json", data=long))
    return outcomes
