"""Draw the pictures of an environment that planning and reading work on."""

from __future__ import annotations

from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.snapshots.state_view import ModelState, Owing, ReadyRun, StateView
from backfill_assets.state import (
    counter,
    environments,
    foreign_cells,
    layered_view,
    layers,
    owed,
    ready,
    snapshots,
    sources,
)
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.batch_rows import OF_BATCH
from backfill_assets.state.cells import cell_of, joined_runs
from backfill_assets.state.claims import live_claims
from backfill_assets.state.cutoffs import cutoffs
from backfill_assets.state.moves import moved_models
from backfill_assets.state.pointers import followed, pointer, pointers, resolved_pointers
from backfill_assets.state.tables import BATCHES, POINTERS, READY_RECORDS

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence
    from datetime import datetime

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import ChangedAt, Content
    from backfill_assets.snapshots.environment import Environment, Pointer
    from backfill_assets.snapshots.ready import InputPin
    from backfill_assets.state.layered_view import Cell
    from backfill_assets.state.layers import PublishedModel

_RECORDS = READY_RECORDS.c


class Views(Aggregate[D]):
    """Pictures of an environment, drawn from all that is known. They are only read.

    Each method is one transaction.
    """

    def of(
        self,
        environment: str,
        *,
        only: Container[str] | None = None,
        instead: Mapping[str, Pointer | None] | None = None,
    ) -> StateView:
        """Draw the picture of an environment that planning works on.

        It shows what is ready at its pins, what is owed, and what live batches hold. A workspace's own cells
        are compared with what the environment that it follows publishes now (`unread`).

        Args:
            environment: whose picture.
            only: the models that it shows; None for all.
            instead: other pointers than its own, by model, None for a model that it would not run: what a
                rollback or an undo would make stale, before it is published.

        Raises:
            UnknownEnvironmentError: there is none of this name.
        """
        heard_after = self._clock() - self._lease
        return self._database.read(_view, environment, heard_after, only, instead or {})

    def built_beside(
        self, environment: str, tables: Mapping[str, Pointer]
    ) -> dict[str, ModelState]:
        """Read tables that an environment does not read, as it may promote them.

        Cells that were built from tables which it does not read, either, count as older than all that they
        read. Their runs tell when they have changed for cells that the environment publishes, too (`unread`).

        Args:
            environment: which one.
            tables: by model, where the table stands.
        """

        def work(connection: sa.Connection) -> dict[str, ModelState]:
            current = pointers(connection, environment)
            beside = {
                model: layered_view.compared_with(
                    connection, layered_view.cells_at(connection, at), current.get(model)
                )
                for model, at in tables.items()
            }
            drawn = environments.environment(connection, environment)
            read = {**current, **tables}
            cells = foreign_cells.outdated_foreign_cells(connection, drawn, read, beside)
            return {
                model: ModelState(at, layered_view.runs_of(cells[model], own=True))
                for model, at in tables.items()
            }

        return self._database.read(work)

    def published(self, environment: str) -> tuple[int, dict[str, PublishedModel]]:
        """Read the counter, and all that reading each model of an environment takes, at one moment.

        Raises:
            UnknownEnvironmentError: there is none of this name.
        """
        return self._database.read(
            lambda connection: (
                counter.last_number(connection),
                layers.published(connection, environment),
            )
        )

    def followed(self, environment: str) -> tuple[str, ...]:
        """Name an environment, the one that it follows, and so on: it reads what any of them publishes."""
        return self._database.read(followed, environment)

    def moved_models(self, environment: str) -> frozenset[str]:
        """Name every model that a plan has ever moved in an environment, or in one that it follows."""
        return self._database.read(
            lambda connection: moved_models(connection, followed(connection, environment))
        )

    def tables(self, pointer: Pointer) -> tuple[InputPin, ...]:
        """Name the tables that a resolved pointer reads, the upper first, with their cells.

        The lowest one answers for every cell that no table above it holds: its cells are None.
        """
        return self._database.read(layers.tables, pointer)

    def content_at_pin(
        self, environment: str, model: str, cells: IntervalSet
    ) -> dict[Interval, Content]:
        """Read what the ready ones of these cells hold, at an environment's pin."""
        return self._database.read(_contents, environment, model, cells)

    def contents_at(self, at: Pointer, cells: IntervalSet) -> dict[Interval, Content]:
        """Read what the ready ones of these cells hold, whatever table of a pointer holds them."""
        return self._database.read(layers.contents, at, cells)

    def stamps_at(self, at: Pointer, cells: IntervalSet) -> list[tuple[tuple[int, int], ChangedAt]]:
        """Read when the ready ones of these cells last changed, whatever table of a pointer holds them.

        Returns:
            Per cell its bounds, in epoch seconds, and its stamps.
        """
        return self._database.read(
            lambda connection: [
                cell_stamps
                for layer, part in layers.parts(connection, at, cells)
                for cell_stamps in ready.stamps(
                    connection, layer.version, layer.delta_version, part
                )
            ]
        )

    def published_contents(
        self, environment: str, model: str, cells: IntervalSet
    ) -> dict[Interval, Content]:
        """Read what people read in these cells now; for a workspace, what it would replace."""

        def work(connection: sa.Connection) -> dict[Interval, Content]:
            drawn = environments.environment(connection, environment)
            where = drawn.follows if drawn.is_workspace and drawn.follows else environment
            return _contents(connection, where, model, cells)

        return self._database.read(work)


def _contents(
    connection: sa.Connection, environment: str, model: str, cells: IntervalSet
) -> dict[Interval, Content]:
    at = pointer(connection, environment, model)
    return {} if at is None else layers.contents(connection, at, cells)


