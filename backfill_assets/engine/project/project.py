"""The project that an entrance opens: its state, its declarations, Spark, and who is at work with them.

A command, a job of the launchpad, an asset's step, a sensor: each makes one, once, and whatever it calls
gets its means from here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from backfill_assets.engine.project.at_work import AtWork
from backfill_assets.engine.project.batch_policy import USUAL_POLICY, BatchPolicy
from backfill_assets.engine.project.channels import without_channels
from backfill_assets.engine.project.plan_terms import USUAL, PlanTerms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from backfill_assets.engine.batch.effects import Effects
    from backfill_assets.engine.project.channels import Deliver
    from backfill_assets.engine.project.events import Listener
    from backfill_assets.engine.project.gate import Gate
    from backfill_assets.settings import ViewsFile
    from backfill_assets.snapshots.loaded import Loaded
    from backfill_assets.state.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What every operation works with, whatever it is about.

    Attributes:
        store: the state.
        loaded: the models and sources that count as declared.
        spark: gives the Spark session, started on first use.
        data_root: folder or URI under which tables lie.
        clock: gives the instant (UTC).
        run_id: of this run or process.
        who: the person or run that asks, as the history keeps it.
        listener: called with each thing that happens to cells, from one thread only.
        batches_at_once: how many batches may be in flight, over all runs and processes, unless a person
            has set another limit; a model's own is `batch_concurrency`.
        batch_policy: how often a batch is tried, and how long it may take.
        terms: how long plans last, and what their work costs.
        code: gives the fingerprints of the declarations as they are on disk at this moment; None where
            nothing is held against them.
        at_work: where the steps report that they are at work.
        effects: what the steps of a batch are; None: the usual ones.
        views: files of views that publications write again.
        gate: gives the policy as it is at this moment; None where nothing is asked of anyone.
        sign: signs a text as the person who asks; None where there is no way to, as on the launchpad.
        deliver: delivers a notice to a consumer over one of its channels.
    """

    store: Store
    loaded: Loaded
    spark: Callable[[], Any]
    data_root: str
    clock: Callable[[], datetime]
    run_id: str
    who: str = ""
    listener: Listener = lambda _: None
    batches_at_once: int = 2
    batch_policy: BatchPolicy = USUAL_POLICY
    terms: PlanTerms = USUAL
    code: Callable[[], Mapping[str, str]] | None = None
    at_work: AtWork = field(default_factory=AtWork)
    effects: Effects | None = None
    views: tuple[ViewsFile, ...] = ()
    gate: Callable[[], Gate | None] = lambda: None
    sign: Callable[[str], str] | None = None
    deliver: Deliver = without_channels


@dataclass(frozen=True, slots=True, kw_only=True)
class InProject:
    """What is done in a project, and works with its state, its Spark and its clock.

    Attributes:
        project: the project.
    """

    project: Project

    @property
    def store(self) -> Store:
        """The state."""
        return self.project.store

    @property
    def spark(self) -> Callable[[], Any]:
        """Gives the Spark session, started on first use."""
        return self.project.spark

    @property
    def data_root(self) -> str:
        """The folder or URI under which tables lie."""
        return self.project.data_root

    @property
    def clock(self) -> Callable[[], datetime]:
        """Gives the instant (UTC)."""
        return self.project.clock

    @property
    def run_id(self) -> str:
        """The id of this run or process."""
        return self.project.run_id

    @property
    def at_work(self) -> AtWork:
        """Where the steps report that they are at work."""
        return self.project.at_work
