"""How figures are written: thousands in groups, estimates marked, nothing cut silently (ui 4.6)."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

NONE = "–"


def number(value: float | None) -> str:
    """A whole figure with thousands separators; a dash where there is none."""
    return NONE if value is None else f"{round(value):,}"


def told(value: float | None) -> str:
    """A reported figure; words where nobody reported it, since a dash may be read as nought."""
    return "not reported" if value is None else number(value)


def signed(value: float | None) -> str:
    """A difference, always with its sign."""
    if value is None:
        return NONE
    whole = round(value)
    return f"+{whole:,}" if whole > 0 else f"{whole:,}".replace("-", "−") if whole else "±0"


def size(length: int | None) -> str:
    """A length in bytes, exact below 10 kB."""
    if length is None:
        return NONE
    if length < 10_000:
        return f"{length:,} bytes"
    if length < 10_000_000:
        return f"{length / 1_000:,.0f} kB"
    return f"{length / 1_000_000:,.1f} MB"


def share(part: float | None, whole: float | None, digits: int = 1) -> str:
    """A part of a whole in percent; a dash where the whole is nought or unknown.

    Only a true whole is written as 100 %: 99.97 % stays below it.
    """
    if part is None or not whole:
        return NONE
    percent = 100 * part / whole
    text = f"{percent:.{digits}f}"
    while part < whole and float(text) >= 100 and digits < 6:
        digits += 1
        text = f"{percent:.{digits}f}"
    return f"{text} %"


def percent(ratio: float) -> str:
    """A signed ratio in percent."""
    text = f"{100 * ratio:+.1f} %".replace("-", "−")
    return "±0.0 %" if text[1:] == "0.0 %" else text


def short_hash(digest: str) -> str:
    """The first eight digits of a hash."""
    return digest[:8]


def micro_dollars(amount: int | None) -> str:
    """A price given in millionths of a US dollar."""
    if amount is None:
        return NONE
    shown = dollars(str(Decimal(abs(amount)) / 1_000_000))
    return f"−{shown}" if amount < 0 else shown


def dollars(amount: str | None) -> str:
    """A price in US dollars with four decimals; a dash where none is known."""
    try:
        price = Decimal(amount or "")
    except InvalidOperation:
        return NONE
    if price and price < Decimal("0.00005"):
        return "< $0.0001"
    return f"${price:,.4f}"
