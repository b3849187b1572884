"""Growth: how each step's time grows with the events, and with the cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.goals import plain_table
from benchmarks.part import Part
from benchmarks.peer.beside import beside_part
from benchmarks.peer.subject import Size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.peer.beside import Beside


def cases(size: Size) -> dict[str, Size]:
    """Give a size, three and ten times its events, and ten times its days."""
    return {
        "1x": size,
        "3x events": Size(size.events * 3, size.days),
        "10x events": Size(size.events * 10, size.days),
        "10x days": Size(size.events, size.days * 10),
    }


def growth_part(sizes: Mapping[str, Size], found: Mapping[str, Sequence[Beside]]) -> Part:
    """Give the steps of all sizes as a part of the benchmark."""
    about = (f"{title}: {size}" for title, size in sizes.items())
    return Part(
        name="growth",
        figures={title: beside_part(sizes[title], steps).figures for title, steps in found.items()},
        lines=(*about, *growth_lines(found)),
    )


def growth_lines(found: Mapping[str, Sequence[Beside]]) -> list[str]:
    """Write each step's seconds by size, and their ratio to those of the first size."""
    headings = ("step", *(f"{who}, {title}" for title in found for who in ("SQLMesh", "ours")))
    steps = range(len(next(iter(found.values()))))
    return plain_table(headings, (_row(number, found) for number in steps))


def _row(number: int, found: Mapping[str, Sequence[Beside]]) -> tuple[str, ...]:
    first = next(iter(found.values()))[number]
    cells = [first.step.title]
    for steps in found.values():
        beside = steps[number]
        for taken, base in ((beside.theirs, first.theirs), (beside.ours, first.ours)):
            cells.append(f"{taken.wall:.1f} ({taken.wall / base.wall:.1f}x)")
    return tuple(cells)
