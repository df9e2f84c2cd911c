"""Reading settings from the environment: one parser per kind of value, and nonsense is refused.

Every name read here stands in the settings table of the README; a test compares the two.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_HOST = re.compile(r"(\*|\.?[a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])", re.IGNORECASE)
_PLACE = re.compile(
    r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[0-9]{1,5})?", re.IGNORECASE
)
_ORIGIN = re.compile(r"https?://[a-z0-9*.\[\]:-]+", re.IGNORECASE)


class SettingError(ImproperlyConfigured):
    """An environment setting holds something it cannot mean."""

    def __init__(self, name: str, found: str, wanted: str) -> None:
        super().__init__(f"{name} is {found!r}; it must be {wanted}. Correct it or unset it.")


def text(name: str, default: str) -> str:
    """The value as it stands, without outer blanks; an empty one counts as not set."""
    return os.environ.get(name, "").strip() or default


def optional(name: str) -> str | None:
    """The value, or None where the name is unset or empty."""
    return os.environ.get(name, "").strip() or None


def flag(name: str, default: bool) -> bool:
    """A switch: 1, true, yes, on or 0, false, no, off.

    Raises:
        SettingError: any other word.
    """
    found = optional(name)
    if found is None:
        return default
    if found.lower() in _TRUE:
        return True
    if found.lower() in _FALSE:
        return False
    raise SettingError(name, found, "true or false")


def whole(name: str, default: int, *, least: int, most: int) -> int:
    """A whole number in a closed range.

    Raises:
        SettingError: not a decimal number, or outside the range.
    """
    found = optional(name)
    if found is None:
        return default
    wanted = f"a whole number from {least} to {most}"
    if not re.fullmatch(r"[0-9]{1,18}", found) or not least <= int(found) <= most:
        raise SettingError(name, found, wanted)
    return int(found)


def choice(name: str, default: str, allowed: tuple[str, ...]) -> str:
    """One word of a closed set, in any case.

    Raises:
        SettingError: a word outside the set.
    """
    found = optional(name)
    if found is None:
        return default
    for word in allowed:
        if found.lower() == word.lower():
            return word
    raise SettingError(name, found, "one of " + ", ".join(allowed))


def matching(name: str, default: str, shape: str, wanted: str) -> str:
    """A value of a shape, given as a regular expression for the whole of it.

    Raises:
        SettingError: a value of another shape; it must be `wanted`.
    """
    found = optional(name)
    if found is not None and not re.fullmatch(shape, found):
        raise SettingError(name, found, wanted)
    return found or default


def hosts(name: str, default: tuple[str, ...]) -> list[str]:
    """Host names separated by commas, as Django's ALLOWED_HOSTS takes them (no scheme, no port).

    Raises:
        SettingError: an entry that is no host name, address or pattern.
    """
    return _listed(name, default, _HOST, "host names without scheme or port, separated by commas")


def origins(name: str) -> list[str]:
    """Origins such as https://console.example.org, separated by commas; none by default.

    Raises:
        SettingError: an entry without scheme, or with a path.
    """
    return _listed(name, (), _ORIGIN, "origins like https://host, separated by commas")


def places(name: str) -> list[str]:
    """Hosts, each with a port where it is not the usual one, separated by commas; none by default.

    Raises:
        SettingError: an entry with a scheme, a path or a pattern.
    """
    return _listed(
        name, (), _PLACE, "hosts like hooks.example.org or host:8443, separated by commas"
    )


def folder(name: str) -> Path | None:
    """An absolute folder path (`~` is expanded), or None where unset. It need not exist yet.

    Raises:
        SettingError: a path that is not absolute, so that its meaning depends on where one stands.
    """
    found = optional(name)
    if found is None:
        return None
    path = Path(found).expanduser()
    if not path.is_absolute():
        raise SettingError(name, found, "an absolute path")
    return path


def _listed(name: str, default: tuple[str, ...], shape: re.Pattern[str], wanted: str) -> list[str]:
    found = optional(name)
    if found is None:
        return list(default)
    entries = [entry.strip() for entry in found.split(",") if entry.strip()]
    if not entries or not all(shape.fullmatch(entry) for entry in entries):
        raise SettingError(name, found, wanted)
    return entries
