"""Observed sources as the state keeps them: up to where each was looked at, and its cells' stamps.

A source's cells have stamps like a model's, drawn from the one counter. A batch reads a source at its
observed head, which it is given in the transaction that draws its own number; so a cell that was
built before a change of what it read became known has the smaller number, and no other has.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import sqlalchemy as sa

from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.interval import Interval, epoch_of, instant_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.content import ChangedAt
from backfill_assets.snapshots.environment import Pointer
from backfill_assets.snapshots.observation import (
    BASELINE,
    ObservedSource,
    SourceCell,
    SourcePin,
    listed,
    read_up_to,
)
from backfill_assets.snapshots.state_view import ReadyRun, SourceState, UpstreamChange
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.cells import bounds, cell_of, joined_runs, reached
from backfill_assets.state.counter import next_number
from backfill_assets.state.rows import read_as, values_of
from backfill_assets.state.tables import (
    BATCHES,
    CLAIMS,
    OBSERVED_SOURCES,
    READY_RECORDS,
    SOURCE_CELLS,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime

    from backfill_assets.snapshots.observation import ChangedCells, Observation
    from backfill_assets.snapshots.ready import InputPin
    from backfill_assets.state.database import Database

_CELLS = SOURCE_CELLS.c
_WHOLE = epoch_of(WHOLE_CELL.start), epoch_of(WHOLE_CELL.end)


class Sources(Aggregate[D]):
    """Sources: what was seen of them, and where batches have read them.

    Each method is one transaction.
    """

    def observed(self) -> dict[str, ObservedSource]:
        """Read every source that was looked at, by name."""
        return self._database.read(observed)

    def source_cells(self, source: str) -> dict[Interval, SourceCell]:
        """Read what is known of a source's cells."""
        query = sa.select(SOURCE_CELLS).where(_CELLS.source == source)
        cells = (SourceCell(cell_of(row), row.row_count, row.content) for row in self._rows(query))
        return {cell.cell: cell for cell in cells}

    def source_rows(self, source: str, path: str, within: IntervalSet) -> IntervalSet | None:
        """Read which of these cells hold rows where batches read a source; None: never looked at."""
        place = self.place(path)

        def work(connection: sa.Connection) -> IntervalSet | None:
            observed_source = find_observed(connection, source)
            if observed_source is None or observed_source.path != place:
                return None
            if not within:
                return within
            query = sa.select(_CELLS.starts, _CELLS.ends).where(
                _CELLS.source == source, _CELLS.row_count > 0, reached(SOURCE_CELLS, within)
            )
            rows = connection.execute(query).all()
            return IntervalSet.of_pairs((row.starts, row.ends) for row in rows) & within

        return self._database.read(work)

    def source_pins(
        self, before: ObservedSource | None, current: ObservedSource
    ) -> tuple[SourcePin, ...]:
        """Read at which delta_versions the cells that are ready now have read a source.

        Args:
            before: the source as it was looked at last; None if it never was.
            current: the source as it is now.
        """
        return self._database.read(pins_of, before, current)

    def observe(self: Sources[Database], observation: Observation) -> bool:
        """Write what a look at a source has found, unless another run has looked, or read elsewhere, meanwhile.

        Returns:
            Whether it was written; else the other run's look counts.
        """
        now = self._clock()
        return self._database.write(_observe, observation, now)


def observed(connection: sa.Connection) -> dict[str, ObservedSource]:
    """Read every source that was looked at, by name."""
    rows = connection.execute(sa.select(OBSERVED_SOURCES))
    return {row.source: read_as(ObservedSource, row) for row in rows}


def find_observed(connection: sa.Connection, source: str) -> ObservedSource | None:
    """Read a source as it was looked at last; None for one that never was."""
    query = sa.select(OBSERVED_SOURCES).where(OBSERVED_SOURCES.c.source == source)
    row = connection.execute(query).first()
    return None if row is None else read_as(ObservedSource, row)


