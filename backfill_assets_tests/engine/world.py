"""A small world for tests of execution: tables that others land, a state, a clock, and runs.

Sources are landed and tables are read back by another Delta library than the product's, so that
what a test sees does not depend on the code that it tests.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from backfill_assets.engine.batch.effects import Effects
from backfill_assets.engine.fill.fill import fill_cells
from backfill_assets.engine.project.batch_policy import BatchPolicy
from backfill_assets.engine.project.events import (
    Committed,
    Event,
    Failed,
    LeftStale,
    Skipped,
    Waiting,
)
from backfill_assets.engine.project.iceberg import enter_missing
from backfill_assets.engine.project.opening import open_run
from backfill_assets.engine.project.project import InProject
from backfill_assets.engine.project.run_context import PublishedCells
from backfill_assets.intervals import Interval, IntervalSet
from backfill_assets.intervals.required import required
from backfill_assets.intervals.text import ranges_text
from backfill_assets.snapshots.environment import PROD
from backfill_assets.state.store import Store
from backfill_assets_tests.builders import a_graph, a_source
from backfill_assets_tests.engine.beginnings import Beginnings
from backfill_assets_tests.making import project_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import SparkSession

    from backfill_assets.engine.project.project import Project
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.source import Source

NOW = datetime(2024, 1, 11, tzinfo=UTC)
LEASE = timedelta(seconds=600)
_ARROW = {
    "date": pa.date32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", "UTC"),
    "decimal(18,2)": pa.decimal128(18, 2),
    "double": pa.float64(),
}


@dataclass
class Clock:
    """A clock that stands still until a test moves it."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now

    def pass_lease(self) -> None:
        """Let every claim and lock of a silent process lapse."""
        self.now += LEASE + timedelta(seconds=1)


