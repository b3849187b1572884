"""Read a pointer cell by cell: from its own table, or from one that lies under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.snapshots.ready import InputPin
from backfill_assets.state import environments, pointers, ready, snapshots, versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.content import Content
    from backfill_assets.snapshots.environment import Layer, Pointer
    from backfill_assets.snapshots.ready import ReadyRecord


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """All that a reader of a model needs.

    Attributes:
        pointer: where the environment reads it.
        definition: the model of its snapshot, as text.
        tables: those that the pointer reads, the upper first.
    """

    pointer: Pointer
    definition: str
    tables: tuple[InputPin, ...]


def parts(
    connection: sa.Connection, pointer: Pointer, within: IntervalSet
) -> Iterator[tuple[Layer, IntervalSet]]:
    """Yield each table with the cells that it answers for; cells of no table are not ready."""
    remaining = within
    for number, layer in enumerate(pointer.layers):
        if number == 1:
            remaining -= pointer.certain
        cells = ready.ready_cells(connection, layer.version, layer.delta_version, remaining)
        yield layer, cells
        remaining -= cells


def tables(connection: sa.Connection, pointer: Pointer) -> tuple[InputPin, ...]:
    """Name the tables that a pointer reads, each with all the cells that it answers for.

    The lowest answers for every cell that is left. `Pointer.certain` is not considered.
    """
    *upper, lowest = pointer.layers
    answering = [
        (layer, ready.ready_cells(connection, layer.version, layer.delta_version))
        for layer in upper
    ]
    return tuple(
        InputPin(
            pointer.model,
            layer.version,
            versions.place(connection, layer.version),
            layer.delta_version,
            cells,
        )
        for layer, cells in (*answering, (lowest, None))
    )


def published(connection: sa.Connection, environment: str) -> dict[str, PublishedModel]:
    """Read all that a reader of an environment needs, by model.

    Raises:
        UnknownEnvironmentError: there is none of this name.
    """
    environments.environment(connection, environment)
    return {
        name: PublishedModel(
            at, snapshots.snapshot(connection, at.fingerprint).definition, tables(connection, at)
        )
        for name, at in pointers.pointers(connection, environment).items()
    }


def records(
    connection: sa.Connection, pointer: Pointer, within: IntervalSet
) -> dict[Interval, ReadyRecord]:
    """Read the ready records of those of these cells that are ready, whatever table holds them."""
    by_cell: dict[Interval, ReadyRecord] = {}
    for layer, cells in parts(connection, pointer, within):
        by_cell |= ready.records_within(connection, layer.version, layer.delta_version, cells)
    return by_cell


def contents(
    connection: sa.Connection, pointer: Pointer, within: IntervalSet
) -> dict[Interval, Content]:
    """Read the contents of those of these cells that are ready, whatever table holds them."""
    by_cell: dict[Interval, Content] = {}
    for layer, cells in parts(connection, pointer, within):
        by_cell |= ready.contents(connection, layer.version, layer.delta_version, cells)
    return dict(sorted(by_cell.items()))