def _observe(connection: sa.Connection, observation: Observation, now: datetime) -> bool:
    latest, before = observation.found, observation.before
    current = find_observed(connection, latest.source)
    if _place(current) != _place(before):
        return False
    pins = () if observation.pins is None else pins_of(connection, before, latest)
    if {pin.delta_version for pin in pins} - (observation.pins or set()):
        return False
    if observation.anew:
        connection.execute(sa.delete(SOURCE_CELLS).where(_CELLS.source == latest.source))
    _forget(connection, latest.source, observation.forgotten)
    came: list[UpstreamChange] = []
    for change in observation.changes:
        if change.cells:
            at = _stamp(connection, change, pins)
            _put(connection, latest.source, change.cells, at)
            came.append(UpstreamChange(at, IntervalSet.of(cell.cell for cell in change.cells)))
    _remember(connection, latest.source, observation.same)
    changes = listed(
        () if observation.anew else _changes(connection, latest.source),
        (new for new in came if new.number != BASELINE),
    )
    source = OBSERVED_SOURCES.c.source == latest.source
    connection.execute(sa.delete(OBSERVED_SOURCES).where(source))
    values = {
        **values_of(latest),
        "observed_at": now,
        "runs": _drawn(connection, latest.source),
        "changes": _written(changes),
    }
    connection.execute(sa.insert(OBSERVED_SOURCES).values(values))
    return True


def _stamp(connection: sa.Connection, change: ChangedCells, pins: Iterable[SourcePin]) -> int:
    if change.since is not None:
        return 1 + max((pin.last for pin in pins if pin.delta_version <= change.since), default=0)
    return next_number(connection) if change.changed_at is None else change.changed_at


def at_observed_heads(connection: sa.Connection, pins: Iterable[InputPin]) -> tuple[InputPin, ...]:
    """Pin each source where it was looked at last: what arrived since is a change that comes later.

    A source that was never looked at, or that lies elsewhere by now, keeps the pin that was asked for.
    """
    all_pins = tuple(pins)
    observed_sources = observed(connection) if all_pins else {}
    return tuple(_at_head(pin, observed_sources.get(pin.upstream)) for pin in all_pins)


def states(connection: sa.Connection) -> dict[str, SourceState]:
    """Draw every observed source: its head, and its cells with their stamps."""
    at = OBSERVED_SOURCES.c
    columns = (at.source, at.head, at.runs, at.changes, at.bytes)
    rows = connection.execute(sa.select(*columns)).all()
    return {row.source: _state(*row) for row in rows}


_Kept: TypeAlias = "tuple[int, str, str | None, int | None]"
_LAST: dict[str, tuple[_Kept, SourceState]] = {}
"""Of each source what its last picture was drawn from, and the picture: one before is not asked for again."""


def _state(source: str, head: int, runs: str, changes: str | None, size: int | None) -> SourceState:
    """Draw a source from what is kept of it."""
    kept = (head, runs, changes, size)
    last = _LAST.get(source)
    if last is None or last[0] != kept:
        last = _LAST[source] = (kept, _picture(source, *kept))
    return last[1]


def _picture(
    source: str, head: int, runs: str, changes: str | None, size: int | None
) -> SourceState:
    drawn = [
        (Interval(instant_of(starts), instant_of(ends)), _stamps(at, columns), holds)
        for starts, ends, at, holds, *columns in json.loads(runs)
    ]
    return SourceState(
        Pointer("", source, "", "", head),
        tuple(
            ReadyRun(cells, stamps.latest(None), stamps, "", own=False)
            for cells, stamps, _ in drawn
        ),
        IntervalSet.of(cells for cells, _, holds in drawn if not holds),
        None if changes is None else _read_changes(changes),
        size,
    )


def _stamps(at: int, columns: list[str | None]) -> ChangedAt:
    """Read when a cell changed; the release before knew of no single columns."""
    return ChangedAt(at, {} if not columns or columns[0] is None else json.loads(columns[0]))