def _view(
    connection: sa.Connection,
    name: str,
    heard_after: datetime,
    only: Container[str] | None,
    instead: Mapping[str, Pointer | None],
) -> StateView:
    drawn, names = environments.environment(connection, name), followed(connection, name)
    resolved = {**resolved_pointers(connection, names), **instead}
    everywhere = {model: at for model, at in sorted(resolved.items()) if at is not None}
    pointed = {model: at for model, at in everywhere.items() if only is None or model in only}
    plain = {
        model: at for model, at in pointed.items() if model not in instead and _is_plain(drawn, at)
    }
    special = {model: at for model, at in pointed.items() if model not in plain}
    layered = _cells(connection, drawn, special)
    cells = foreign_cells.outdated_foreign_cells(connection, drawn, everywhere, layered, instead)
    runs = _plain_runs(connection, drawn, plain)
    for model, each in cells.items():
        own = pointed[model].environment == name
        runs[model] = layered_view.runs_of(each, own=own)
    models = {model: ModelState(at, runs.get(model, ())) for model, at in pointed.items()}
    claims = live_claims(connection, heard_after)
    owing = _owed(connection, names, pointed, cells)
    return StateView(
        environment=drawn,
        models=models,
        claimed=CellsByModel(
            {model: claims[at.version] for model, at in pointed.items() if at.version in claims}
        ),
        owed=CellsByModel.of((model, mark.cells) for model, each in owing.items() for mark in each),
        owing=owing,
        counter=counter.last_number(connection),
        sources=sources.states(connection),
        cutoffs=cutoffs(connection, names),
        earlier=snapshots.computing_otherwise(connection, _made_by(models.values())),
    )


def _made_by(states: Iterable[ModelState]) -> dict[str, str]:
    """Give the definitions that made ready cells and that their pointers name no more, each with the one that is named."""
    return {
        run.fingerprint: state.pointer.fingerprint
        for state in states
        for run in state.runs
        if run.fingerprint not in (None, state.pointer.fingerprint)
    }


def _is_plain(drawn: Environment, at: Pointer) -> bool:
    """Whether one table answers for all, with the stamps that are stored."""
    return not at.under and not (drawn.is_workspace and at.environment == drawn.name)


def _cells(
    connection: sa.Connection, drawn: Environment, special: Mapping[str, Pointer]
) -> dict[str, list[Cell]]:
    cells = {model: layered_view.cells_at(connection, at) for model, at in special.items()}
    if drawn.opened is None or not cells:
        return cells
    published = pointers(connection, drawn.follows) if drawn.follows is not None else {}
    for model, at in special.items():
        if at.environment == drawn.name:
            read_pointer = published.get(model)
            cells[model] = layered_view.compared_with(connection, cells[model], read_pointer)
    return cells


def _owed(
    connection: sa.Connection,
    environments: Sequence[str],
    pointed: Mapping[str, Pointer],
    cells: Mapping[str, list[Cell]],
) -> dict[str, tuple[Owing, ...]]:
    """Read what is owed where the environment reads it: in a table under another, where it shows."""
    tables = {
        layer.version: (model, number)
        for model, at in pointed.items()
        for number, layer in enumerate(at.layers)
    }
    marks = owed.marks(connection, tables, environments)
    owing: dict[str, list[Owing]] = {}
    for (version, plan_id, reason), rows in groupby(sorted(marks, key=_mark), key=_mark):
        model, number = tables[version]
        marked = IntervalSet.of_pairs((row.starts, row.ends) for row in rows)
        if number > 0:
            marked &= layered_view.answered(cells[model], number)
        if marked:
            owing.setdefault(model, []).append(Owing(marked, reason, plan_id or None))
    return {model: tuple(each) for model, each in owing.items()}


def _mark(row: sa.Row[Any]) -> tuple[str, str, str]:
    return row.version, row.plan_id or "", row.reason


def _plain_runs(
    connection: sa.Connection, drawn: Environment, plain: Mapping[str, Pointer]
) -> dict[str, tuple[ReadyRun, ...]]:
    runs: dict[str, list[ReadyRun]] = {model: [] for model in plain}
    named = [(at.environment, at.model) for at in plain.values()]
    for row in connection.execute(_runs(), {"pointers": named}) if named else ():
        own = plain[row.model].environment == drawn.name
        built = (row.built_at, row.changed_at, row.batch_id)
        of_batch = {name: getattr(row, name) for name in OF_BATCH}
        runs[row.model].append(ReadyRun(cell_of(row), *built, own, **of_batch))
    return {model: tuple(each) for model, each in runs.items()}


@cache
def _runs() -> sa.Select[*tuple[Any, ...]]:
    """Join touching cells that share batch and stamps, of the `pointers` that it is executed with.

    To build the statement takes longer than to execute it, and each picture needs it: it is built once.
    """
    columns = (
        POINTERS.c.model, _RECORDS.starts, _RECORDS.ends, _RECORDS.batch_id,
        _RECORDS.built_at, _RECORDS.changed_at,
    )  # fmt: skip
    at = POINTERS.c.delta_version
    here = sa.and_(
        sa.tuple_(POINTERS.c.environment, POINTERS.c.model).in_(sa.bindparam("pointers")),
        _RECORDS.valid_from <= at,
        sa.or_(_RECORDS.valid_to.is_(None), _RECORDS.valid_to > at),
    )
    ready = (
        sa.select(*columns)
        .join_from(POINTERS, READY_RECORDS, POINTERS.c.version == _RECORDS.version)
        .where(here)
    )
    runs = joined_runs(ready, "batch_id", "built_at", "changed_at", by="model").subquery()
    return (
        sa.select(runs, *(column.label(name) for name, column in OF_BATCH.items()))
        .outerjoin(BATCHES, BATCHES.c.batch_id == runs.c.batch_id)
        .order_by(runs.c.model, runs.c.run)
    )