@dataclass
class World:
    """One data folder with its state."""

    spark: SparkSession
    root: Any  # a folder, or the URI of one
    store: Store
    clock: Clock
    runs: int = 0
    environment: str = PROD
    heard: list[Event] = field(default_factory=list)
    batch_policy: BatchPolicy = field(default_factory=lambda: BatchPolicy(pause=0))
    effects: Effects = field(default_factory=Effects)
    beginnings: Beginnings | None = None
    batches_at_once: int = 2

    def begin(self, graph: Graph, *rows: tuple[Any, ...]) -> None:
        """Land these events and fill every model; or copy the world of a test that began like this."""

        def landed_and_filled() -> None:
            self.land(a_source(), *rows)
            self.fill(graph)

        self.begin_with(landed_and_filled, graph, rows)

    def begin_with(self, make: Callable[[], None], *asked: object) -> None:
        """Make this fresh world, or copy one that was made of the same; `asked` is all it depends on."""
        assert not self.runs, "a copy would overwrite what is there"
        key = (make.__qualname__, asked, self.clock.now, self.environment)
        kept = self.beginnings and self.beginnings.find(key)
        if kept:
            kept.copy_to(self.root)
            enter_missing(InProject(project=self.project(a_graph())))  # the copy lies elsewhere
            self.runs = kept.runs
            return
        make()
        if self.beginnings:
            self.beginnings.keep(key, self.root, self.runs)

    def land(self, source: Source, *rows: tuple[Any, ...]) -> None:
        """Let a source hold these rows, as somebody else would."""
        columns = {column.name: column.dtype for column in source.schema}
        path = f"{self.root}/{source.path}"
        write_deltalake(path, arrow(columns, rows), mode="overwrite", schema_mode="overwrite")

    def open(
        self,
        graph: Graph,
        *,
        published: PublishedCells = PublishedCells.KEPT,
        root_id: str | None = None,
    ) -> RunContext:
        """Open a run, as each entrance does."""
        project = self.project(graph)
        return open_run(project, self.environment, root_id=root_id, published=published)

    def project(self, graph: Graph, **given: Any) -> Project:  # noqa: ANN401
        """Make a project, as each entrance does."""
        self.runs += 1
        usual: dict[str, Any] = {
            "spark": lambda: self.spark,
            "run_id": f"run-{self.runs}",
            "batches_at_once": self.batches_at_once,
            "batch_policy": self.batch_policy,
            "effects": self.effects,
        }
        return project_of(
            self.store, graph, clock=self.clock, data_root=self.root, **{**usual, **given}
        )

    @contextmanager
    def doing(self, **steps: Any) -> Iterator[None]:  # noqa: ANN401
        """Let batches take other steps for a while."""
        usual, self.effects = self.effects, replace(self.effects, **steps)
        try:
            yield
        finally:
            self.effects = usual

    def fill(
        self,
        graph: Graph,
        *names: str,
        cells: IntervalSet | None = None,
        **how: Any,  # noqa: ANN401
    ) -> dict[str, tuple[Event, ...]]:
        """Run some models (all, unless named) over cells (all that are required)."""
        return self.go(self.open(graph, **how), *names, cells=cells)

    def go(
        self, run: RunContext, *names: str, cells: IntervalSet | None = None
    ) -> dict[str, tuple[Event, ...]]:
        targets = {
            name: run_targets(run, name) if cells is None else cells
            for name in names or run.graph.order
        }
        return fill_cells(run, targets, self.heard.append)

    def ready(self, graph: Graph, name: str) -> str:
        """Which cells are ready, as text."""
        view = self.store.views.of(self.environment)
        return ranges_text(graph.model(name).cadence, view.ready(name))

    def path(self, name: str) -> str:
        """Where the table of a model lies."""
        return self.store.versions.version_path(self.pointer(name).version)

    def pointer(self, name: str) -> Any:  # noqa: ANN401
        return self.store.environments.pointers(self.environment)[name]

    def head(self, name: str) -> int:
        """Delta's newest version of a model's table; -1 for none."""
        path = self.path(name)
        return DeltaTable(path).version() if DeltaTable.is_deltatable(path) else -1

    def rows(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        """What readers of the environment see: the rows at the pin."""
        pin = self.pointer(name).delta_version
        if pin < 0:
            return []
        return read(self.path(name), columns or ("ds", "id", "cost"), pin)

    def scribble(self, name: str, *rows: tuple[Any, ...]) -> None:
        """Append rows to a model's own table by hand, with its cell."""
        columns = {"ds": "date", "id": "bigint", "cost": "decimal(18,2)", "_cell": "date"}
        full = [(*row, row[0]) for row in rows]
        write_deltalake(self.path(name), arrow(columns, full), mode="append")


def run_targets(run: RunContext, name: str) -> IntervalSet:
    ready = run.view().ready(name)
    return required(run.graph.model(name).cadence, now=run.clock(), ready=ready)


def arrow(columns: dict[str, str], rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    listed = [
        {
            name: value if columns[name] == "double" else _value(value)
            for name, value in zip(columns, row, strict=True)
        }
        for row in rows
    ]
    schema = pa.schema([(name, _ARROW[dtype]) for name, dtype in columns.items()])
    return pa.Table.from_pylist(listed, schema)


def _value(value: Any) -> Any:  # noqa: ANN401
    return Decimal(str(value)).quantize(Decimal("0.01")) if isinstance(value, float) else value


def read(path: str, columns: Iterable[str], version: int | None = None) -> list[tuple[Any, ...]]:
    """Read a table with another library than the product's, in order."""
    table = DeltaTable(path, version=version).to_pyarrow_table(columns=list(columns))
    rows = [tuple(row[name] for name in columns) for row in table.to_pylist()]
    return sorted(rows, key=_order)


def _order(row: tuple[Any, ...]) -> tuple[tuple[bool, str], ...]:
    return tuple((value is None, str(value)) for value in row)


def on(number: int) -> date:
    """A date of January 2024."""
    return date(2024, 1, number)


def row(number: int, id_: int = 1, cost: float = 1.0) -> tuple[date, int, float]:
    """One event."""
    return (on(number), id_, cost)


def kept(*rows: tuple[date, int, float]) -> list[tuple[date, int, Decimal]]:
    """The same as a table holds them."""
    return sorted(((ds, id_, _value(cost)) for ds, id_, cost in rows), key=_order)


def ended(events: Iterable[Event], kind: type[Event]) -> list[Any]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def told(events: Iterable[Event]) -> list[str]:
    """What happened, one word per event, in no order of threads."""
    words = {Committed: "committed", Failed: "failed", Skipped: "skipped"}
    words |= {Waiting: "waiting", LeftStale: "left stale"}
    return sorted(words[type(event)] for event in events if type(event) in words)


def text(graph: Graph, name: str, cells: IntervalSet | Interval | Iterable[Interval]) -> str:
    """Cells as ranges."""
    found = [cells] if isinstance(cells, Interval) else cells
    return ranges_text(graph.model(name).cadence, IntervalSet.of(found))
