"""Draw the picture of one environment that planning works on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.state_view import ModelState, ReadyRun, StateView
from backfill_assets.state.cells import cell_of
from backfill_assets.state.claims import live_claims
from backfill_assets.state.environments import environment
from backfill_assets.state.owed import marks
from backfill_assets.state.pointers import followed, pointers
from backfill_assets.state.tables import POINTERS, READY_RECORDS

if TYPE_CHECKING:
    from datetime import datetime

_RECORDS = READY_RECORDS.c


def owed(connection: sa.Connection, name: str) -> dict[str, IntervalSet]:
    """Read the cells that an environment owes, by model."""
    model_of = {at.version: model for model, at in pointers(connection, name).items()}
    found: dict[str, list[tuple[int, int]]] = {}
    for row in marks(connection, model_of, followed(connection, name)):
        found.setdefault(model_of[row.version], []).append((row.starts, row.ends))
    return {model: IntervalSet.of_pairs(pairs) for model, pairs in found.items()}


def view(
    connection: sa.Connection, name: str, heard_after: datetime, instead: object = None
) -> StateView:
    del instead
    """Draw an environment: what is ready at its pins, and what live batches hold.

    Raises:
        UnknownEnvironmentError: there is none of this name.
    """
    drawn = environment(connection, name)
    pointed = pointers(connection, name)
    runs: dict[str, list[ReadyRun]] = {model: [] for model in pointed}
    for row in connection.execute(_runs(name)):
        run = ReadyRun(cell_of(row), row.built_at, row.changed_at, row.batch_id)
        runs[row.model].append(run)
    held = live_claims(connection, heard_after)
    models = {model: ModelState(at, tuple(runs[model])) for model, at in pointed.items()}
    claimed = {model: held[at.version] for model, at in pointed.items() if at.version in held}
    return StateView(drawn, models, claimed)


def _runs(name: str) -> sa.Select[Any]:
    """Join touching cells that share batch and stamps, in the database: ten years are one row."""
    columns = (
        POINTERS.c.model, _RECORDS.starts, _RECORDS.ends, _RECORDS.batch_id,
        _RECORDS.built_at, _RECORDS.changed_at,
    )  # fmt: skip
    at = POINTERS.c.delta_version
    here = sa.and_(
        POINTERS.c.environment == name,
        _RECORDS.valid_from <= at,
        sa.or_(_RECORDS.valid_to.is_(None), _RECORDS.valid_to > at),
    )
    ready = (
        sa.select(*columns, _begins().label("begins"))
        .join_from(POINTERS, READY_RECORDS, POINTERS.c.version == _RECORDS.version)
        .where(here)
        .subquery()
    )
    number = sa.func.sum(ready.c.begins).over(partition_by=ready.c.model, order_by=ready.c.starts)
    numbered = sa.select(ready, number.label("run")).subquery()
    one = numbered.c
    joined = [
        sa.func.min(one.starts).label("starts"),
        sa.func.max(one.ends).label("ends"),
        *(sa.func.min(one[name]).label(name) for name in ("batch_id", "built_at", "changed_at")),
    ]
    return sa.select(one.model, *joined).group_by(one.model, one.run).order_by(one.model, one.run)


def _begins() -> sa.ColumnElement[int]:
    """1 where a cell does not go on from the one before it."""

    def before(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.func.lag(column).over(partition_by=POINTERS.c.model, order_by=_RECORDS.starts)

    goes_on = sa.and_(
        before(_RECORDS.ends) == _RECORDS.starts,
        *(
            before(column) == column
            for column in (_RECORDS.batch_id, _RECORDS.built_at, _RECORDS.changed_at)
        ),
    )
    return sa.case((goes_on, 0), else_=1)
