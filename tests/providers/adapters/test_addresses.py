"""Addresses: only official ones and an operator's; none with a credential, to a metadata service, or of another scheme."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxengine.providers.adapters.addresses import (
    OFFICIAL,
    AddressRefused,
    checked_address,
    is_of_ours,
    refuse_resolved,
)
from ctxengine.providers.adapters.contract import ProviderError
from ctxengine.providers.adapters.registry import adapter_for
from ctxengine.site.env import SettingError
from ctxengine.site.provider_access import provider_urls, summary_providers
from tests.providers.adapters.conftest import Configure

REFUSED = [
    "file:///etc/passwd",
    "ftp://example.org",
    "gopher://127.0.0.1:11211/_stats",
    "javascript:alert(1)",
    "unix:///run/docker.sock",
    "//example.org",
    "example.org",
    "",
    "http://",
    "http:///v1",
    "https://user:password@example.org",
    "https://token@example.org/v1",
    "https://example.org@169.254.169.254/",
    "https://example.org/v1?key=x",
    "https://example.org/v1#part",
    "http://169.254.169.254/latest/meta-data",
    "http://169.254.169.254:80",
    "http://169.254.0.1",
    "http://169.254.170.2/v2/credentials",
    "http://[fd00:ec2::254]/latest",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:a9fe:a9fe::1]/",
    "http://2852039166/",
    "http://0xA9FEA9FE/",
    "http://0251.0376.0251.0376/",
    "http://169.254.43518/",
    "http://metadata.google.internal/computeMetadata/v1",
    "http://METADATA.google.internal./",
    "http://metadata/",
    "http://100.100.100.200/latest/meta-data",
    "http://0.0.0.0:8000",
    "http://[::]/",
    "http://224.0.0.1/",
    "http://exa mple.org/",
    "http://example.org\\@169.254.169.254/",
    "http://example.org:0/",
    "http://example.org:99999/",
    "http://[::1",
]
ALLOWED = [
    *(address.format(region="eu-west-1") for address in OFFICIAL.values()),
    "http://127.0.0.1:9999",
    "http://localhost:11434/",
    "http://[::1]:8080/v1",
    "http://10.0.0.7:8000/v1",
    "http://gpu-box.lan:8000/v1",
    "https://gateway.example.org/team/openai/v1",
]


@pytest.mark.parametrize("address", REFUSED)
def test_it_is_refused(address: str) -> None:
    with pytest.raises(AddressRefused) as caught:
        checked_address(address)
    assert "password" not in str(caught.value)


@pytest.mark.parametrize("address", ALLOWED)
def test_it_is_allowed(address: str) -> None:
    assert checked_address(address) == address.rstrip("/")


@given(st.integers(0, 0xFFFF))
def test_no_spelling_of_a_link_local_address_passes(host: int) -> None:
    number = (169 << 24) + (254 << 16) + host
    dotted = f"169.254.{host >> 8}.{host & 255}"
    for spelling in (dotted, f"[::ffff:{dotted}]", str(number), hex(number), f"0{number:o}"):
        with pytest.raises(AddressRefused):
            checked_address(f"http://{spelling}/v1")


def test_a_name_that_leads_to_a_metadata_service_is_refused(
    monkeypatch: pytest.MonkeyPatch, configure: Configure
) -> None:
    def resolved(*_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("169.254.169.254", 80))]

    configure({"openai": "http://innocent.example:80/v1"})
    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    with pytest.raises(AddressRefused):
        refuse_resolved("http://innocent.example:80/v1")
    with pytest.raises(ProviderError) as caught:
        adapter_for("openai-responses")
    assert caught.value.code == "not_allowed"


@pytest.mark.parametrize("address", ["http://169.254.169.254", "https://a:b@example.org"])
def test_settings_that_were_not_read_from_the_environment_are_checked_too(
    address: str, configure: Configure
) -> None:
    configure({"anthropic": address})
    with pytest.raises(ProviderError) as caught:
        adapter_for("anthropic")
    assert caught.value.code == "not_allowed" and "a:b" not in str(caught.value)


def test_pairs_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "CTX_PROVIDER_URLS", "anthropic=http://127.0.0.1:9999, openai = http://127.0.0.1:9999/v1/,"
    )
    assert provider_urls() == {
        "anthropic": "http://127.0.0.1:9999",
        "openai": "http://127.0.0.1:9999/v1",
    }
    monkeypatch.delenv("CTX_PROVIDER_URLS")
    assert provider_urls() == {}


@pytest.mark.parametrize(
    "written",
    [
        "http://127.0.0.1:9999",
        "nobody=http://127.0.0.1:9999",
        "anthropic=http://a.example,anthropic=http://b.example",
        "anthropic=ftp://a.example",
        "anthropic=https://u:hunter2@a.example",
        "anthropic=http://169.254.169.254/",
        "anthropic=",
    ],
)
def test_a_list_that_cannot_be_meant_stops_the_start(
    written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CTX_PROVIDER_URLS", written)
    with pytest.raises(SettingError, match="CTX_PROVIDER_URLS") as caught:
        provider_urls()
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "ours"),
    [
        ("http://127.0.0.1:11434", True),
        ("http://127.8.0.1", True),
        ("http://[::1]:8080/v1", True),
        ("http://LocalHost:11434/", True),
        ("http://localhost.:11434/", True),
        ("http://10.0.0.7:8000/v1", True),
        ("http://192.168.1.20/v1", True),
        ("http://[fd12::7]/v1", True),
        ("http://[::ffff:10.0.0.7]/v1", True),
        ("http://[::ffff:8.8.8.8]/v1", False),
        ("http://8.8.8.8/v1", False),
        ("http://[2606:4700::1111]/v1", False),
        ("http://gpu-box.lan:8000/v1", False),
        ("http://localhost.example.org/v1", False),
        ("http://127.0.0.1.example.org/v1", False),
        ("https://api.groq.com/openai/v1", False),
        ("https://ollama.com", False),
        *((address.format(region="eu-west-1"), False) for address in OFFICIAL.values()),
    ],
)
def test_an_address_is_ours_by_what_it_is_and_never_by_a_providers_name(
    address: str, ours: bool
) -> None:
    assert is_of_ours(address) is ours


def test_providers_that_may_summarise_others_sessions_are_listed_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "CTX_SUMMARY_PROVIDERS"
    assert summary_providers() == ()
    monkeypatch.setenv(name, " openai, ollama,")
    assert summary_providers() == ("openai", "ollama")
    monkeypatch.setenv(name, "openai,nobody")
    with pytest.raises(SettingError, match=name):
        summary_providers()
