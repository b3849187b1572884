"""Holds as the state keeps them: protected environments whose pointers nothing moves."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.errors import RequestError
from backfill_assets.intervals.instants import minute_text
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.snapshots.environment import Environment
from backfill_assets.snapshots.hold import Hold, held_name
from backfill_assets.state import environments, layered_view, pointers
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.rows import read_as, values_of
from backfill_assets.state.tables import HOLDS

if TYPE_CHECKING:
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.state.database import Database


class Holds(Aggregate[D]):
    """Which consumers are held, and what each reads.

    Each method is one transaction.
    """

    def all(self) -> tuple[Hold, ...]:
        """Read all holds, by the names of their environments."""
        return self._database.read(holds)

    def of_consumer(self, consumer: str) -> Hold | None:
        """Read the hold of a consumer; None for one that is not held."""
        return self._database.read(lambda connection: _found(connection, held_name(consumer)))

    def read_by(self, consumer: str, environment: str) -> str:
        """Name the environment that a consumer of this one reads: its hold's, or this one itself."""
        hold = self.of_consumer(consumer)
        return hold.environment if hold is not None and hold.of == environment else environment

    def of_environment(self, environment: str) -> Hold | None:
        """Read the hold that an environment is; None for an environment that is none."""
        return self._database.read(_found, environment)

    def hold(self: Holds[Database], wanted: Hold) -> Hold:
        """Freeze what a consumer reads: its models, at the pins of this moment.

        Returns:
            The hold, with those of its models that are published.

        Raises:
            UnknownEnvironmentError: there is no environment to keep a publication of.
            RequestError: it is held already, or another environment has its name; or the environment is not
                protected, or publishes none of the models.
        """

        def work(connection: sa.Connection) -> Hold:
            _check_free(connection, wanted)
            now, published = self._clock(), _published(connection, wanted)
            frozen = Environment(wanted.environment, protected=True)
            environments.save_environment(connection, frozen)
            for at in published:
                pointers.put_pointer(connection, replace(at, environment=frozen.name), now)
            hold = replace(wanted, models=tuple(at.model for at in published), held_at=now)
            connection.execute(sa.insert(HOLDS).values(values_of(hold, without="models")))
            return hold

        return self._database.write(work)

    def release(self: Holds[Database], consumer: str) -> tuple[Hold, CellsByModel]:
        """End a hold: from then on the consumer reads what is published.

        Returns:
            The hold, and the cells in which the two differ.

        Raises:
            RequestError: the consumer is not held.
        """
        now = self._clock()

        def work(connection: sa.Connection) -> tuple[Hold, CellsByModel]:
            hold = _found(connection, held_name(consumer))
            if hold is None:
                consumers = ", ".join(each.consumer for each in holds(connection)) or "none"
                raise RequestError(
                    found=f"consumer '{consumer}' is not held",
                    expected=f"a held consumer: {consumers}",
                )
            differs = _differences(connection, hold)
            environments.forget_environment(connection, hold.environment, now)
            connection.execute(sa.delete(HOLDS).where(HOLDS.c.environment == hold.environment))
            return hold, differs

        return self._database.write(work)


def holds(connection: sa.Connection) -> tuple[Hold, ...]:
    """Read all holds, by the names of their environments."""
    rows = connection.execute(sa.select(HOLDS).order_by(HOLDS.c.environment))
    return tuple(_read(connection, row) for row in rows)


def _found(connection: sa.Connection, environment: str) -> Hold | None:
    row = connection.execute(sa.select(HOLDS).where(HOLDS.c.environment == environment)).first()
    return None if row is None else _read(connection, row)


def _read(connection: sa.Connection, row: sa.Row[tuple[object, ...]]) -> Hold:
    own = pointers.own_pointers(connection, row.environment)
    return read_as(Hold, row, models=tuple(own))


def _check_free(connection: sa.Connection, hold: Hold) -> None:
    existing = _found(connection, hold.environment)
    if existing is not None:
        raise RequestError(
            found=f"consumer '{existing.consumer}' is held already, since {minute_text(existing.held_at)}",
            do=f"Run `backfill release {shlex.quote(existing.consumer)}` first",
        )
    if environments.find_environment(connection, hold.environment) is not None:
        raise RequestError(
            found=f"there is an environment '{hold.environment}' already, which is no hold",
            do="rename the consumer, or drop that environment with `backfill envs drop`",
        )


def _published(connection: sa.Connection, hold: Hold) -> list[Pointer]:
    """Read the pointers that a hold keeps, by model."""
    if not environments.environment(connection, hold.of).protected:
        raise RequestError(
            found=f"environment '{hold.of}' is not protected",
            expected="a protected environment, such as prod: only plans change its history",
        )
    current = pointers.pointers(connection, hold.of)
    published = [
        current[model]
        for model in sorted(hold.models)
        if model in current and current[model].delta_version >= 0
    ]
    if not published:
        raise RequestError(
            found=f"environment '{hold.of}' has published nothing of what consumer "
            f"'{hold.consumer}' reads",
            do="fill it with `backfill run` first",
        )
    return published


def _differences(connection: sa.Connection, hold: Hold) -> CellsByModel:
    """Give the cells whose content differs between what is held and what is published."""
    present = pointers.pointers(connection, hold.of)
    frozen = pointers.own_pointers(connection, hold.environment)
    return CellsByModel.of(
        (model, _differing(connection, at, present.get(model))) for model, at in frozen.items()
    )


def _differing(connection: sa.Connection, frozen: Pointer, present: Pointer | None) -> IntervalSet:
    before = _contents(connection, frozen)
    after = {} if present is None else _contents(connection, present)
    cells = before.keys() | after.keys()
    return IntervalSet.of_pairs(
        cell for cell in sorted(cells) if before.get(cell) != after.get(cell)
    )


def _contents(connection: sa.Connection, at: Pointer) -> dict[tuple[int, int], str]:
    return {
        (cell.starts, cell.ends): cell.content for cell in layered_view.cells_at(connection, at)
    }
