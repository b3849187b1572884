"""Lengths of time as people write them: ``90m``, ``6h``, ``2d``; and pauses that double."""

from __future__ import annotations

from datetime import timedelta

_UNITS = {"d": timedelta(days=1), "h": timedelta(hours=1), "m": timedelta(minutes=1)}
_MOST_DIGITS = 4
_MOST_TIMES = 20  # some two years of minutes: beyond any longest pause, and no overflow


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
    for unit, step in (*_UNITS.items(), ("s", timedelta(seconds=1))):
        count, length = divmod(length, step)
        parts += [f"{count}{unit}"] if count else []
    return " ".join(parts) or "0s"


def doubled(first: timedelta, times: int, longest: timedelta) -> timedelta:
    """A pause that has doubled some times, up to the longest one."""
    return min(first * 2 ** min(max(times, 0), _MOST_TIMES), longest)
