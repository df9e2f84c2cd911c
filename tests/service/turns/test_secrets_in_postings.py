"""What a turn is found by holds no secret of the table, also none that only its member's name gives away (design 8)."""

from __future__ import annotations

import json

import pytest

from ctxengine.ledger.models import Posting
from ctxengine.service.card_specs import CardSpec
from tests.cast import Call, Runtime, tool
from tests.engine.redaction.test_redact import IN_CONTEXT, KEY_BLOCK, SECRETS

pytestmark = pytest.mark.django_db

KEYED = {
    "password": "tr0ub4dorxyz99",
    "api_key": "q9w8e7r6t5y4u3i2",
    "client_secret": "zx9cv8bn7mas",
}
ARGUMENTS = {
    **{kind: json.dumps({"note": f"harbour {secret}"}) for kind, secret in SECRETS.items()},
    **{
        kind: json.dumps({"note": f"harbour {label}{secret}@host"})
        for kind, (label, secret) in IN_CONTEXT.items()
    },
    **{
        f"known by {name}": json.dumps({"note": "harbour", name: secret})
        for name, secret in KEYED.items()
    },
    "private_key": json.dumps({"note": "harbour", "key": KEY_BLOCK}),
    "a name in escapes": r'{"note":"harbour","pass\u0077ord" : "tr0ub4dorxyz99"}',
    "JSON in a text": json.dumps({"note": "harbour", "body": json.dumps(KEYED)}),
    "JSON in JSON in a text": json.dumps(
        {"note": "harbour", "body": json.dumps({"body": json.dumps(KEYED)})}
    ),
    "JSON in a long text": json.dumps(
        {"a": "x " * 19_973, "body": json.dumps({"body": json.dumps(KEYED)}), "note": "harbour"}
    ),
    "deep inside": '{"note":"harbour","a":' + "[" * 50 + json.dumps(KEYED) + "]" * 50 + "}",
    "behind a long text": json.dumps({"note": "harbour", "long": "x " * 19_960, **KEYED}),
    "cut through": json.dumps(
        {"note": "harbour", "l": "x " * 19_973, "password": KEYED["password"]}
    ),
}
WORDS = {
    **{kind: [secret] for kind, secret in SECRETS.items()},
    **{kind: [secret] for kind, (_, secret) in IN_CONTEXT.items()},
    "private_key": ["miieabc"],
}


def secret_words(kind: str) -> list[str]:
    """Beginnings of the secrets of an entry: long enough to be nothing else."""
    return [secret.lower()[:8] for secret in WORDS.get(kind, list(KEYED.values()))]


def assert_found_without(runtime: Runtime, kind: str) -> None:
    terms = set(Posting.objects.filter(session_id=runtime.session).values_list("term", flat=True))
    assert any("harbour" in term for term in terms)
    assert not [term for term in terms for word in secret_words(kind) if word in term]
    if kind == "cut through":
        assert not [term for term in terms if "tr0" in term]


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_secrets_in_arguments_are_in_no_posting(kind: str) -> None:
    runtime = Runtime(extra={"engine": "working_set"})
    runtime.ask("Look at the harbour.")
    runtime.look("c1", "found", arguments=ARGUMENTS[kind])
    runtime.assemble()
    runtime.say("Done.")
    assert_found_without(runtime, kind)


IDENTITIES = {
    "everything": ("*",),
    "named fields": ("note", "password", "api_key", "body", "a", "key", "long", "client_secret"),
    "other names": ("title|note", "label|password", "value|api_key", "x|body", "y|client_secret"),
    "none": (),
}


@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("kind", [kind for kind in ARGUMENTS if len(ARGUMENTS[kind]) < 10_000])
def test_secrets_in_cards_are_in_no_posting(kind: str, identity: str) -> None:
    schema = CardSpec(identity=IDENTITIES[identity], title=("headline",))
    runtime = Runtime(
        tools=(tool("show", presentation="brief", card=schema),), extra={"engine": "working_set"}
    )
    runtime.ask("Show the harbour.")
    runtime.assemble()
    runtime.say("", Call("c1", "show", ARGUMENTS[kind]))
    runtime.assemble()
    runtime.say("Done.")
    assert_found_without(runtime, kind)


def test_a_card_with_a_secret_is_found_by_what_stands_beside_it() -> None:
    runtime = Runtime(tools=(tool("show", presentation="metric"),), extra={"engine": "working_set"})
    runtime.ask("Show it.")
    runtime.assemble()
    runtime.say("", Call("c1", "show", json.dumps({"place": "lighthouse", **KEYED})))
    runtime.assemble()
    runtime.say("Done.")
    terms = Posting.objects.filter(session_id=runtime.session).values_list("term", flat=True)
    assert "lighthous" in {term[:9] for term in terms}
