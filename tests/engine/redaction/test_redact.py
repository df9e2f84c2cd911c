"""Secrets are masked, never blocked, in a time that follows the length of the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.engine.content.decode import decode
from ctxengine.engine.derive import PREVIEW_CHARS, preview
from ctxengine.engine.items import ContentFormat, DecodedItem, ItemKind, TextPart
from ctxengine.engine.redaction.patterns import DETECTOR_VERSION, PATTERNS
from ctxengine.engine.redaction.redact import begins_no_secret, redact


def made(prefix: str, body: str, times: int = 1) -> str:
    """A secret put together here, so that no scanner takes this file for a leak."""
    return prefix + body * times


SECRETS = {
    "provider_key": made("sk" + "-ant-api03-", "Ab3dEf6hIj", 4),
    "google_key": made("AI" + "za", "Sy0aB-c_D1e", 3) + "xy",
    "hub_token": made("hf" + "_", "aB3dE6gH9j", 4),
    "cloud_access_key": made("AK" + "IA", "Q3ZX5RTY", 2),
    "forge_token": made("gh" + "p_", "aB3dE6gH9j", 4),
    "chat_token": made("xo" + "xb-", "123456789012-", 2) + "abcDEF",
    "payment_key": made("sk" + "_live_", "aB3dE6gH9j", 3),
    "package_token": made("np" + "m_", "aB3dE6gH9", 4),
    "mail_key": made("SG" + ".", "aB3dE6gH9jaB3dE6gH9jaa") + "." + "aB3dE6gH9j" * 4 + "aB3",
    "json_web_token": made("ey" + "J", "hbGciOiJIUzI1NiJ9")
    + ".ey"
    + "JzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
}
IN_CONTEXT = {
    "bearer_token": ("Authorization: Bearer ", "abc123def456ghi789jkl"),
    "connection_string": ("postgres://ada:", "s3cr3tpassw0rd"),
    "assigned_secret": ("api_key = '", "q9w8e7r6t5y4u3i2"),
    "cloud_secret_key": ("aws_secret_access_key=", "aB3dE6gH9j" * 4),
}
KEY_BLOCK = (
    made("-----BEGIN RSA ", "PRIVATE KEY-----")
    + "\nMIIEabc\ndef\n"
    + made("-----END RSA ", "PRIVATE KEY-----")
)


@pytest.mark.parametrize("kind", sorted(SECRETS))
def test_each_kind_of_secret_is_masked_and_the_text_around_it_stays(kind: str) -> None:
    found = redact(f"before ({SECRETS[kind]}) behind")
    assert found.text == f"before ([secret:{kind}]) behind"
    assert found.hits == ((kind, 1),)
    assert found.detector == DETECTOR_VERSION


@pytest.mark.parametrize("kind", sorted(IN_CONTEXT))
def test_where_only_the_surroundings_give_it_away_only_the_secret_goes(kind: str) -> None:
    label, secret = IN_CONTEXT[kind]
    found = redact(f"{label}{secret}@host rest")
    assert secret not in found.text
    assert found.text.startswith(label)
    assert found.text.endswith("rest")
    assert found.masked == 1


def test_a_private_key_goes_as_a_whole_even_when_its_end_is_missing() -> None:
    assert redact(f"a\n{KEY_BLOCK}\nb").text == "a\n[secret:private_key]\nb"
    assert "MIIE" not in redact(KEY_BLOCK[:60]).text


def test_every_pattern_has_a_test() -> None:
    assert {p.kind for p in PATTERNS} == {*SECRETS, *IN_CONTEXT, "private_key"}


@pytest.mark.parametrize(
    "text",
    [
        "The token budget is 4,000 and the key point stays.",
        "password = get_password()",
        "see https://example.org:8080/path?token=1",
        "sk-learn and task-list-of-things-to-do-next-week",
        "secret: none",
        "bearer of bad news and basic arithmetic",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text).text == text


@given(st.text(max_size=300), st.sampled_from(sorted(SECRETS)), st.text(max_size=300))
def test_masking_is_idempotent_and_total(before: str, kind: str, behind: str) -> None:
    once = redact(f"{before} {SECRETS[kind]} {behind}").text
    assert SECRETS[kind] not in once
    assert redact(once).text == once


@pytest.mark.parametrize("unit", ["sk-", "-----BEGIN PRIVATE KEY-----", "a://b:", "key=", "eyJ."])
def test_repeated_beginnings_cost_no_more_than_their_length(unit: str) -> None:
    redact(unit * (200_000 // len(unit)))


def test_previews_are_masked_before_they_are_cut() -> None:
    secret = SECRETS["provider_key"]
    for at in (0, PREVIEW_CHARS - 25, PREVIEW_CHARS - 5):
        item = DecodedItem(0, ItemKind.USER_MESSAGE, (TextPart("x" * at + " " + secret),))
        shown = preview(item)
        assert len(shown) <= PREVIEW_CHARS
        assert "Ab3dEf6" not in shown
    assert decode(ContentFormat.TEXT, "plain", role="user").items[0].parts


_PIECES = [
    *SECRETS.values(),
    *(label + secret for label, secret in IN_CONTEXT.values()),
    KEY_BLOCK,
    *["token", "key", "secret:", "password", "=", "://@", "sk-", "the_token_count\n"],
    "x" * 50,
    " lorem ipsum" * 8,
]


@given(st.lists(st.sampled_from(_PIECES), max_size=8).map(" ".join), st.integers(0, 300))
def test_where_a_quick_look_finds_nothing_no_secret_begins(text: str, end: int) -> None:
    if begins_no_secret(text, end):
        assert redact(text).text[:end] == text[:end]


@pytest.mark.parametrize(
    "secret", [*SECRETS.values(), *map("".join, IN_CONTEXT.values()), KEY_BLOCK]
)
@pytest.mark.parametrize("before", [0, 1, PREVIEW_CHARS - 2])
def test_a_quick_look_sees_every_kind_that_begins_before_its_end(secret: str, before: int) -> None:
    text = " " * before + secret + "@host rest"
    assert redact(text).masked
    assert not begins_no_secret(text, PREVIEW_CHARS)
    assert begins_no_secret(" " * (PREVIEW_CHARS + 200) + secret, PREVIEW_CHARS)
