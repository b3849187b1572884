"""Find the cells of a source that a range of its Delta log concerns, from the log without Spark.

Each file that was added or removed with `dataChange` gives the span of its rows' cells, by its partition
or by the statistics of the event time. If a file lies in one cell and no file was removed, that cell has
changed. Otherwise the span only bounds the change, and `source_content` must read the rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.warehouse.log.delta_log import (
    ABSENT,
    actions_of,
    born_as,
    commits_there,
)
from backfill_assets.warehouse.sources.file_spans import (
    File,
    added_files,
    logged_file,
    logged_type,
    rows_at,
    rows_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.source import Source


@dataclass(frozen=True, slots=True)
class Touched:
    """The cells that a range of a log concerns.

    Attributes:
        changed: cells that got or lost rows for certain, and how many more they hold now.
        unsure: cells that may have changed: only their rows can tell.
        commits: per commit that added or removed rows, the cells that it may concern; empty where
            they are unknown, or the source is one cell.
    """

    changed: Mapping[Interval, int] = field(default_factory=dict[Interval, int])
    unsure: IntervalSet = field(default_factory=IntervalSet.empty)
    commits: tuple[IntervalSet, ...] = ()

    def parts(self, cells: IntervalSet) -> tuple[IntervalSet, ...]:
        """Part changed cells into changes: commits that concern one of them are one change."""
        found: list[IntervalSet] = []
        for commit in self.commits or (cells,):
            one = commit & cells
            apart = [other for other in found if not other & one]
            joined = [other for other in found if other & one]
            found = [*apart, *([IntervalSet.union_all([one, *joined])] if one else [])]
        left = cells - IntervalSet.union_all(found)
        return (*found, *([left] if left else []))


def life_of(source: Source) -> IntervalSet:
    """Give every instant that the source's cells may lie in; of one that is not cut, its only cell."""
    if not is_cut(source):
        return IntervalSet.of([WHOLE_CELL])
    cadence = source.cadence
    start = cadence.start or cadence.ceil(WHOLE_CELL.start)
    return IntervalSet.of([Interval(start, cadence.end or WHOLE_CELL.end)])


def is_cut(source: Source) -> bool:
    """Whether the source's rows belong to cells: else it is one, and any change concerns it."""
    return source.time_column is not None and source.cadence.unit is not Unit.WHOLE


def table_id(path: str) -> str:
    """Give Delta's id that a table was born with; empty where its first commit is cleaned away."""
    return born_as(path)


def touched(path: str, source: Source, since: int, until: int) -> Touched:
    """Find the cells that the commits after `since`, up to `until`, concern.

    Where these commits can't be read any more, every cell is unsure.

    Args:
        path: of the table.
        source: whose cells they are.
        since: a delta_version, excluded; -1 for the whole history.
        until: a delta_version, included.
    """
    if not commits_there(path) >= {*range(since + 1, until + 1)}:
        return Touched(unsure=life_of(source))
    actions = [(at, one) for at in range(since + 1, until + 1) for one in actions_of(path, at)]
    if any("metaData" in one for _, one in actions) and since > ABSENT:
        before, after = (_declared_types(path, source, at) for at in (since, until))
        if any(before[name] not in (None, after[name]) for name in before):
            return Touched(unsure=life_of(source))
    came, went = _files(actions, "add"), _files(actions, "remove")
    added, removed = [one for _, one in came], [one for _, one in went]
    if not is_cut(source):
        return _whole([*map(rows_of, added)], [*map(rows_of, removed)])
    read = _reader(path, source, until)
    new = [*map(read, added)]
    gone = list(_removed(path, source, since, removed, added, read))
    commits: dict[int, list[IntervalSet]] = {}
    for (at, _), file in zip((*came, *went), (*new, *gone), strict=True):
        cells = file.cells(source.cadence)
        commits.setdefault(at, []).append(life_of(source) if cells is None else cells)
    found = tuple(IntervalSet.union_all(cells) for cells in commits.values())
    return replace(_sorted(source, new, gone), commits=found)


