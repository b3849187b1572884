"""Cells that were built elsewhere: from tables that an environment does not read.

A version may have been built in development, by an abandoned plan, or by a dropped environment of the same
name, from tables that only they read. When a plan uses its table later, such cells count as built before
all that they read.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.state_view import BUILT_ELSEWHERE
from backfill_assets.state import ready
from backfill_assets.state.layered_view import cells_at, told_at
from backfill_assets.state.moves import moves_in
from backfill_assets.state.tables import BATCHES

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from backfill_assets.snapshots.environment import Environment, Pointer
    from backfill_assets.snapshots.ready import InputPin, ReadyRecord
    from backfill_assets.state.layered_view import Cell


def outdated_foreign_cells(
    connection: sa.Connection,
    drawn: Environment,
    pointed: Mapping[str, Pointer],
    cells: Mapping[str, list[Cell]],
    instead: Container[str] = (),
) -> dict[str, list[Cell]]:
    """Let cells that were built elsewhere count as older than all that they read.

    Args:
        connection: to the state.
        drawn: the environment that reads them.
        pointed: where it reads every model.
        cells: of models that it does not publish as they are.
        instead: those of them that it reads elsewhere. What it reads under a table of its own, or builds over one, was
            looked at when it came to that.
    """
    asked = {model for model in cells if model in instead or not pointed[model].under}
    foreign = set(_foreign(connection, drawn, pointed, cells, asked)) if asked else set[str]()
    if not foreign:
        return dict(cells)
    return {
        model: [
            replace(cell, built_at=BUILT_ELSEWHERE) if cell.batch_id in foreign else cell
            for cell in each
        ]
        for model, each in cells.items()
    }


def _foreign(
    connection: sa.Connection,
    drawn: Environment,
    pointed: Mapping[str, Pointer],
    cells: Mapping[str, list[Cell]],
    asked: set[str],
) -> Iterator[str]:
    """Name the batches whose inputs are not among the tables that are read here.

    A table that was published here once has the stamps of its publication, which tell what of its inputs
    has changed since. Of an input that is not there any more no stamp tells, nor of one that is read from another
    environment's table again, which had published it long before.
    """
    versions = {pointed[model].version for model in asked}
    home = drawn.follows if drawn.is_workspace and drawn.follows is not None else drawn.name
    batch = BATCHES.c
    wanted = sa.select(batch.batch_id, batch.version, batch.inputs).where(
        batch.version.in_(sorted(versions))
    )
    if drawn.is_workspace:  # what it builds has the stamps of what it reads
        wanted = wanted.where(batch.environment != drawn.name)
    rows = connection.execute(wanted).all()
    if not rows:
        return
    published = {
        at.version
        for move in moves_in(connection, home, 0)
        for at in (move.old, move.new)
        if at is not None
    }
    here, built_at = _Read(connection, pointed, cells), dict[str, int]()
    for cell in (cell for model in asked for cell in cells[model]):
        built_at[cell.batch_id] = min(cell.built_at, built_at.get(cell.batch_id, cell.built_at))
    for row in rows:
        if row.batch_id not in built_at:
            continue
        pins = [pin for pin in row.inputs if here.is_left(pin)]
        if row.version in published:
            pins = [pin for pin in pins if not here.tells(pin, built_at[row.batch_id])]
        if pins:
            yield row.batch_id


@dataclass
class _Read:
    """What is read of each model; `cells` where it is drawn already."""

    connection: sa.Connection
    pointed: Mapping[str, Pointer]
    cells: Mapping[str, list[Cell]]
    _otherwise: dict[str, list[tuple[ReadyRecord, int]]] = field(
        default_factory=dict[str, "list[tuple[ReadyRecord, int]]"]
    )

    def is_left(self, pin: InputPin) -> bool:
        """Whether a model is read in other tables than a batch has read it in."""
        at = self.pointed.get(pin.upstream)
        return at is not None and all(layer.version != pin.version for layer in at.layers)

    def tells(self, pin: InputPin, since: int) -> bool:
        """Whether all that a batch has read is read here, or stamps later than its own number tell what is otherwise."""
        return all(
            number > since
            for held, number in self._read_otherwise(pin.upstream, pin.version)
            if held.is_valid_at(pin.delta_version) and (pin.cells is None or held.cell in pin.cells)
        )

    def _read_otherwise(self, model: str, version: str) -> list[tuple[ReadyRecord, int]]:
        """Give what a table has ever held and that is not read here as it was, each with the number that tells of it."""
        if version not in self._otherwise:
            there = self._there(model)
            ever = ready.records_ever(self.connection, version)
            told = ((held, told_at(there, held)) for held in ever)
            self._otherwise[version] = [(held, at) for held, at in told if at is not None]
        return self._otherwise[version]

    def _there(self, model: str) -> list[Cell]:
        """Give the cells that are read of a model, those included that a plan is to build again."""
        at = replace(self.pointed[model], certain=IntervalSet.empty())
        read = (*cells_at(self.connection, at), *self.cells.get(model, ()))
        by_start = {cell.starts: cell for cell in read}
        return [by_start[starts] for starts in sorted(by_start)]
