"""Settings parsers refuse what they cannot mean, and say which setting it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxengine.site import env, keys

NAME = "CTX_EXAMPLE"


@pytest.mark.parametrize(
    ("written", "meant"),
    [("1", True), ("TRUE", True), (" on ", True), ("no", False), ("0", False), ("", True)],
)
def test_a_switch_reads_the_usual_words(
    monkeypatch: pytest.MonkeyPatch, written: str, meant: bool
) -> None:
    monkeypatch.setenv(NAME, written)
    assert env.flag(NAME, True) is meant


@pytest.mark.parametrize("written", ["2", "ja", "truee", "None"])
def test_a_switch_refuses_other_words(monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    monkeypatch.setenv(NAME, written)
    with pytest.raises(env.SettingError, match=f"{NAME} is '{written}'; it must be true or false"):
        env.flag(NAME, False)


@pytest.mark.parametrize("written", ["-1", "101", "3.5", "1e2", "ten", "1_0", "\u0663", "9" * 30])
def test_a_number_refuses_what_is_not_whole_or_out_of_range(
    monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setenv(NAME, written)
    with pytest.raises(env.SettingError, match="a whole number from 0 to 100"):
        env.whole(NAME, 5, least=0, most=100)


def test_a_number_in_range_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert env.whole(NAME, 5, least=0, most=100) == 5
    monkeypatch.setenv(NAME, "100")
    assert env.whole(NAME, 5, least=0, most=100) == 100


def test_a_choice_takes_any_case_and_no_other_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "warning")
    assert env.choice(NAME, "INFO", ("INFO", "WARNING")) == "WARNING"
    monkeypatch.setenv(NAME, "loud")
    with pytest.raises(env.SettingError, match="one of INFO, WARNING"):
        env.choice(NAME, "INFO", ("INFO", "WARNING"))


@pytest.mark.parametrize("written", ["https://a.example", "a.example:8000", "a b", ",", "[zz]"])
def test_hosts_refuse_schemes_ports_and_blanks(
    monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setenv(NAME, written)
    with pytest.raises(env.SettingError, match="host names without scheme or port"):
        env.hosts(NAME, ())


def test_hosts_and_origins_are_comma_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "a.example, .b.example,[::1]")
    assert env.hosts(NAME, ()) == ["a.example", ".b.example", "[::1]"]
    monkeypatch.setenv(NAME, "https://a.example,http://localhost:8000")
    assert env.origins(NAME) == ["https://a.example", "http://localhost:8000"]
    monkeypatch.setenv(NAME, "a.example")
    with pytest.raises(env.SettingError, match="origins like https://host"):
        env.origins(NAME)


def test_a_folder_is_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "~/x")
    assert env.folder(NAME) == Path.home() / "x"
    monkeypatch.setenv(NAME, "x")
    with pytest.raises(env.SettingError, match="an absolute path"):
        env.folder(NAME)


def test_keys_from_the_environment_are_checked_and_not_repeated_in_the_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CTX_SECRET_KEY", "too-short-a-secret")
    with pytest.raises(env.SettingError) as short:
        keys.secret_key(tmp_path)
    assert "too-short-a-secret" not in str(short.value)
    monkeypatch.setenv("CTX_FIELD_KEY", "not a key")
    with pytest.raises(env.SettingError) as odd:
        keys.field_key(tmp_path)
    assert "not a key" not in str(odd.value)
    good = keys.new_field_key()
    monkeypatch.setenv("CTX_FIELD_KEY", good)
    assert keys.field_key(tmp_path) == good
