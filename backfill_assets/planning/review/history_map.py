"""Models over time: which snapshot made each published cell, and what is missing, stale, empty or kept.

A line of the map is time in columns of equal length, each with one sign. The signs make sense without
colour: a letter is a snapshot of that model, the oldest A.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from backfill_assets.snapshots.cutoff import Cutoff

MISSING, SEVERAL, EMPTY, BOUNDARY, OUTSIDE = ".", "+", "0", "|", " "
MANY = "#"
"""The letter of every snapshot of a model after the 26th; there is no other for stale cells."""

SIGNS = (
    ("A B C", "the snapshot that made the cells; of each model the oldest is A"),
    ("a b c", "the same, and some of the cells are stale"),
    (MANY, "a snapshot after the 26th of its model, stale or not"),
    (SEVERAL, "cells of several snapshots"),
    (EMPTY, "recorded as empty, not computed"),
    (MISSING, "some cells are missing"),
    (BOUNDARY, "cutoff: the cells before it keep the old definition"),
)
"""Every sign and what it means."""


@dataclass(frozen=True, slots=True)
class MadeBy:
    """Cells of one snapshot that were built for one plan, or for none.

    Attributes:
        plan_id: the plan; None for cells that were filled without one.
        reason: of that plan, in words.
        cells: which.
    """

    plan_id: str | None
    reason: str
    cells: IntervalSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Cells that one snapshot made, as far as they are published.

    Attributes:
        letter: of the snapshot, on this model's line.
        fingerprint: its id; of snapshots that differ in descriptions only, the first one's.
        since: when it was promoted first, or first built a published cell; None where that is not known.
        plan_id: the plan that brought it; None where cells were filled before any plan.
        by: its cells by the plan that they were built for, those recorded as empty left out.
    """

    letter: str
    fingerprint: str
    since: datetime | None
    plan_id: str | None
    by: tuple[MadeBy, ...]

    @property
    def cells(self) -> IntervalSet:
        """All its cells."""
        return IntervalSet.union_all(each.cells for each in self.by)


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedModel:
    """The line of one model.

    Attributes:
        model: its name.
        made: by snapshot, the oldest first.
        empty: cells recorded as ready without being computed.
        missing: required cells that are not ready.
        stale: ready cells that something upstream has overtaken.
        cutoff: the day before which cells keep the old definition; None for none.
        boundary: the instant of that day; None for none.
        is_whole: whether it is one cell, over all time.
        is_removed: whether it is not declared any more, so that nothing fills it.
    """

    model: str
    made: tuple[Made, ...] = ()
    empty: IntervalSet = field(default_factory=IntervalSet.empty)
    missing: IntervalSet = field(default_factory=IntervalSet.empty)
    stale: IntervalSet = field(default_factory=IntervalSet.empty)
    cutoff: Cutoff | None = None
    boundary: int | None = None
    is_whole: bool = False
    is_removed: bool = False

    @property
    def cells(self) -> IntervalSet:
        """Every cell that is published or missing."""
        made = IntervalSet.union_all(made.cells for made in self.made)
        return made | self.empty | self.missing


def letters() -> Iterator[str]:
    """Yield the letters of a model's snapshots, the oldest first, without end."""
    yield from string.ascii_uppercase
    while True:
        yield MANY


def span_of(models: Iterable[MappedModel]) -> tuple[int, int] | None:
    """Give the first and the last instant that some line reaches; None where there is none.

    Models of one cell, which reach over all time, are left out.
    """
    spans = [model.cells.boundaries for model in models if not model.is_whole and model.cells]
    return (min(span[0] for span in spans), max(span[-1] for span in spans)) if spans else None


def line_of(model: MappedModel, span: tuple[int, int], width: int) -> str:
    """Write the line of a model: one sign per column of time."""
    if model.is_whole:
        ends = model.cells.boundaries
        return (_sign(model, ends[0], ends[-1]) if ends else OUTSIDE) * width
    edges = [span[0] + (span[1] - span[0]) * at // width for at in range(width + 1)]
    return "".join(_sign(model, start, max(end, start + 1)) for start, end in pairwise(edges))


def _sign(model: MappedModel, start: int, end: int) -> str:
    """Choose the sign of a stretch: what needs attention comes before what made it."""
    if model.missing.within(start, end):
        return MISSING
    if not model.is_whole and model.boundary is not None and start <= model.boundary < end:
        return BOUNDARY
    made = [each.letter for each in model.made if each.cells.within(start, end)]
    if not made:
        return EMPTY if model.empty.within(start, end) else OUTSIDE
    if len(made) > 1:
        return SEVERAL
    return made[0].lower() if model.stale.within(start, end) else made[0]