def _changes(connection: sa.Connection, source: str) -> tuple[UpstreamChange, ...]:
    """Read which cells changed together; where the release before has looked, by their stamps."""
    at = OBSERVED_SOURCES.c
    query = sa.select(at.head, at.runs, at.changes).where(at.source == source)
    row = connection.execute(query).first()
    if row is None:
        return ()
    changes = _picture(source, row.head, row.runs, row.changes, None).changes(None)
    return tuple(change for change in changes if change.number != BASELINE)


def _written(changes: Iterable[UpstreamChange]) -> str:
    return json.dumps([[change.number, *change.cells.boundaries] for change in changes])


def _read_changes(text: str) -> tuple[UpstreamChange, ...]:
    return tuple(
        UpstreamChange(number, IntervalSet(tuple(boundaries)))
        for number, *boundaries in json.loads(text)
    )


def pins_of(
    connection: sa.Connection, before: ObservedSource | None, current: ObservedSource
) -> tuple[SourcePin, ...]:
    """Read at which delta_versions what is ready now, or in flight, has read a source, in order."""
    found: defaultdict[int, list[_Reading]] = defaultdict(list)
    for reading in _readings(connection):
        if reading.pin.upstream == current.source and reading.pin.delta_version >= 0:
            found[read_up_to(reading.pin, before, current)].append(reading)
    return tuple(_source_pin(at, found[at]) for at in sorted(found))


def _source_pin(at: int, readings: list[_Reading]) -> SourcePin:
    spans = IntervalSet.of_pairs(reading.span for reading in readings if reading.span != _WHOLE)
    return SourcePin(at, max(reading.built_at for reading in readings), spans)


def forget_unread(connection: sa.Connection, declared: Collection[str]) -> None:
    """Forget the looks at sources that are not declared, and that nothing which is ready or in flight has read.

    A later look at one of them is a first look, as if nothing had been known: nothing can be late by it.
    """
    looked_at = {*connection.execute(sa.select(OBSERVED_SOURCES.c.source)).scalars()}
    undeclared = looked_at - {*declared}
    if not undeclared:
        return  # what is ready is the whole state
    read = {reading.pin.upstream for reading in _readings(connection)}
    for source in undeclared - read:
        connection.execute(sa.delete(SOURCE_CELLS).where(_CELLS.source == source))
        connection.execute(sa.delete(OBSERVED_SOURCES).where(OBSERVED_SOURCES.c.source == source))


class _Reading(NamedTuple):
    """What a batch has read of an upstream, the batch's number, and what its cells span, in epoch seconds."""

    pin: InputPin
    built_at: int
    span: tuple[int, int]


def _readings(connection: sa.Connection) -> Iterator[_Reading]:
    """Give what every batch has read whose cells are ready, or which is in flight."""
    ready = sa.select(*_bounds_in(READY_RECORDS)).where(READY_RECORDS.c.valid_to.is_(None))
    cells = ready.union_all(sa.select(*_bounds_in(CLAIMS))).subquery().c
    starts, ends = sa.func.min(cells.starts), sa.func.max(cells.ends)
    spans = (
        sa.select(cells.batch_id, starts.label("starts"), ends.label("ends"))
        .group_by(cells.batch_id)
        .subquery()
    )
    query = sa.select(BATCHES.c.inputs, BATCHES.c.built_at, spans.c.starts, spans.c.ends).join(
        spans, spans.c.batch_id == BATCHES.c.batch_id
    )
    for row in connection.execute(query):
        for pin in row.inputs:
            yield _Reading(pin, row.built_at, (row.starts, row.ends))


def _bounds_in(table: sa.Table) -> tuple[sa.ColumnElement[Any], ...]:
    return table.c.batch_id, table.c.starts, table.c.ends


def _place(observed_source: ObservedSource | None) -> ObservedSource | None:
    """Give an observed source without the instant of its look, to compare two looks."""
    return None if observed_source is None else replace(observed_source, observed_at=None)


