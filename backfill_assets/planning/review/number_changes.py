"""Why a published number changed: its difference, split into the publications that made it.

A number is the sum of a column over cells, or their row count. Each cell's history is a chain of what it
held; a step between two links whose numbers are known is a part of its own. Where a link can't be read any
more, the steps around it are one part together. So the parts sum exactly to the difference.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.number import EXACT, added

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import Content

ZERO = Decimal(0)


class CauseKind(StrEnum):
    """What made a published cell differ from what was published of it before."""

    FIRST = "first build"
    REMOVED = "removed"
    ROLLBACK = "rollback"
    UNDO = "undo"
    LOGIC = "logic"
    LATE = "late rows"
    READ_LATER = "read later"
    UPSTREAM_FILLED = "upstream filled"
    UPSTREAM_REMOVED = "upstream removed"
    EARLIER_CELLS = "earlier cells"
    EMPTIED = "recorded as empty"
    ADOPTED = "adopted"
    COMPUTED = "computed"
    MOVED = "rows moved"
    SAME = "same logic and inputs"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of a change.

    Attributes:
        kind: which.
        subject: the model whose logic changed or whose cells were filled, or the source with the late
            rows; empty where the cell itself says it all.
        cells: of the subject; empty where that is not about cells.
        note: what else is known, such as why the cause is not known.
    """

    kind: CauseKind
    subject: str = ""
    cells: IntervalSet = field(default_factory=IntervalSet.empty)
    note: str = ""


def merged(causes: Iterable[Cause]) -> tuple[Cause, ...]:
    """Put causes of one sort together, over the cells of their subjects."""
    cells: dict[Cause, IntervalSet] = {}
    for cause in causes:
        sort = replace(cause, cells=IntervalSet.empty())
        cells[sort] = cells.get(sort, IntervalSet.empty()) | cause.cells
    return tuple(replace(sort, cells=all_cells) for sort, all_cells in cells.items())


@dataclass(frozen=True, slots=True)
class HeldContent:
    """What one cell held, as an environment published it.

    Attributes:
        version: the physical table's id.
        since: the delta_version that introduced it there; None where its record is gone with the table.
        batch_id: the batch that built it; empty where that is not known.
        fingerprint: the snapshot that built it; empty likewise.
        content: rows and checksums, as recorded; None where the record is gone.
    """

    version: str
    since: int | None
    batch_id: str
    fingerprint: str
    content: Content | None = field(compare=False)


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """One commit or publication that moved what an environment reads of a model.

    Attributes:
        at: when.
        what: ``batch`` for a commit of its own, else ``promote``, ``rollback`` or ``undo``.
        held: what the cells in question held since; a cell that is not ready is left out.
        plan_id: the plan; None for a batch that served none.
        batch_id: the batch; None for a move of pointers.
        who: by whom; empty where that is not known.
        why: in words.
    """

    at: datetime
    what: str
    held: Mapping[Interval, HeldContent]
    plan_id: str | None = None
    batch_id: str | None = None
    who: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Happened:
    """A step, as it concerned some cells.

    Attributes:
        step: its place among the steps.
        causes: what made the cells differ; several can't be told apart by what is recorded.
    """

    step: int
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the difference.

    Attributes:
        happened: the steps that made it; several where what was published between can't be read.
        cells: where.
        before: the number of these cells before; None where it can't be read.
        after: likewise.
    """

    happened: tuple[Happened, ...]
    cells: IntervalSet
    before: Decimal | None
    after: Decimal | None

    @property
    def difference(self) -> Decimal | None:
        """How much it added; None where one side can't be read."""
        return _difference(self.before, self.after)


@dataclass(frozen=True, slots=True)
class Explained:
    """A number at two moments, and the parts of its difference, oldest first.

    Attributes:
        before: at the first moment; None where it can't be read.
        after: at the second one.
        parts: these sum exactly to the difference, if both sides can be read.
        equal: how many steps changed the cells without changing the number of any.
    """

    before: Decimal | None
    after: Decimal | None
    parts: tuple[Part, ...]
    equal: int = 0

    @property
    def difference(self) -> Decimal | None:
        """The whole difference; None where a side can't be read."""
        return _difference(self.before, self.after)


