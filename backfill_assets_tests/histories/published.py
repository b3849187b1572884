"""What an environment publishes, and which of it the product itself calls unfinished."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING

from backfill_assets.engine.fill.observing import observe
from backfill_assets.engine.project.opening import open_run
from backfill_assets.intervals import WHOLE_CELL, Interval, Unit
from backfill_assets.planning.change.life import outside_life
from backfill_assets.snapshots.snapshot import stored_model
from backfill_assets.warehouse.files.layers import table_read
from backfill_assets.warehouse.rows.reading import read_pinned
from backfill_assets_tests.histories.hours import BERLIN, midnight_in_berlin
from backfill_assets_tests.histories.models import declared_as
from backfill_assets_tests.histories.oracle import Cells, Row, in_order, midnight

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals import IntervalSet
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.planning.rule.needs_work import Work
    from backfill_assets.snapshots.state_view import StateView
    from backfill_assets.state.layers import PublishedModel
    from backfill_assets_tests.engine.world import World
    from backfill_assets_tests.histories.declared import Declared


class WrongError(Exception):
    """The product has published, or said, something that is not so."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What an environment publishes.

    Attributes:
        environment: its name.
        cells: the rows of the ready cells, by model.
        models: the models as they are published.
    """

    environment: str
    cells: dict[str, Cells] = field(default_factory=dict[str, Cells])
    models: dict[str, Model] = field(default_factory=dict[str, "Model"])

    def of(self, model: str) -> Cells:
        """Give the cells of a model; none if it isn't published."""
        return self.cells.get(model, {})

    def declared(self, model: str) -> Declared:
        """Tell what a published model computes."""
        return declared_as(self.models[model])


def contents(world: World, environment: str) -> Contents:
    """Read all that an environment publishes."""
    _, published = world.store.views.published(environment)
    view = world.store.views.of(environment)
    found = Contents(environment)
    for name, one in published.items():
        found.models[name] = model = stored_model(one.definition)
        cells: Cells = dict.fromkeys(starts(model, view.ready(name)), ())
        for row in _rows(world, model, one):
            at = _cell_of(model, row)
            if at not in cells:
                raise WrongError(
                    f"{environment}: {name} has rows in {at}, which is not ready: {row}"
                )
            cells[at] = (*cells[at], row)
        found.cells[name] = {at: in_order(rows) for at, rows in cells.items()}
    return found


def starts(model: Model, cells: IntervalSet) -> set[datetime]:
    """Give the instants at which cells begin."""
    return {one.start for one in model.cadence.cells(cells)}


def cell_from(model: Model, start: datetime) -> Interval:
    """Give the cell that begins at an instant."""
    if model.cadence.unit is Unit.WHOLE:
        return WHOLE_CELL
    return Interval(start, model.cadence.next(start))


def _rows(world: World, model: Model, published: PublishedModel) -> Iterator[Row]:
    table = table_read(published.tables, world.store.located, published.pointer.certain)
    if table.exists:
        for one in read_pinned(world.spark, model, table).collect():
            yield {name: value for name, value in one.asDict().items() if value is not None}


def _cell_of(model: Model, row: Row) -> datetime:
    if model.cadence.unit is Unit.WHOLE:
        return WHOLE_CELL.start
    key = row[model.schema[0].name]
    assert isinstance(key, date)
    if isinstance(key, datetime):
        return key
    return midnight_in_berlin(key) if model.cadence.tz == BERLIN else midnight(key)


@dataclass(frozen=True, slots=True)
class Looked:
    """What the product says of an environment after a look at its sources.

    Attributes:
        run: what it looked with.
        view: the state that it saw.
        works: what each declared model needs.
    """

    run: RunContext
    view: StateView
    works: Mapping[str, Work]

    def unfinished(self, model: str) -> set[datetime]:
        """Give the cells that are said to be missing, stale, owed, or kept as they were, as those outside the life are."""
        work = self.works[model]
        outside = outside_life(self.run.graph.model(model), self.view.ready(model))
        cells = work.gaps | work.stale_cells | work.owed | work.kept | outside
        return starts(self.run.graph.model(model), cells)

    def refreshed(self, model: str) -> set[datetime]:
        """Give the published cells that a run builds again without a plan; where each reads the one before, to the end."""
        declared, cells = self.run.graph.model(model), self.works[model].refresh
        if cells and declared.in_order:
            ready = self.view.ready(model)
            cells = ready.within(cells.boundaries[0], ready.boundaries[-1])
        return starts(declared, cells)

    def read_elsewhere(self, model: str) -> set[datetime]:
        """Give the cells that the environment reads through another one, which computed them of what it reads."""
        cells = self.view.ready(model) - self.view.own(model)
        return starts(self.run.graph.model(model), cells)


def look(world: World, graph: Graph, environment: str) -> Looked:
    """Look at the sources, and ask what needs work."""
    first = open_run(world.project(graph), environment)
    observe(first, first.graph.order)
    run = open_run(world.project(graph), environment)
    view = run.view()
    return Looked(run, view, {name: run.work(name, view, run.clock()) for name in run.graph.order})
