"""Goals: what a figure should be, whether it is, and the table that says so.

A goal is written as people read it: `≤ 1.25`, `≥ 5`, `< 12` or `0.5 to 2`. Each benchmark states its
own beside what it measures, and nowhere else.
"""

from __future__ import annotations

from operator import ge, gt, le, lt
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MET, MISSED = "met", "missed"
_SIGNS = {"≤": le, "≥": ge, "<": lt, ">": gt}
_WIDE = 200


def verdict(value: float, goal: str) -> str:
    """Say whether a figure meets its goal; nothing where there is none.

    Raises:
        ValueError: the goal is not written as a goal is.
    """
    if not goal:
        return ""
    return MET if _meets(value, goal) else MISSED


def _meets(value: float, goal: str) -> bool:
    low, between, high = goal.partition(" to ")
    if between:
        return float(low) <= value <= float(high)
    sign, _, bound = goal.partition(" ")
    if sign not in _SIGNS:
        raise ValueError(goal)
    return _SIGNS[sign](value, float(bound))


def goals_table(figures: Iterable[tuple[str, float, str]]) -> list[str]:
    """Write each figure's name and value beside its goal."""
    rows = [(name, f"{value:,.2f}", goal, verdict(value, goal)) for name, value, goal in figures]
    return plain_table(("what", "measured", "goal", "verdict"), rows)


def plain_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Write rows below their headings, the first and the last column to the left."""
    table = Table(box=None, pad_edge=False)
    for number, name in enumerate(headings):
        words = number in (0, len(headings) - 1)
        table.add_column(name, justify="left" if words else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console(highlight=False, width=_WIDE)
    with console.capture() as shown:
        console.print(table)
    return [line.rstrip() for line in shown.get().splitlines()]
