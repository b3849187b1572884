"""A small world for the queue: a state and a clock, models over it, and no Spark at all.

Batches are recorded as if they had been built, so a test says in one line what is there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from backfill_assets.engine.automatic.scan import ReadyWork, ready_work
from backfill_assets.engine.automatic.scan_memory import ScanMemory
from backfill_assets.engine.batch.requests import batch_request
from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.plans.plan_verbs import queue_plan
from backfill_assets.engine.project.opening import look, open_run
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.plan.request import PlanRequest, Restatement
from backfill_assets.planning.queue.releasing import ReleaseKind
from backfill_assets.snapshots.environment import PROD, workspace_name
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.state.store import Store
from backfill_assets_tests.builders import FIRST, a_graph, day
from backfill_assets_tests.making import plan_made, project_of
from backfill_assets_tests.new_state import begin_sqlite
from backfill_assets_tests.state.building import content, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from backfill_assets.engine.project.gate import Gate
    from backfill_assets.engine.project.project import Project
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals import Interval
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.batch import OpenBatch

LEASE = 60.0


@dataclass
class QueueWorld:
    """One state, the models over it, and the instant that it is."""

    root: Path
    graph: Graph
    now: datetime = FIRST + timedelta(days=10, hours=1)
    memory: ScanMemory = field(default_factory=ScanMemory)
    runs: int = 0
    gate: Callable[[], Gate | None] = lambda: None

    def __post_init__(self) -> None:
        self.store = Store.open(
            begin_sqlite(self.root / "state.db"),
            clock=lambda: self.now,
            lease_seconds=LEASE,
            data_root=str(self.root),
        )

    @classmethod
    def of(cls, root: Path, *models: Model, **how: Any) -> QueueWorld:  # noqa: ANN401
        """A world of models over the source of events."""
        return cls(root, a_graph(*models), **how)

    def pass_by(self, **span: float) -> None:
        """Let time pass."""
        self.now += timedelta(**span)

    def look(self, *, most: int = 10_000) -> ReadyWork:
        """Look for work, and remember what is memory."""
        found = ready_work(self.project(), self.memory, most)
        self.memory = found.memory
        return found

    def offered(self) -> dict[tuple[str, str], IntervalSet]:
        """What could be released, by kind and model."""
        return {(offer.kind.value, offer.name): offer.cells for offer in self.look().offers}

    def late_mark(self) -> str:
        """The name of late work, which a run that ended well under it does not get again."""
        [mark] = [offer.mark for offer in self.look().offers if offer.kind is ReleaseKind.LATE]
        return mark

    def project(self, **given: Any) -> Project:  # noqa: ANN401
        """The project as somebody has it who has no Spark."""
        usual: dict[str, Any] = {"spark": None, "who": "ann", "gate": self.gate}
        return project_of(
            self.store,
            self.graph,
            clock=lambda: self.now,
            data_root=self.root,
            **{**usual, **given},
        )

    def run(self, environment: str = PROD) -> RunContext:
        """A run of an environment that will never start Spark."""
        self.runs += 1
        opened = open_run if environment == PROD else look
        return opened(self.project(run_id=f"run-{self.runs}"), environment)

    def open(self, name: str, cells: Interval, *, plan: Plan | None = None) -> OpenBatch:
        """Claim cells, as a batch that computes does."""
        environment = PROD if plan is None else workspace_name(plan.plan_id)
        run = replace(self.run(environment), plan_id=plan.plan_id if plan else None)
        reason = "gap" if plan is None else "refresh"
        return self.store.batches.open_batch(
            batch_request(run, run.graph.model(name), IntervalSet.of([cells]), reason=reason)
        )

    def fill(self, name: str, cells: Interval, *, rows: int = 10, plan: Plan | None = None) -> None:
        """Build cells."""
        opened = self.open(name, cells, plan=plan)
        write(self.store, opened, dict.fromkeys(opened.request.cells, content(rows)))

    def fail(
        self,
        name: str,
        cells: Interval,
        kind: FailureKind = FailureKind.AUDIT,
        *,
        plan: Plan | None = None,
    ) -> None:
        """Let a batch fail."""
        opened = self.open(name, cells, plan=plan)
        self.store.batches.fail_batch(
            opened.request.batch_id, error="no", audits=(), failure=kind, finished_at=self.now
        )

    def planned(self, name: str, *restated: int, reason: str = "wrong", **asked: Any) -> Plan:  # noqa: ANN401
        """Plan to build published days of a model again, and what reads it."""
        cells = [day(number) for number in restated]
        wrong = tuple(
            Restatement(name, cell.start.isoformat(), cell.end.isoformat()) for cell in cells
        )
        request = PlanRequest(
            environment=PROD, asked_by="ann", reason=reason, restate=wrong, **asked
        )
        return plan_made(
            self.store, self.graph, request, clock=lambda: self.now, data_root=str(self.root)
        )

    def operation(self, plan: Plan) -> Operation:
        """Somebody who works on a plan."""
        return Operation(project=self.project(run_id="operator"), plan=plan)

    def queued(
        self,
        name: str,
        *restated: int,
        off_peak: str | None = None,
        **asked: Any,  # noqa: ANN401
    ) -> Plan:
        """Plan, and give it to the queue."""
        plan = self.planned(name, *restated, **asked)
        queue_plan(self.operation(plan), off_peak)
        return plan
