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
from backfill_assets.state.moves import moves_in
from backfill_assets.state.tables import BATCHES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from backfill_assets.snapshots.environment import Environment, Pointer
    from backfill_assets.snapshots.ready import InputPin
    from backfill_assets.state.layered_view import Cell


def outdated_foreign_cells(
    connection: sa.Connection,
    drawn: Environment,
    pointed: Mapping[str, Pointer],
    cells: Mapping[str, list[Cell]],
) -> dict[str, list[Cell]]:
    """Let cells that were built elsewhere count as older than all that they read.

    Args:
        connection: to the state.
        drawn: the environment that reads them.
        pointed: where it reads every model.
        cells: of models that it does not publish as they are.
    """
    alone = {pointed[model].version for model in cells if not pointed[model].under}
    foreign = set(_foreign(connection, drawn, pointed, alone)) if alone else set[str]()
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
    versions: set[str],
) -> Iterator[str]:
    """Name the batches whose inputs are not among the tables that are read here.

    A table that was published here once has the stamps of its publication, which tell what of its inputs
    has changed since. Of an input that is not there any more no stamp tells.
    """
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
    here = _Read(connection, pointed)
    for row in rows:
        pins = [pin for pin in row.inputs if here.is_left(pin)]
        if row.version in published:
            pins = [pin for pin in pins if here.lacks(pin)]
        if pins:
            yield row.batch_id


@dataclass
class _Read:
    """What is read of each model."""

    connection: sa.Connection
    pointed: Mapping[str, Pointer]
    _ready: dict[tuple[str, int], IntervalSet] = field(
        default_factory=dict[tuple[str, int], IntervalSet]
    )

    def is_left(self, pin: InputPin) -> bool:
        """Whether a model is read in other tables than a batch has read it in."""
        at = self.pointed.get(pin.upstream)
        return at is not None and all(layer.version != pin.version for layer in at.layers)

    def lacks(self, pin: InputPin) -> bool:
        """Whether cells are not read that were ready where a batch has read them."""
        there = self._cells(pin.version, pin.delta_version)
        there = there if pin.cells is None else there & pin.cells
        layers = self.pointed[pin.upstream].layers
        here = (self._cells(layer.version, layer.delta_version) for layer in layers)
        return bool(there - IntervalSet.union_all(here))

    def _cells(self, version: str, at: int) -> IntervalSet:
        if (version, at) not in self._ready:
            self._ready[version, at] = ready.ready_cells(self.connection, version, at)
        return self._ready[version, at]
