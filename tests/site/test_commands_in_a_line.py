"""Commands that cannot do their work say so in one line, whoever started them and whatever is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, get_commands, load_command_class
from django.db import OperationalError, ProgrammingError, connection

from ctxengine.site import commandline, env

ROOT = Path(__file__).resolve().parents[2]
OF_AN_INSTANCE = sorted(
    name
    for name, app in get_commands().items()
    if app == "ctxengine.site" and name != "strict_provider"
)
WRONG = {
    "CTX_PROVIDER_URLS": "foo",
    "CTX_DB_POOL": "x",
    "CTX_HTTPS": "maybe",
    "DATABASE_URL": "foo",
    "CTX_DATA_DIR": "relative",
    "CTX_SECRET_KEY": "short",
    "CTX_FIELD_KEY": "short",
    "CTX_ALLOWED_HOSTS": "http://a",
    "CELERY_BROKER_URL": "foo",
    "CTX_LOG_LEVEL": "loud",
    "OPENAI_API_KEY_FILE": "relative",
}


def ran(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """`manage.py WORDS` as a person runs it, with these settings and no other of ours."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("CTX_") and name != "DATABASE_URL"
    }
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT, env=kept | settings, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def is_one_line(done: subprocess.CompletedProcess[str]) -> bool:
    return done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_setting_is_one_line_that_names_it_and_nothing_is_made(
    tmp_path: Path, name: str
) -> None:
    data = tmp_path / "data"
    done = ran("prove_requests", "--all", **({"CTX_DATA_DIR": str(data)} | {name: WRONG[name]}))
    assert is_one_line(done), done.stderr
    assert name in done.stderr
    assert not data.exists()


@pytest.mark.parametrize(
    "words", [("migrate",), ("check",), ("strict_provider", "--port", "0"), ("up", "--help"), ("up",)],
    ids=" ".join,
)  # fmt: skip
def test_every_kind_of_command_says_it_the_same_way(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = ran(*words, CTX_DATA_DIR=str(tmp_path / "data"), CTX_HTTPS="maybe")
    assert is_one_line(done), done.stderr
    assert "CTX_HTTPS is 'maybe'" in done.stderr


def test_a_folder_that_was_never_served_is_one_line_and_stays_empty(tmp_path: Path) -> None:
    done = ran("verify_ledger", "--data", str(tmp_path / "typo"))
    assert is_one_line(done), done.stderr
    assert "was ever served" in done.stderr
    assert not (tmp_path / "typo").exists()


def test_a_database_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    done = ran(
        "verify_ledger",
        CTX_DATA_DIR=str(tmp_path),
        DATABASE_URL="postgresql://a:b@127.0.0.1:1/none",
    )
    assert is_one_line(done), done.stderr
    assert "The database cannot be used" in done.stderr


@pytest.mark.django_db
def test_missing_tables_are_told_and_a_defect_keeps_its_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for statement in ("SELECT 1 FROM no_such_table", "SELECT no_such_column FROM session"):
        with pytest.raises(SystemExit) as ended, commandline.told_in_a_line():
            _fails(statement)
        assert ended.value.code == 2
        assert "lacks tables" in capsys.readouterr().err
    with pytest.raises(ProgrammingError), commandline.told_in_a_line():
        _fails("NO SQL AT ALL 1")
    with pytest.raises(SystemExit), commandline.told_in_a_line():
        raise OperationalError
    with pytest.raises(ValueError, match="a defect"), commandline.told_in_a_line():
        raise ValueError("a defect")


def _fails(statement: str) -> None:
    from django.db import transaction

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.parametrize("setting", ["CTX_HOST", "CTX_WEB_WORKERS"])
def test_a_setting_that_is_read_late_is_told_the_same_way(
    setting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended, commandline.told_in_a_line():
        raise env.SettingError(setting, "x", "something else")
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"{setting} is 'x'")


@pytest.mark.parametrize("words", [("help",), ("strict_provider", "--help")], ids=" ".join)
def test_nobody_reading_is_no_complaint(tmp_path: Path, words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT, env=os.environ | {"CTX_DATA_DIR": str(tmp_path)}, stdout=writing,
        stderr=subprocess.PIPE, text=True, timeout=60, check=False,
    )  # fmt: skip
    os.close(writing)
    # argparse itself says nothing of a help that nobody reads.
    assert (done.returncode, done.stderr) in ((141, ""), (0, ""))


@pytest.mark.parametrize("name", OF_AN_INSTANCE)
def test_the_help_of_every_command_that_finds_an_instance_shows_the_data_option(name: str) -> None:
    command: Any = load_command_class("ctxengine.site", name)
    parser: ArgumentParser = command.create_parser("manage.py", name)
    assert "--data DIR" in parser.format_help()


def test_a_probe_takes_the_words_of_the_rest_interface_and_those_of_before() -> None:
    parser = load_command_class("ctxengine.site", "probe").create_parser("manage.py", "probe")
    session = "6f0d0f3e-35f9-4a53-8f6a-1c1d3ad8a001"
    now = parser.parse_args(["ollama/m", "--session", session, "--largest", "900"])
    before = parser.parse_args(["ollama/m", "--session", session, "--max", "900"])
    assert vars(now) == vars(before)
    planned = parser.parse_args(["ollama/m", "--plan", session])
    assert (str(planned.plan), planned.session) == (session, None)


def test_a_probe_that_is_told_two_sessions_is_refused_before_anything_is_asked() -> None:
    command = load_command_class("ctxengine.site", "probe")
    parser = command.create_parser("manage.py", "probe")
    one, other = (f"6f0d0f3e-35f9-4a53-8f6a-1c1d3ad8a00{n}" for n in (1, 2))
    told = parser.parse_args(["ollama/m", "--session", one, "--plan", other])
    with pytest.raises(CommandError, match="name two sessions") as refused:
        command.handle(**vars(told))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("word", ["x" * 5_000, "a\0b", "import os\n" * 400])
def test_a_word_that_can_be_no_path_is_no_fault(word: str) -> None:
    assert commandline._replays_files(["manage.py", "shell", word]) is False
    assert commandline._replays_files(["manage.py", "replay", word]) is False
    assert commandline._replays_files(["manage.py", "replay", word, __file__]) is True
