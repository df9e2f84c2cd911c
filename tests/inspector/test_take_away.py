"""Taking a request along: a ticket's file, and a command that holds no key."""

from __future__ import annotations

import html
import re
import subprocess

import pytest

from ctxengine.engine.redaction.redact import redact
from ctxengine.providers.adapters.addresses import PROVIDERS
from inspector.curl import _DOORS, curl_of
from inspector.markdown import text
from tests.factories import LiveSession
from tests.inspector.conftest import Cast

SECRET = "sk-ant-api03-" + "Ab3" * 31 + "AA"
SECRET_WITH_MARKS = "sk-ant-api03-" + "A_b" * 31 + "AA"
"""Its underscores mean something in Markdown."""


def test_a_ticket_is_one_inert_file_with_the_page_s_figures(cast: Cast) -> None:
    session = LiveSession(cast.tenant, title="</title><script>alert(1)</script>")
    session.ask(f"Keep {SECRET}.").answer("Kept.")
    request = session.requests[0]
    response = cast.viewer.get(cast.url(f"requests/{request}/ticket"))
    text = response.getvalue().decode()
    assert response["Content-Disposition"].startswith("attachment")
    assert "<script" not in text
    assert "src=" not in text and "http-equiv" in text
    assert SECRET not in text
    assert "1 recognised secret masked" in text
    total = cast.data(f"requests/{request}.json")["frame"]["request"]["total_tokens"]
    assert f"{total:,}".replace(",", "\u202f") in text or f"{total:,}" in text


def test_the_page_offers_every_way(cast: Cast) -> None:
    page = cast.page(f"requests/{cast.session.requests[0]}/take-away/")
    for end in ("/ticket", "/curl", "/raw", "/markdown", ".json", "items.csv"):
        assert f'{end}"' in page, end
    assert "ANTHROPIC_API_KEY:?" in page


def test_every_copy_button_names_an_address_and_none_hands_out_a_key(cast: Cast) -> None:
    session = LiveSession(cast.tenant)
    session.ask("Say hello.").answer("Hello.")
    address = cast.url(f"requests/{session.requests[0]}/")
    for page in ("take-away/", "f/peek/"):
        text = cast.viewer.get(address + page).content.decode()
        copied = re.findall(r'data-copy-from="([^"]+)"', text)
        assert [one.rpartition("/")[2] for one in copied] == ["curl", "raw", "markdown"]
        for one in copied:
            taken = cast.viewer.get(one).getvalue().decode()
            assert "Say hello." in taken
            keys = r"(?i)(x-api-key|authorization)[\"']?: (?!\$|Bearer \$)"
            assert not re.search(keys, taken)


def test_markdown_holds_the_page_s_figures_and_no_markup_of_others(cast: Cast) -> None:
    evil = "```\n# Not a heading\n| a | b |\n<img src=x onerror=alert(1)>"
    session = LiveSession(cast.tenant, title="*bold* | [x](javascript:alert(1)) <b>")
    session.ask(f"{evil} Keep {SECRET}.").answer("Kept.")
    request = session.requests[0]
    response = cast.viewer.get(cast.url(f"requests/{request}/markdown"))
    assert response["Content-Disposition"].startswith("attachment")
    text = response.getvalue().decode()
    assert SECRET not in text
    assert "1 recognised" in text
    assert "- session: `*bold* | [x](javascript:alert(1)) <b>`, `" in text
    head, fence, body = text.partition("````json\n")
    assert fence and body.rstrip().endswith("````")
    assert "onerror" not in head and "Not a heading" not in head
    total = cast.data(f"requests/{request}.json")["frame"]["request"]["total_tokens"]
    assert f"| Sum | {total:,} |" in head
    assert len(re.findall(r"^\| \d+ \|", head, re.M)) == 15


@pytest.mark.parametrize("way", ["ticket", "markdown"])
def test_a_secret_is_masked_wherever_in_a_file_it_stands(cast: Cast, way: str) -> None:
    session = LiveSession(cast.tenant, title=f"Use {SECRET_WITH_MARKS}")
    session.ask(f"Keep {SECRET}.").answer("Kept.")
    response = cast.viewer.get(cast.url(f"requests/{session.requests[0]}/{way}"))
    text = html.unescape(response.getvalue().decode())
    assert "Use [secret:" in text
    assert redact(text.replace("\\", "")).masked == 0
    assert "2 recognised" in text


def test_words_of_others_name_nobody_and_link_nowhere_in_a_tracker() -> None:
    told = text("@name #12 a/b#3 GH-4 see https://x.y or www.x.y, *not* ![x]")
    for left, right in ("@n", "#1", "#3", ("GH-", "4"), (":", "//"), ("www", ".")):
        assert f"{left}<!-- -->{right}" in told
    assert told.endswith(r"\*not\* \!\[x\]")


def test_the_twin_names_every_file_that_the_page_offers(cast: Cast) -> None:
    address = f"requests/{cast.session.requests[0]}/take-away"
    offered = re.findall(r'<a href="([^"]+)" download>', cast.page(f"{address}/"))
    assert sorted(cast.data(f"{address}.json")["files"].values()) == sorted(offered)


def test_the_command_sends_the_exact_body(cast: Cast, tmp_path: object) -> None:
    request = cast.session.requests[0]
    raw = cast.viewer.get(cast.url(f"requests/{request}/raw")).getvalue()
    command = cast.viewer.get(cast.url(f"requests/{request}/curl")).getvalue().decode()
    shell = "curl() { cat; }\nANTHROPIC_API_KEY=x\n" + command
    done = subprocess.run(["/bin/bash", "-c", shell], capture_output=True, check=True)
    assert done.stdout.rstrip(b"\n") == raw.rstrip(b"\n")


def test_a_command_without_the_variable_stops_before_it_sends(cast: Cast) -> None:
    command = cast.viewer.get(cast.url(f"requests/{cast.session.requests[0]}/curl")).getvalue()
    done = subprocess.run(
        ["/bin/bash", "-c", "unset ANTHROPIC_API_KEY\ncurl() { echo sent; }\n" + command.decode()],
        capture_output=True,
    )
    assert b"sent" not in done.stdout
    assert b"ANTHROPIC_API_KEY" in done.stderr


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_has_a_command_and_none_a_key(provider: str) -> None:
    evil = 'm`id`$(id)";id'
    body = '{"a":"END_OF_BODY_0123456789abcdef"}'
    text = curl_of(provider=provider, model=evil, body=body, digest="0123456789abcdef" * 4)
    assert body in text
    assert "<<'END_OF_BODY_0123456789abcdef_'" in text
    assert "$(id)" not in text and "`" not in text
    assert set(_DOORS) >= set(PROVIDERS)