def _difference(before: Decimal | None, after: Decimal | None) -> Decimal | None:
    return None if before is None or after is None else EXACT.subtract(after, before)


@dataclass(frozen=True, slots=True)
class _Link:
    """What a cell held after a step (-1: before all of them), and its number if known."""

    step: int
    held: HeldContent | None
    number: Decimal | None


@dataclass(frozen=True, slots=True)
class _Change:
    """What some steps made of one cell's number."""

    cell: Interval
    made: tuple[Happened, ...]
    before: Decimal | None
    after: Decimal | None

    @property
    def sort(self) -> tuple[object, ...]:
        """Equal for changes that one part tells."""
        return tuple(
            (each.step, frozenset((cause.kind, cause.subject, cause.note) for cause in each.causes))
            for each in self.made
        )


def explain(
    first: Mapping[Interval, HeldContent],
    steps: Sequence[HistoryStep],
    number: Callable[[Interval, HeldContent], Decimal | None],
    causes: Callable[
        [HistoryStep, Interval, HeldContent | None, HeldContent | None], tuple[Cause, ...]
    ],
) -> Explained:
    """Split the difference of a number between two moments into the steps that made it.

    Args:
        first: what the cells held at the first moment.
        steps: those since, oldest first, up to the second moment.
        number: of a cell as it was held; None where it can't be read. A cell that is not held has 0.
        causes: of a step, for a cell, what it held before and after.
    """
    cells = sorted({*first, *(cell for step in steps for cell in step.held)})
    alike: dict[tuple[object, ...], list[_Change]] = {}
    silent: set[int] = set()
    at_first: list[Decimal | None] = []
    at_last: list[Decimal | None] = []
    for cell in cells:
        chain = [*_chain(cell, first, steps, number)]
        at_first.append(chain[0].number)
        at_last.append(chain[-1].number)
        for before, between, after in _stretches(chain):
            made = tuple(
                Happened(link.step, causes(steps[link.step], cell, earlier.held, link.held))
                for earlier, link in zip((before, *between), (*between, after), strict=True)
            )
            if before.number is not None and before.number == after.number:
                silent.update(each.step for each in made)
            else:
                change = _Change(cell, made, before.number, after.number)
                alike.setdefault(change.sort, []).append(change)
    parts = [_part(changes) for changes in alike.values()]
    part_steps = {each.step for part in parts for each in part.happened}
    ordered = sorted(parts, key=lambda part: [each.step for each in part.happened])
    return Explained(added(at_first), added(at_last), tuple(ordered), len(silent - part_steps))


def _chain(
    cell: Interval,
    first: Mapping[Interval, HeldContent],
    steps: Sequence[HistoryStep],
    number: Callable[[Interval, HeldContent], Decimal | None],
) -> Iterator[_Link]:
    """Yield what a cell held, one link for each time that it changed."""

    def link(step: int, held: HeldContent | None) -> _Link:
        return _Link(step, held, ZERO if held is None else number(cell, held))

    now = first.get(cell)
    yield link(-1, now)
    for at, step in enumerate(steps):
        held = step.held.get(cell)
        if held != now:
            now = held
            yield link(at, held)


def _stretches(chain: Sequence[_Link]) -> Iterator[tuple[_Link, tuple[_Link, ...], _Link]]:
    """Cut a chain at the links whose numbers are known; its two ends are always cuts."""
    cuts = [
        at for at, link in enumerate(chain) if link.number is not None or at in (0, len(chain) - 1)
    ]
    for start, end in pairwise(cuts):
        yield chain[start], tuple(chain[start + 1 : end]), chain[end]


def _part(changes: Sequence[_Change]) -> Part:
    return Part(
        happened=tuple(
            Happened(several[0].step, merged(cause for each in several for cause in each.causes))
            for several in zip(*(change.made for change in changes), strict=True)
        ),
        cells=IntervalSet.of(change.cell for change in changes),
        before=added([change.before for change in changes]),
        after=added([change.after for change in changes]),
    )
