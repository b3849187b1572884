"""Another system has written what a model lacks: its rows are adopted, and later changes reach them as any other cell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from deltalake import write_deltalake

from backfill_assets.engine.batch.effects import Effects
from backfill_assets.engine.batch.requests import ADOPTED
from backfill_assets.engine.fill.fill import fill_cells
from backfill_assets.engine.project.events import Committed
from backfill_assets.intervals import IntervalSet
from backfill_assets.intervals.required import required
from backfill_assets.warehouse.files.tables import table_now
from backfill_assets.warehouse.rows.adoption import adopted_from
from backfill_assets_tests.engine.world import arrow
from backfill_assets_tests.histories.checks import differ_only
from backfill_assets_tests.histories.models import declared_as
from backfill_assets_tests.histories.oracle import Oracle
from backfill_assets_tests.histories.published import WrongError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals import Interval
    from backfill_assets.models.model import Model
    from backfill_assets_tests.histories.history import History
    from backfill_assets_tests.histories.oracle import Row
    from backfill_assets_tests.histories.published import Contents


def adopt_a_table(history: History) -> None:
    """Adopt rows of missing cells of a model, as they follow from what is published."""
    history.look()
    before = history.contents()
    run = history.world.open(history.graph)
    lacking = {name: [*_lacking(run, name)] for name in run.graph.order}
    name = history.chosen([name for name, cells in lacking.items() if cells])
    if name is None:
        return
    cells = lacking[name][: history.random.randint(1, len(lacking[name]))]
    rows = dict(_rows(history, before, run.graph.model(name), cells))
    if not rows:
        return
    path, there = _written(history, run.graph.model(name), rows), IntervalSet.of(rows)
    history.say(f"adopt {history.text(name, there)} of {name}")
    project = replace(run.project, effects=Effects(rows=adopted_from(table_now(path))))
    adopting = replace(run, project=project, fills=ADOPTED)
    events = fill_cells(adopting, {name: there}, history.world.heard.append)[name]
    after = history.contents()
    committed = history.in_flight(name) | {cell.start for cell in rows}
    differ_only(before.cells, after.cells, {name: committed}, "an adoption")
    done = IntervalSet.union_all(event.cells for event in events if isinstance(event, Committed))
    for cell in (cell for cell in rows if cell in done):
        found = after.of(name).get(cell.start)
        if found != rows[cell]:
            raise WrongError(f"{name} {cell.start} was adopted as {rows[cell]}, and holds {found}")


def _lacking(run: RunContext, name: str) -> Iterator[Interval]:
    """Give the cells of a model that are due and not ready."""
    cadence = run.graph.model(name).cadence
    yield from cadence.cells(required(cadence, now=run.clock()) - run.view().ready(name))


def _rows(
    history: History, found: Contents, model: Model, cells: Collection[Interval]
) -> Iterator[tuple[Interval, tuple[Row, ...]]]:
    """Work out cells one after the other, each from those before it; leave out those without a row."""
    published = {name: dict(held) for name, held in found.cells.items()}
    own, oracle = published.setdefault(model.name, {}), Oracle(history.landed, published)
    for cell in cells:
        if rows := oracle.rows(model.name, declared_as(model), cell):
            own[cell.start] = rows
            yield cell, rows


def _written(history: History, model: Model, rows: Mapping[Interval, Collection[Row]]) -> str:
    """Write rows as another system does: a table without cells."""
    types = {column.name: column.dtype for column in model.schema}
    path = f"{history.world.root}/legacy/{len(history.said)}"
    listed = [tuple(map(row.get, types)) for each in rows.values() for row in each]
    write_deltalake(path, arrow(types, listed))
    return path