def _files(
    actions: Iterable[tuple[int, Mapping[str, Any]]], what: str
) -> list[tuple[int, Mapping[str, Any]]]:
    """Give the files that came, or went, with data, each with its commit."""
    named = ((at, one[what]) for at, one in actions if what in one)
    return [(at, one) for at, one in named if one.get("dataChange", True)]


def present(path: str, source: Source, delta_version: int) -> Touched:
    """Find the cells that held rows at one delta_version: those in `changed` did, those in `unsure` may."""
    if is_cut(source):
        column, cadence = str(source.time_column), source.cadence
        files = added_files(path, delta_version, column, cadence)
        return _sorted(source, [file for _, file in files], [])
    rows = rows_at(path, delta_version)
    if rows is None:
        return Touched(unsure=life_of(source))
    return Touched({WHOLE_CELL: rows} if rows else {})


def _whole(came: list[int | None], went: list[int | None]) -> Touched:
    """Judge a source that is one cell; files that replace others may hold the same rows."""
    if not came and not went:
        return Touched()
    known = [rows for rows in (*came, *went) if rows is not None]
    more = sum(known[: len(came)]) - sum(known[len(came) :])
    if len(known) < len(came) + len(went) or (came and went and not more):
        return Touched(unsure=IntervalSet.of([WHOLE_CELL]))
    return Touched({WHOLE_CELL: more} if more else {})


def _declared_types(path: str, source: Source, delta_version: int) -> dict[str, str | None]:
    """Read the types of the declared columns; None for one that is not there."""
    from backfill_assets.warehouse.files.tables import delta_schema  # noqa: PLC0415 - it imports this log

    found = dict(delta_schema(path, delta_version))
    return {column.name: found.get(column.name) for column in source.schema}


def _reader(path: str, source: Source, until: int) -> Callable[[Mapping[str, Any]], File]:
    column = str(source.time_column)
    name, dtype = logged_type(path, until, column)
    return partial(logged_file, column=name, dtype=dtype, cadence=source.cadence)


def _removed(
    path: str,
    source: Source,
    since: int,
    went: list[Mapping[str, Any]],
    came: list[Mapping[str, Any]],
    read: Callable[[Mapping[str, Any]], File],
) -> Iterator[File]:
    """Read removed files; where their entry is incomplete, from their earlier entry in the log."""
    added = {one["path"]: one for one in came}
    before: dict[str, File] | None = None
    for one in went:
        found = read(one)
        if found.cells(source.cadence) is None and one["path"] in added:
            found = read(added[one["path"]])
        if found.cells(source.cadence) is None and since > ABSENT:
            if before is None:
                column = str(source.time_column)
                before = dict(added_files(path, since, column, source.cadence))
            found = before.get(unquote(one["path"]), found)
        yield found


def _sorted(source: Source, came: list[File], went: list[File]) -> Touched:
    """Separate the cells that certainly changed from those whose rows must be read."""
    cadence, life = source.cadence, life_of(source)
    more: Counter[Interval] = Counter()
    ways: dict[Interval, set[int]] = {}
    unsure: list[IntervalSet] = []
    for way, file in (*((1, one) for one in came), *((-1, one) for one in went)):
        cells = file.cells(cadence)
        inside = life if cells is None else cells & life
        only = _only(cadence, inside)
        if only is None or cells is None or file.rows is None:
            unsure.append(inside)
            continue
        more[only] += way * file.rows
        ways.setdefault(only, set()).add(way)
    # As many rows as before, some of them written anew: only reading them shows a change.
    unsure.append(
        IntervalSet.of(cell for cell, found in ways.items() if found == _BOTH and not more[cell])
    )
    open_ = IntervalSet.union_all(unsure)
    return Touched({cell: rows for cell, rows in more.items() if rows and cell not in open_}, open_)


_BOTH = {1, -1}


def _only(cadence: Cadence, cells: IntervalSet) -> Interval | None:
    """Give the cell that these are, if they are one."""
    hull = cells.hull()
    return hull if hull is not None and cadence.next(hull.start) == hull.end else None
