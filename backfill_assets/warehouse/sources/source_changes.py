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
from backfill_assets.warehouse.files.file_spans import (
    File,
    added_files,
    logged_file,
    logged_type,
    may_delete_within_files,
    rows_at,
    rows_of,
)
from backfill_assets.warehouse.log.delta_log import (
    ABSENT,
    actions_of,
    commits_there,
    delta_json_schema,
    name_in_files,
    opened_log,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.source import Source


@dataclass(frozen=True, slots=True)
class ConcernedCells:
    """The cells that a range of a log concerns.

    Attributes:
        changed: cells that certainly got or lost rows, and how many more they hold now.
        unsure: cells that may have changed: only their rows can tell.
        commits: per commit that added or removed rows, the cells that it may concern; empty where
            they are unknown, or the source is one cell.
    """

    changed: Mapping[Interval, int] = field(default_factory=dict[Interval, int])
    unsure: IntervalSet = field(default_factory=IntervalSet.empty)
    commits: tuple[IntervalSet, ...] = ()

    def parts(self, cells: IntervalSet) -> tuple[IntervalSet, ...]:
        """Divide changed cells into changes: commits with a changed cell in common are one change."""
        parts: list[IntervalSet] = []
        for commit in self.commits or (cells,):
            common = commit & cells
            apart = [other for other in parts if not other & common]
            joined = [other for other in parts if other & common]
            parts = [*apart, *([IntervalSet.union_all([common, *joined])] if common else [])]
        remaining = cells - IntervalSet.union_all(parts)
        return (*parts, *([remaining] if remaining else []))


def life_of(source: Source) -> IntervalSet:
    """Give every instant that the source's cells may lie in; of one that is not cut, its only cell."""
    if not is_cut(source):
        return IntervalSet.of([WHOLE_CELL])
    cadence = source.cadence
    start = cadence.start or cadence.ceil(WHOLE_CELL.start)
    return IntervalSet.of([Interval(start, cadence.end or WHOLE_CELL.end)])


def is_cut(source: Source) -> bool:
    """Whether the source is cut into cells; otherwise it is one cell, and any change concerns it."""
    return source.time_column is not None and source.cadence.unit is not Unit.WHOLE


def touched(path: str, source: Source, since: int, until: int) -> ConcernedCells:
    """Find the cells that the commits after `since`, up to `until`, concern.

    Where these commits can't be read any more, every cell is unsure.

    Args:
        path: of the table.
        source: whose cells they are.
        since: a delta_version, excluded; -1 for the whole history.
        until: a delta_version, included.
    """
    if not commits_there(path) >= {*range(since + 1, until + 1)}:
        return ConcernedCells(unsure=life_of(source))
    actions = [
        (at, action) for at in range(since + 1, until + 1) for action in actions_of(path, at)
    ]
    described_anew = since > ABSENT and any("metaData" in action for _, action in actions)
    if described_anew and not _read_alike(path, source, since, until):
        return ConcernedCells(unsure=life_of(source))
    additions, removals = _files(actions, "add"), _files(actions, "remove")
    added, removed = [action for _, action in additions], [action for _, action in removals]
    if not is_cut(source):
        return _whole([*map(rows_of, added)], [*map(rows_of, removed)])
    read = _reader(path, source, until)
    new = [*map(read, added)]
    gone = list(_removed(path, source, since, removed, added, read))
    commits: dict[int, list[IntervalSet]] = {}
    for (at, _), file in zip((*additions, *removals), (*new, *gone), strict=True):
        cells = file.cells(source.cadence)
        commits.setdefault(at, []).append(life_of(source) if cells is None else cells)
    concerned = tuple(IntervalSet.union_all(cells) for cells in commits.values())
    return replace(_sorted(source, new, gone), commits=concerned)


def _files(
    actions: Iterable[tuple[int, Mapping[str, Any]]], what: str
) -> list[tuple[int, Mapping[str, Any]]]:
    """Give the files that were added, or removed, with a data change, each with its commit."""
    named = ((at, action[what]) for at, action in actions if what in action)
    return [(at, file) for at, file in named if file.get("dataChange", True)]


def present(path: str, source: Source, delta_version: int) -> ConcernedCells:
    """Find the cells that held rows at one delta_version: those in `changed` did, those in `unsure` may."""
    if is_cut(source):
        column, cadence = str(source.time_column), source.cadence
        files = [file for _, file in added_files(path, delta_version, column, cadence)]
        if may_delete_within_files(path, delta_version):
            files = [replace(file, rows=None) for file in files]
        return _sorted(source, files, [])
    rows = rows_at(path, delta_version)
    if rows is None:
        return ConcernedCells(unsure=life_of(source))
    return ConcernedCells({WHOLE_CELL: rows} if rows else {})


def _whole(added: list[int | None], removed: list[int | None]) -> ConcernedCells:
    """Judge a source that is one cell; files that replace others may hold the same rows."""
    if not added and not removed:
        return ConcernedCells()
    counts = [rows for rows in (*added, *removed) if rows is not None]
    more = sum(counts[: len(added)]) - sum(counts[len(added) :])
    if len(counts) < len(added) + len(removed) or (added and removed and not more):
        return ConcernedCells(unsure=IntervalSet.of([WHOLE_CELL]))
    return ConcernedCells({WHOLE_CELL: more} if more else {})


def _read_alike(path: str, source: Source, since: int, until: int) -> bool:
    """Whether the same files give the same values of the declared columns at two delta_versions.

    A column that is new is NULL in files that were there before, unless an older column has got its name.
    """
    before, after = (
        {field["name"]: _in_files(field) for field in delta_json_schema(opened_log(path, at))}
        for at in (since, until)
    )
    older = {physical for physical, _ in before.values()}
    return all(
        name not in before and after[name][0] not in older
        for name in (column.name for column in source.schema)
        if before.get(name) != after.get(name)
    )


def _in_files(field: Mapping[str, Any]) -> tuple[str, Any]:
    """Give the name and the type by which files hold a column."""
    return name_in_files(field), _type_in_files(field["type"])


def _type_in_files(dtype: Any) -> Any:  # noqa: ANN401 - Delta's JSON: a name, or a nested object
    if not isinstance(dtype, dict):
        return dtype
    if "fields" in dtype:
        return [(field["name"], *_in_files(field)) for field in dtype["fields"]]
    return [_type_in_files(dtype.get(part)) for part in ("keyType", "valueType", "elementType")]


def _reader(path: str, source: Source, until: int) -> Callable[[Mapping[str, Any]], File]:
    column = str(source.time_column)
    name, dtype = logged_type(path, until, column)
    return partial(logged_file, column=name, dtype=dtype, cadence=source.cadence)


def _removed(
    path: str,
    source: Source,
    since: int,
    removals: list[Mapping[str, Any]],
    additions: list[Mapping[str, Any]],
    read: Callable[[Mapping[str, Any]], File],
) -> Iterator[File]:
    """Read removed files; where their entry is incomplete, from another entry of the same file in the log.

    How many of its rows deletion vectors had deleted, only the file's own entry says.
    """
    added = {action["path"]: action for action in additions}
    before: dict[str, File] | None = None
    for action in removals:
        file = read(action)
        if file.cells(source.cadence) is None and action["path"] in added:
            deleted = {"deletionVector": action.get("deletionVector")}
            file = read({**added[action["path"]], **deleted})
        if file.cells(source.cadence) is None and since > ABSENT:
            if before is None:
                column = str(source.time_column)
                before = dict(added_files(path, since, column, source.cadence))
            file = before.get(unquote(action["path"]), file)
            if action.get("deletionVector"):
                file = replace(file, rows=None)
        yield file


def _sorted(source: Source, added: list[File], removed: list[File]) -> ConcernedCells:
    """Separate the cells that certainly changed from those whose rows must be read."""
    cadence, life = source.cadence, life_of(source)
    more: Counter[Interval] = Counter()
    ways: dict[Interval, set[int]] = {}
    unsure: list[IntervalSet] = []
    for way, file in (*((1, entry) for entry in added), *((-1, entry) for entry in removed)):
        cells = file.cells(cadence)
        inside = life if cells is None else cells & life
        only = _only(cadence, inside) if cells == inside else None
        if only is None or file.rows is None:
            unsure.append(inside)
            continue
        more[only] += way * file.rows
        ways.setdefault(only, set()).add(way)
    # As many rows as before, but some were written anew: only reading them shows a change.
    unsure.append(
        IntervalSet.of(cell for cell, signs in ways.items() if signs == _BOTH and not more[cell])
    )
    open_ = IntervalSet.union_all(unsure)
    return ConcernedCells(
        {cell: rows for cell, rows in more.items() if rows and cell not in open_}, open_
    )


_BOTH = {1, -1}


def _only(cadence: Cadence, cells: IntervalSet) -> Interval | None:
    """Give the only cell of a set; None if it has several or none."""
    hull = cells.hull()
    return hull if hull is not None and cadence.next(hull.start) == hull.end else None
