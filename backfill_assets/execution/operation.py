"""An operation on a plan: who does it, and with what."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from backfill_assets.execution.at_work import AtWork
from backfill_assets.execution.frozen_code import FrozenCode
from backfill_assets.execution.opening import look
from backfill_assets.execution.patience import PATIENT, Patience
from backfill_assets.planning.overhead import by_rows, planned_cells
from backfill_assets.planning.request import KeptRows
from backfill_assets.snapshots.environment import workspace_name
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets.snapshots.timing import Timing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from backfill_assets.execution.effects import Effects
    from backfill_assets.execution.events import Listener
    from backfill_assets.execution.run_context import RunContext
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan import Plan
    from backfill_assets.snapshots.snapshot import Snapshot
    from backfill_assets.state.store import Store


class Means(TypedDict):
    """What every operation on a plan is given.

    Attributes:
        spark: gives the Spark session, started on first use.
        data_root: folder or URI under which tables lie.
        clock: gives the instant (UTC).
        run_id: of this run or process.
        who: the person or run that asks for it.
        listener: called with each thing that happens to cells, from one thread only.
        batches_at_once: how many batches may be in flight, over all runs and processes.
        code: gives the fingerprints of the declarations as they are on disk at this moment.
        patience: how often a batch is tried, and how long it may take.
        why: the reason, in words.
        at_work: what the steps tell themselves to.
        effects: what its batches do; None: what batches do.
    """

    spark: Callable[[], Any]
    data_root: str
    clock: Callable[[], datetime]
    run_id: str
    who: str
    listener: NotRequired[Listener]
    batches_at_once: NotRequired[int]
    code: NotRequired[Callable[[], Mapping[str, str]] | None]
    patience: NotRequired[Patience]
    why: NotRequired[str]
    at_work: NotRequired[AtWork]
    effects: NotRequired[Effects | None]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """Somebody who works on a plan, and what with; see `Means`."""

    store: Store
    loaded: Graph
    plan: Plan
    spark: Callable[[], Any]
    data_root: str
    clock: Callable[[], datetime]
    run_id: str
    who: str
    listener: Listener = lambda _: None
    batches_at_once: int = 1
    code: Callable[[], Mapping[str, str]] | None = None
    patience: Patience = PATIENT
    why: str = ""
    at_work: AtWork = field(default_factory=AtWork)
    effects: Effects | None = None

    @property
    def plan_id(self) -> str:
        """The plan."""
        return self.plan.plan_id

    @cached_property
    def snapshots(self) -> Mapping[str, Snapshot]:
        """The loaded models, fingerprinted once."""
        return snapshots_of(self.loaded)

    def environment(self) -> RunContext:
        """Look at the environment whose history the plan changes."""
        return self.run_in(self.plan.environment)

    def workspace(self) -> RunContext:
        """Open a run in the plan's workspace."""
        run = self.run_in(workspace_name(self.plan_id))
        frozen = FrozenCode.of(self.plan, self.code) if self.code else None
        kept = {
            one.model: one.kept_rows or KeptRows.CARRY
            for one in self.plan.models
            if one.model in run.graph.models and run.graph.model(one.model).keeps_rows
        }
        return replace(run, frozen=frozen, kept_rows=kept)

    def tell(self, event: str, **detail: object) -> None:
        """Add to the plan's history."""
        self.store.plans.tell(self.plan_id, event, who=self.who, why=self.why, detail=detail)

    def timed(self, verb: str, since: Mapping[str, float]) -> None:
        """Keep how long the steps of an operation took, for estimates of plans to come.

        Args:
            verb: ``apply`` or ``promote``.
            since: what the steps had taken before it.
        """
        steps, cells = self.at_work.seconds(since), planned_cells(self.plan)
        self.store.plans.keep_timing(Timing(verb, steps, self.plan_id, cells, by_rows(self.plan)))

    def run_in(self, environment: str) -> RunContext:
        """Look at any environment."""
        run = look(
            self.store,
            self.loaded,
            environment=environment,
            spark=self.spark,
            data_root=self.data_root,
            clock=self.clock,
            run_id=self.run_id,
            snapshots=self.snapshots,
        )
        root_id = self.plan.request.launch or self.run_id
        return replace(
            run,
            plan_id=self.plan_id,
            root_id=root_id,
            patience=self.patience,
            tuning=dict(self.plan.request.spark),
            batch_cells=self.plan.batch_cells,
            at_work=self.at_work,
            effects=self.effects,
        )
