"""Cells that were built elsewhere: from tables that an environment does not read.

A version may have been built in development, or by an abandoned plan, from tables that only they
read. When a plan uses its table later, such cells count as built before all that they read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.snapshots.state_view import BUILT_ELSEWHERE
from backfill_assets.state.moves import moves_in
from backfill_assets.state.tables import BATCHES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from backfill_assets.snapshots.environment import Environment, Pointer
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
    """Name the batches of others whose inputs are not among the tables that are read here."""
    home = drawn.follows if drawn.is_workspace and drawn.follows is not None else drawn.name
    batch = BATCHES.c
    wanted = sa.select(batch.batch_id, batch.version, batch.inputs).where(
        batch.version.in_(sorted(versions)), batch.environment.not_in([drawn.name, home])
    )
    rows = connection.execute(wanted).all()
    if not rows:
        return
    # A table that was published here once has the stamps of its publication, which tell its age.
    published = {
        at.version
        for move in moves_in(connection, home, 0)
        for at in (move.old, move.new)
        if at is not None
    }
    read = {model: {layer.version for layer in at.layers} for model, at in pointed.items()}
    for row in rows:
        if row.version not in published and any(
            pin.upstream in read and pin.version not in read[pin.upstream] for pin in row.inputs
        ):
            yield row.batch_id
