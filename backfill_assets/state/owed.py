"""Owed work: cells that stay owed until a batch that began afterwards has rebuilt them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.state.cells import bounds, cell_of, reached
from backfill_assets.state.counter import next_number
from backfill_assets.state.pointers import followed, pointers
from backfill_assets.state.rows import insert_all, read_as, values_of
from backfill_assets.state.tables import OWED, VERSIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.snapshots.batch import BatchCommit

_MARKS = sa.select(OWED).where(
    OWED.c.version.in_(sa.bindparam("versions")),
    sa.or_(OWED.c.environment.is_(None), OWED.c.environment.in_(sa.bindparam("environments"))),
)


@dataclass(frozen=True, slots=True)
class Mark:
    """Why cells are owed.

    Attributes:
        reason: in words.
        plan_id: the plan that declared them wrong; None if no plan did.
        environment: the one that owes them; None for every one that reads the table.
    """

    reason: str
    plan_id: str | None = None
    environment: str | None = None


def mark_owed(connection: sa.Connection, version: str, cells: IntervalSet, mark: Mark) -> None:
    """Remember that cells of a version must be rebuilt."""
    _insert(connection, (version,), cells, mark)


def mark_owed_everywhere(
    connection: sa.Connection, model: str, cells: IntervalSet, mark: Mark
) -> tuple[str, ...]:
    """Remember that cells must be rebuilt in every version of a model, and say in which."""
    query = sa.select(VERSIONS.c.version).where(VERSIONS.c.model == model)
    versions = tuple(connection.execute(query.order_by(VERSIONS.c.version)).scalars())
    _insert(connection, versions, cells, mark)
    return versions


def settle_owed(connection: sa.Connection, commit: BatchCommit) -> None:
    """Strike off what a commit has rebuilt, unless it began before the cells were owed."""
    where = sa.and_(OWED.c.version == commit.version, OWED.c.since < commit.built_at)
    strike(connection, commit.stretches, where)


def owed_since(connection: sa.Connection, commit: BatchCommit) -> list[int]:
    """Read since when the cells that a commit has rebuilt are owed."""
    where = sa.and_(
        OWED.c.version == commit.version, reached(OWED, IntervalSet.of([commit.interval]))
    )
    return list(connection.execute(sa.select(OWED.c.since).where(where)).scalars())


def mark_copied(
    connection: sa.Connection, source: str, cells: IntervalSet, to: str, environment: str
) -> None:
    """Let cells that were copied into another table be owed there, where they are in the one that they come from."""
    for row in marks(connection, [source], followed(connection, environment)):
        if copied := IntervalSet.of([cell_of(row)]) & cells:
            mark_owed(connection, to, copied, read_as(Mark, row))


def strike(connection: sa.Connection, cells: IntervalSet, where: sa.ColumnElement[bool]) -> None:
    """Strike these cells off the selected marks; the other cells of a mark stay."""
    if not cells:
        return
    selected = sa.and_(where, reached(OWED, cells))
    rows = connection.execute(sa.select(OWED).where(selected)).all()
    remaining = [
        each
        for row in rows
        for each in _rows(
            row.version, IntervalSet.of([cell_of(row)]) - cells, read_as(Mark, row), row.since
        )
    ]
    connection.execute(sa.delete(OWED).where(selected))
    insert_all(connection, OWED, remaining)


def forget_owed(connection: sa.Connection, plan_id: str) -> None:
    """Forget what a plan declared wrong."""
    connection.execute(sa.delete(OWED).where(OWED.c.plan_id == plan_id))


def marks(
    connection: sa.Connection, versions: Iterable[str], environments: Iterable[str]
) -> list[sa.Row[Any]]:
    """Read the marks on these versions that concern readers of these environments."""
    named = {"versions": sorted(set(versions)), "environments": sorted(set(environments))}
    return list(connection.execute(_MARKS, named))


def named(connection: sa.Connection, environment: str) -> list[list[str | int]]:
    """Name the marks on the tables that an environment reads: the table, from, to and since when."""
    current = pointers(connection, environment).values()
    tables = {layer.version for at in current for layer in at.layers}
    rows = marks(connection, tables, followed(connection, environment))
    return sorted([row.version, row.starts, row.ends, row.since] for row in rows)


def _insert(
    connection: sa.Connection, versions: tuple[str, ...], cells: IntervalSet, mark: Mark
) -> None:
    since = next_number(connection)
    rows = [each for version in versions for each in _rows(version, cells, mark, since)]
    insert_all(connection, OWED, rows)


def _rows(version: str, cells: IntervalSet, mark: Mark, since: int) -> list[dict[str, Any]]:
    of = {"version": version, "since": since, **values_of(mark)}
    return [{**of, **bounds(interval)} for interval in cells]
