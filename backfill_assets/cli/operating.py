"""Everything that a verb about plans works with: settings, declarations, state, Spark, and who asks."""

from __future__ import annotations

import os
import pwd
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.cli.looking import say_note
from backfill_assets.cli.manifest import load
from backfill_assets.cli.plan_view import naming_of
from backfill_assets.cli.progress import AT_WORK
from backfill_assets.cli.project import LazySpark, loaded_fingerprints, now, open_store
from backfill_assets.evidence.actual import actual_of
from backfill_assets.execution.making import PlanMaker
from backfill_assets.execution.opening import look
from backfill_assets.execution.operators import refuse_strangers
from backfill_assets.execution.patience import patience_of
from backfill_assets.execution.plan_terms import terms_of
from backfill_assets.settings import Settings, read_settings
from backfill_assets.snapshots.person import Person, known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.evidence.actual import Actual
    from backfill_assets.evidence.plan_words import Naming
    from backfill_assets.execution.events import Listener
    from backfill_assets.execution.operation import Means
    from backfill_assets.execution.run_context import RunContext
    from backfill_assets.planning.plan import Plan
    from backfill_assets.snapshots.loaded import Loaded
    from backfill_assets.state.batches import BatchRow
    from backfill_assets.state.store import Store


@dataclass(frozen=True)
class Operating:
    """What a verb about plans works with.

    Attributes:
        settings: where things lie.
        loaded: the declarations as they are on disk.
        store: the state.
        spark: started on first use.
        run_id: of this process.
        who: the person who asks.
    """

    settings: Settings
    loaded: Loaded
    store: Store
    spark: LazySpark
    run_id: str
    who: Person

    @property
    def naming(self) -> Naming:
        """How cells are named."""
        return naming_of(self.loaded.graph)

    @property
    def maker(self) -> PlanMaker:
        """Makes the plans."""
        return PlanMaker(
            store=self.store,
            loaded=self.loaded,
            data_root=self.settings.data_root,
            clock=now,
            spark=self.spark,
            told=say_note,
            terms=terms_of(self.settings),
            at_work=AT_WORK,
        )

    def prepare(self, plan: Plan) -> None:
        """Refuse a plan whose reach this person may not change; make the environment that it begins.

        Raises:
            RequestError: it restates what others read, too, and the settings name who may.
        """
        self.maker.prepare(plan, self.who, self.settings.operators)

    def may_change(self, environment: str) -> None:
        """Refuse those who may not change a protected environment.

        Raises:
            RequestError: the settings name others.
        """
        refuse_strangers(self.store, environment, self.who, self.settings.operators)

    def run(self, environment: str) -> RunContext:
        """Look at an environment; nothing is written."""
        return look(
            self.store,
            self.loaded.graph,
            environment=environment,
            spark=self.spark,
            data_root=self.settings.data_root,
            clock=now,
            run_id=self.run_id,
        )

    def taken(self, plan: Plan) -> Actual:
        """Sum up what a plan has taken so far."""
        events, timings = self.store.plan_events(plan.plan_id), self.store.timings(plan.plan_id)
        return actual_of(plan, events, self.batches_of(plan), timings)

    def batches_of(self, plan: Plan) -> list[BatchRow]:
        """Read every batch of the models of a plan."""
        return [row for one in plan.models for row in self.store.batches(model=one.model)]

    def means(self, listener: Listener | None = None, why: str = "") -> Means:
        """Give what an operation on a plan takes."""
        given: Means = {
            "spark": self.spark,
            "data_root": self.settings.data_root,
            "clock": now,
            "run_id": self.run_id,
            "who": str(self.who),
            "batches_at_once": self.settings.max_batches,
            "code": lambda: loaded_fingerprints(self.settings),
            "patience": patience_of(self.settings),
            "why": why,
            "at_work": AT_WORK,
        }
        if listener is not None:
            given["listener"] = listener
        return given


@contextmanager
def operating() -> Iterator[Operating]:
    """Open all of it, and close state and Spark afterwards."""
    settings = read_settings()
    loaded = load(settings)
    store = open_store(settings)
    spark = LazySpark(settings)
    run_id = f"cli-{uuid.uuid4().hex[:12]}"
    try:
        yield Operating(settings, loaded, store, spark, run_id, who_asks(settings))
    finally:
        spark.stop()
        store.close()


def who_asks(settings: Settings) -> Person:
    """Name the person at work: the user of the operating system; what the settings say is a claim."""
    return known(os_user(), settings.user)


def os_user() -> str:
    """Name the user whom the operating system runs this process for, whatever LOGNAME or USER say."""
    number = os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a container may run under a number that has no name
        return f"uid {number}"