def _at_head(pin: InputPin, observed_source: ObservedSource | None) -> InputPin:
    if observed_source is None or not observed_source.is_read_by(pin):
        return pin
    own_id = observed_source.table_id or pin.table_id  # of a cleaned log only the look may know it
    return replace(pin, delta_version=observed_source.head, table_id=own_id)


def _put(
    connection: sa.Connection, source: str, cells: Iterable[SourceCell], changed_at: int
) -> None:
    given = tuple(cells)
    old_stamps = _known_stamps(
        connection, source, [cell for cell in given if cell.changed is not None]
    )
    rows = [
        {
            **bounds(cell.cell),
            "source": source,
            "row_count": cell.rows,
            "content": cell.content,
            **_stamped(old_stamps.get(cell.cell), cell.changed, changed_at),
        }
        for cell in given
    ]
    _forget(connection, source, (cell.cell for cell in given))
    connection.execute(sa.insert(SOURCE_CELLS), rows)


def _known_stamps(
    connection: sa.Connection, source: str, cells: Iterable[SourceCell]
) -> dict[Interval, ChangedAt]:
    within = IntervalSet.of(cell.cell for cell in cells)
    if not within:
        return {}
    query = sa.select(SOURCE_CELLS).where(_CELLS.source == source, reached(SOURCE_CELLS, within))
    return {
        cell_of(row): _stamps(row.changed_at, [row.columns_changed_at])
        for row in connection.execute(query)
    }


def _stamped(
    old: ChangedAt | None, changed: frozenset[str] | None, now: int
) -> dict[str, int | str | None]:
    """Stamp a cell: its row set, or only the columns that changed."""
    if old is None or changed is None:
        return {"changed_at": now, "columns_changed_at": None}
    columns = {**old.columns, **dict.fromkeys(changed, now)}
    text = json.dumps(columns, sort_keys=True) if columns else None
    return {"changed_at": old.row_set, "columns_changed_at": text}


def _forget(connection: sa.Connection, source: str, cells: Iterable[Interval]) -> None:
    gone = sa.delete(SOURCE_CELLS).where(
        _CELLS.source == source, _CELLS.starts == sa.bindparam("cell")
    )
    starts = [{"cell": epoch_of(cell.start)} for cell in cells]
    if starts:
        connection.execute(gone, starts)


def _remember(connection: sa.Connection, source: str, cells: Iterable[SourceCell]) -> None:
    """Update what unchanged cells hold; their stamps stay."""
    rows: sa.BindParameter[Any] = sa.bindparam("rows")
    content: sa.BindParameter[Any] = sa.bindparam("held")
    kept = sa.update(SOURCE_CELLS).where(
        _CELLS.source == source, _CELLS.starts == sa.bindparam("cell")
    )
    updates = [
        {"cell": epoch_of(cell.cell.start), "rows": cell.rows, "held": cell.content}
        for cell in cells
    ]
    if updates:
        connection.execute(kept.values(row_count=rows, content=content), updates)


def _drawn(connection: sa.Connection, source: str) -> str:
    """Write a source's cells as runs."""
    rows = connection.execute(_runs(source))
    drawn = ([row.starts, row.ends, row.changed_at, row.holds, row.columns] for row in rows)
    return json.dumps([run if run[-1] is not None else run[:-1] for run in drawn])


def _runs(source: str) -> sa.Select[*tuple[Any, ...]]:
    """Join touching cells that share a stamp."""
    holds = sa.case((_CELLS.row_count > 0, 1), else_=0)
    columns = (
        _CELLS.starts, _CELLS.ends, _CELLS.changed_at, holds.label("holds"),
        _CELLS.columns_changed_at.label("columns"),
    )  # fmt: skip
    cells = sa.select(*columns).where(_CELLS.source == source)
    return joined_runs(cells, "changed_at", "holds", "columns").order_by("run")
