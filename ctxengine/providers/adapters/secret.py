"""Keys to providers: held so that nothing prints them (design 5, common rules on secrets)."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

MOST_KEY_CHARS = 16_384


class Secret:
    """A key from the environment or from a file that is read anew at every use, so that it can be rotated.

    Its text comes out of `reveal` alone: not by `repr`, `str`, formatting, iteration or pickling.
    """

    __slots__ = ("_path", "_value")

    def __init__(self, value: str | None = None, path: Path | None = None) -> None:
        self._value = value
        self._path = path

    def reveal(self) -> str | None:
        """The key; None where none is set, or where its file is missing, empty or no text of one line."""
        if self._value is not None:
            return self._value
        if self._path is None:
            return None
        try:
            with self._path.open(encoding="utf-8") as file:
                text = file.read(MOST_KEY_CHARS).strip()
        except (OSError, UnicodeDecodeError):
            return None
        return text if text and text.isprintable() else None

    def __bool__(self) -> bool:
        """Whether a key is configured; a file counts unread."""
        return self._value is not None or self._path is not None

    def __repr__(self) -> str:
        return "Secret(set)" if self else "Secret(none)"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled: it would write the key somewhere."""
        raise TypeError("A secret is not pickled.")
