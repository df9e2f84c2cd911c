"""The data folder: one per checkout, secrets made once and readable by their owner alone."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ctxengine.site import commandline, instance, keys, places


def test_two_checkouts_never_share_a_data_folder(tmp_path: Path) -> None:
    first = places.default_data_folder(tmp_path / "a" / "engine")
    second = places.default_data_folder(tmp_path / "b" / "engine")
    assert first != second
    assert first == places.default_data_folder(tmp_path / "a" / "engine")


def test_the_setting_names_the_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CTX_DATA_DIR", str(tmp_path))
    assert places.data_folder() == tmp_path


def test_secrets_are_made_once_and_private(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CTX_SECRET_KEY", raising=False)
    monkeypatch.delenv("CTX_FIELD_KEY", raising=False)
    keys.ensure(tmp_path)
    made = (keys.secret_key(tmp_path), keys.field_key(tmp_path))
    keys.ensure(tmp_path)
    assert (keys.secret_key(tmp_path), keys.field_key(tmp_path)) == made
    files = list(keys.keys_folder(tmp_path).iterdir())
    assert sorted(file.name for file in files) == ["field_key", "secret_key"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_reading_secrets_writes_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CTX_SECRET_KEY", raising=False)
    monkeypatch.delenv("CTX_FIELD_KEY", raising=False)
    assert keys.secret_key(tmp_path / "new") != keys.secret_key(tmp_path / "new")
    assert len(keys.field_key(tmp_path / "new")) == 44
    assert list(tmp_path.iterdir()) == []


def test_processes_that_race_for_a_secret_agree_on_one(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        texts = set(pool.map(lambda _: keys.kept(tmp_path / "key", keys.new_secret), range(32)))
    assert len(texts) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_a_private_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "keys").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match="is a link or belongs to"):
        places.make_private(tmp_path / "keys")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another account")
def test_a_strangers_folder_in_a_shared_place_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / "data").mkdir()
    os.chown(tmp_path / "data", 65534, 65534)
    with pytest.raises(PermissionError, match="name another with --data"):
        places.make_data_folder(tmp_path / "data")


def test_the_first_login_is_kept_and_private(tmp_path: Path) -> None:
    login = instance.first_login(tmp_path)
    assert instance.first_login(tmp_path) == login
    assert len(login.password) >= 12
    file = keys.keys_folder(tmp_path) / "login.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    changed = instance.Login("somebody", "a password", "a key")
    instance.keep_login(tmp_path, changed)
    assert instance.first_login(tmp_path) == changed
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("{damaged", encoding="utf-8")
    assert instance.first_login(tmp_path).username == "admin"


def test_one_process_serves_a_folder_and_the_next_learns_where(tmp_path: Path) -> None:
    first, second = instance.ServingLock(tmp_path), instance.ServingLock(tmp_path)
    first.take()
    first.announce("http://127.0.0.1:8123")
    with pytest.raises(instance.AlreadyServed, match=r"at http://127\.0\.0\.1:8123 \(process"):
        second.take()
    first.give_back()
    second.take()
    second.give_back()


@pytest.mark.parametrize(
    "words", [["--data", "some where"], ["--data=some where"]], ids=["two words", "one word"]
)
def test_the_data_option_works_with_every_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str]
) -> None:
    monkeypatch.setenv("CTX_DATA_DIR", "")
    monkeypatch.chdir(tmp_path)
    kept = commandline.take_data_option(["manage.py", "migrate", *words, "--check"])
    assert kept == ["manage.py", "migrate", "--check"]
    assert os.environ["CTX_DATA_DIR"] == str(tmp_path / "some where")


def test_the_data_option_without_a_folder_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        commandline.take_data_option(["manage.py", "migrate", "--data"])
    assert capsys.readouterr().err == "--data needs a folder: --data DIR\n"


@pytest.mark.parametrize(
    "argv",
    [
        ["manage.py"],
        ["manage.py", "help"],
        ["manage.py", "migrate", "--help"],
        ["manage.py", "check"],
    ],
    ids=" ".join,
)
def test_commands_without_need_of_a_database_touch_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, argv: list[str]
) -> None:
    monkeypatch.setenv("CTX_DATA_DIR", str(tmp_path / "data"))
    with commandline.database_for(argv):
        assert not (tmp_path / "data").exists()


def test_a_closed_parent_sends_roots_default_folder_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert places.default_data_folder(tmp_path).parent == Path("/var/tmp")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert places.default_data_folder(tmp_path).parent == tmp_path / "share"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs Postgres as another account")
def test_a_fresh_data_folder_of_root_can_be_passed_through_whatever_the_umask(
    tmp_path: Path,
) -> None:
    before = os.umask(0o077)
    try:
        places.make_data_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o711
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o711
