"""A toy world: models whose cells hold small numbers made of the cells that they read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from backfill_assets.intervals import Daily, Hourly, IntervalSet, Unit, Weekly, Whole
from backfill_assets.models.cells import cells_read
from backfill_assets.models.content import Content, changed_at
from backfill_assets.models.graph import Graph
from backfill_assets.models.model import Model
from backfill_assets.models.upstream import OwnCells, Reopens, Upstream
from backfill_assets.planning.plan.batching import batches
from backfill_assets.planning.rule.needs_work import Work, needs_work
from backfill_assets.snapshots.state_view import ReadyRun
from backfill_assets_tests.builders import EVENTS, FIRST, a_graph, a_model, a_view

if TYPE_CHECKING:
    from backfill_assets.intervals import Interval
    from backfill_assets.snapshots.state_view import StateView

NOW = FIRST + timedelta(days=9, hours=5)
CADENCES = [
    Daily(start="2024-01-02"),
    Daily(start="2024-01-01", tz="Europe/Berlin"),
    Hourly(start="2024-01-09"),
    Weekly(start="2024-01-01"),
    Whole(),
]


@dataclass
class World:
    """Models, and what each cell of them holds; built and changed as the real state would."""

    graph: Graph
    reads: dict[str, dict[str, frozenset[str]]]
    twist: dict[tuple[str, datetime], int] = field(default_factory=dict)
    held: dict[str, dict[Interval, tuple[ReadyRun, Content]]] = field(default_factory=dict)
    counter: int = 0

    def view(self) -> StateView:
        """The state, one run per cell."""
        return a_view(
            {name: [run for run, _ in cells.values()] for name, cells in self.held.items()}
        )

    def work(self, name: str) -> Work:
        """Ask the rule."""
        model = self.graph.models[name]
        return needs_work(self.graph, self.view(), model, now=NOW, reads=self.reads[name])

    def todo(self, name: str) -> IntervalSet:
        """All that can be built now."""
        work = self.work(name)
        return work.runnable | work.stale_cells

    def fill(self, size: int | None) -> dict[str, IntervalSet]:
        """Build until the rule finds nothing more; give what was built, by model."""
        built = dict.fromkeys(self.graph.order, IntervalSet.empty())
        for name in self.graph.order:
            model = self.graph.models[name]
            while todo := self.todo(name):
                built[name] |= todo
                for batch in batches(model.cadence, todo, 1 if model.in_order else size):
                    self.build(model, batch)
        return built

    def build(self, model: Model, batch: Interval) -> None:
        """Resolve, compute and record one batch."""
        self.counter += 1
        built_at = self.counter
        computed = {cell: self.compute(model, cell) for cell in model.cadence.cells(batch)}
        self.counter += 1
        cells = self.held.setdefault(model.name, {})
        for cell, content in computed.items():
            old = cells.get(cell)
            before = None if old is None else (old[1], old[0].changed_at)
            stamps = changed_at(before, content, self.counter)
            cells[cell] = (ReadyRun(cell, built_at, stamps, f"b{built_at}"), content)

    def compute(self, model: Model, cell: Interval) -> Content:
        """Make a cell's content of exactly the columns and rows that it reads."""
        seen: list[object] = [self.twist.get((model.name, cell.start), 0)]
        for upstream in model.reads:
            if upstream.name not in self.graph.models:
                continue
            theirs = self.graph.models[upstream.name].cadence
            read = cells_read(model.cadence, upstream, theirs, IntervalSet.of([cell]), until=NOW)
            if upstream.name == model.name:
                read -= IntervalSet.of([cell])
            columns = self.reads[model.name].get(upstream.name)
            for read_cell in theirs.cells(read):
                held = self.held.get(upstream.name, {}).get(read_cell)
                if held is not None:
                    content = held[1]
                    values = {
                        name: value
                        for name, value in content.columns.items()
                        if columns is None or name in columns
                    }
                    seen.append((content.rows, content.key, sorted(values.items())))
        digest = _digest(repr(seen))
        return Content(digest % 2, digest % 2, {"ds": 0, "id": digest // 2 % 2, "cost": digest % 3})

    def contents(self) -> dict[str, dict[Interval, Content]]:
        """What every cell holds, without when."""
        return {
            name: {cell: content for cell, (_, content) in cells.items()}
            for name, cells in self.held.items()
        }

    def empty(self) -> World:
        """The same world before anything was built."""
        return replace(self, held={}, counter=0)


def _digest(text: str) -> int:
    """A small stable number; small so that other inputs often give the same content."""
    return sum(position * ord(letter) for position, letter in enumerate(text, 1)) % 12


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """One to four models over days, hours, weeks and wholes, with lookbacks and partial reads."""
    models: list[Model] = []
    reads: dict[str, dict[str, frozenset[str]]] = {}
    for number in range(draw(st.integers(1, 4))):
        cadence = draw(st.sampled_from(CADENCES))
        name = f"web.m{number}"
        names = (
            draw(st.lists(st.sampled_from(models), unique_by=lambda model: model.name))
            if models
            else []
        )
        upstreams = [Upstream(EVENTS)] + [
            Upstream(model.name, draw(_lookbacks), reopens=Reopens.ALL) for model in names
        ]
        if cadence.unit is not Unit.WHOLE and draw(st.booleans()):
            upstreams.append(Upstream(name, lookback=draw(st.integers(1, 2))))
        models.append(a_model(name, cadence=cadence, upstreams=upstreams))
        reads[name] = {
            upstream.name: columns
            for upstream in upstreams
            if (columns := draw(_columns)) is not None
        }
    return World(a_graph(*models), reads)


_lookbacks = st.integers(0, 2) | st.just(OwnCells(1))
_columns = st.none() | st.sets(st.sampled_from(["ds", "id", "cost"])).map(frozenset)
