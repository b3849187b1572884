"""What every batch of one run shares: the environment, its snapshots, and the project."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from backfill_assets.engine.project.cancelling import RunningBatches
from backfill_assets.engine.project.project import InProject
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.spark_tuning import tuned
from backfill_assets.planning.plan.batch_size import batch_size
from backfill_assets.planning.plan.left import left_to_do
from backfill_assets.planning.rule.needs_work import Work, needs_work
from backfill_assets.snapshots.batch import GAP
from backfill_assets.snapshots.loaded import Loaded
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets.state.database import StateBusyError, StateUnavailableError
from backfill_assets.warehouse.files.collection import GRACE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from backfill_assets.engine.project.frozen_code import FrozenCode
    from backfill_assets.engine.project.project import Project
    from backfill_assets.engine.project.relied_sources import Misread
    from backfill_assets.errors import BackfillAssetsError
    from backfill_assets.models.cells_by_model import CellsByModel
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.planning.plan.batch_size import BatchSize
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.plan.request import KeptRows
    from backfill_assets.snapshots.environment import Environment, Pointer
    from backfill_assets.snapshots.state_view import StateView


class PublishedCells(StrEnum):
    """What a run does with cells that are published already and asked for again."""

    KEPT = "kept"
    REBUILT = "rebuilt"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext(InProject):
    """What every batch of one run shares.

    Attributes:
        environment: whose pointers are read and moved.
        graph: the models that the environment runs (its snapshots), and the sources.
        pointers: where the environment read each model when the run began.
        reads: per model, what it reads by column (lineage).
        until: the instant that history ends at for this run, so that all its batches agree.
        root_id: the root run or backfill; the same over re-executions.
        plan_id: the plan served; None for a gap fill.
        changed: models whose loaded declaration is not what the environment runs.
        removed: models that the environment publishes, and that nothing fills, since neither they nor any model
            that reads them is declared any more.
        misread: by model, the sources that its snapshot relies on otherwise than the graph declares,
            and of each of them the models to plan.
        published: what a person who launched this run by hand wants of published cells.
        fills: the reason that batches of cells which are not ready give.
        frozen: the code that the run's plan was made for, and a look at what is there now; None
            where no plan is served.
        tuning: the Spark settings of the plan's batches, over those of their models.
        batch_cells: how many cells a batch has at most in the plan that is served, by model.
        kept_rows: in a plan's workspace, of the models that keep rows whose source is gone: whether these
            are carried over.
        interrupted: set when the run is to end: what waits for a slot, or for its next attempt, gives
            up.
        flights: its batches in flight, so that they can be given up before their commit.
        untold: what tells the state things of which it could not be told yet.
    """

    environment: Environment
    graph: Graph
    pointers: Mapping[str, Pointer]
    reads: Mapping[str, Mapping[str, frozenset[str]]]
    until: datetime
    root_id: str
    plan_id: str | None = None
    changed: tuple[str, ...] = ()
    removed: frozenset[str] = frozenset()
    misread: Misread = field(default_factory=dict[str, "Mapping[str, tuple[str, ...]]"])
    published: PublishedCells = PublishedCells.KEPT
    fills: str = GAP
    frozen: FrozenCode | None = None
    tuning: Mapping[str, str] = field(default_factory=dict[str, str])
    batch_cells: Mapping[str, int] = field(default_factory=dict[str, int])
    kept_rows: Mapping[str, KeptRows] = field(default_factory=dict[str, "KeptRows"])
    interrupted: threading.Event = field(default_factory=threading.Event)
    flights: RunningBatches = field(default_factory=RunningBatches)
    untold: deque[Callable[[], object]] = field(default_factory=deque["Callable[[], object]"])

    @property
    def own(self) -> Project:
        """The project as if what the environment runs were loaded, whatever code is."""
        if self.graph is self.project.loaded.graph:
            return self.project
        loaded = Loaded(self.graph, snapshots_of(self.graph), self.reads)
        return replace(self.project, loaded=loaded)

    @property
    def serves_plan(self) -> bool:
        """Whether a plan is served: it names its cells, so that they are required whatever a cron says."""
        return self.plan_id is not None

    @property
    def rebuilds(self) -> bool:
        """Whether published cells are built again: never where history is protected."""
        return self.published is PublishedCells.REBUILT and not self.environment.protected

    def allowed(self, model: Model) -> float:
        """How many seconds a batch of a model may take until its commit turn.

        Never longer than files stay that no log names: one that takes longer could commit nothing.
        """
        timeout = (
            self.project.batch_policy.timeout
            if model.batch_timeout is None
            else model.batch_timeout
        )
        longest = GRACE.total_seconds()
        return longest if timeout is None else min(timeout, longest)

    def resources(self, model: str) -> dict[str, str]:
        """The Spark settings that a batch of a model has of its own when it is opened now."""
        hours = self.project.batch_policy.off_peak
        off_peak = hours is not None and hours.covers(self.clock())
        return tuned(self.graph.model(model), self.tuning, off_peak=off_peak)

    def batch_size(self, model: Model, view: StateView) -> BatchSize:
        """How many cells of a model go in one batch: as the plan says, else by what is recorded.

        Args:
            model: the model.
            view: what is recorded.
        """
        size = batch_size(self.graph, view, model)
        return replace(size, cells=self.batch_cells.get(model.name, size.cells))

    def tell(self, telling: Callable[[], object]) -> BackfillAssetsError | None:
        """Tell the state that something has ended; the run's heartbeat tells it where the state is away.

        Else what has ended would be held for as long as the run lives: its heartbeat renews all that is its own.

        Returns:
            Why the state could not be told yet; None where it was.
        """
        try:
            telling()
        except (StateBusyError, StateUnavailableError) as error:
            self.untold.append(telling)
            return error
        return None

    def tell_untold(self) -> None:
        """Tell the state what it could not be told of; until then it holds claims, slots and locks.

        Raises:
            StateUnavailableError: the database is still away; nothing is forgotten.
        """
        while self.untold:
            self.untold[0]()
            self.untold.popleft()

    def pointer(self, model: Model) -> Pointer:
        """Where the environment keeps a model."""
        return self.pointers[model.name]

    def table(self, model: Model) -> str:
        """The path of the model's physical table."""
        return self.store.versions.version_path(self.pointer(model).version)

    def view(self) -> StateView:
        """What is ready now, at the environment's pins."""
        return self.store.views.of(self.environment.name)

    def work(self, name: str, view: StateView, now: datetime | None = None) -> Work:
        """Apply the one rule to a model of the environment.

        Args:
            name: the model.
            view: what is ready.
            now: the instant that history ends at (UTC); None: where it ends for this run.
        """
        model, reads = self.graph.model(name), self.reads.get(name)
        if name in self.removed:
            return Work(view.ready(name), view.ready(name), IntervalSet.empty())
        return needs_work(
            self.graph,
            view,
            model,
            now=now or self.until,
            reads=reads,
            ignore_cron=self.serves_plan,
        )

    def left_of(self, plan: Plan) -> CellsByModel:
        """Give the cells of a plan, whose workspace this is, that still need work, by model."""
        return left_to_do(plan, self.graph, self.view(), plan.until, self.reads)


def table_path(data_root: str, model: str, version: str) -> str:
    """Where a version's table lies: ``<data>/tables/<subject>/<version>``."""
    return f"{data_root}/tables/{model.partition('.')[0]}/{version}"
