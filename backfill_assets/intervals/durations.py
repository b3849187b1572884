"""Lengths of time as people write them: ``90m``, ``6h``, ``2d``."""

from __future__ import annotations

from datetime import timedelta

_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}
_MOST_DIGITS = 4


def read_duration(text: str) -> timedelta | None:
    """Read a number of minutes, hours or days, such as ``90m``, ``6h`` or ``2d``; None where it is none."""
    number, unit = text.strip()[:-1], text.strip()[-1:]
    if (
        unit not in _UNITS
        or not number.isdecimal()
        or not int(number)
        or len(number) > _MOST_DIGITS
    ):
        return None
    return int(number) * _UNITS[unit]


def duration_text(length: timedelta) -> str:
    """Write a length of time in days, hours, minutes and seconds, such as ``1d 2h 30m``; parts of a second are left out."""
    parts: list[str] = []
    for unit, one in (*_UNITS.items(), ("s", timedelta(seconds=1))):
        count, length = divmod(length, one)
        parts += [f"{count}{unit}"] if count else []
    return " ".join(parts) or "0s"
