"""Make plans: one way for the command, the launchpad, late data and launches by hand.

    look at the sources -> draw the picture of the state -> build_plan -> estimate -> keep

A plan may be for an environment that does not exist yet: it follows prod, so it is planned over what
prod reads, and begins to exist when the plan is applied.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import RequestError
from backfill_assets.execution.at_work import AtWork, Phase
from backfill_assets.execution.estimating import Estimator
from backfill_assets.execution.observing import observe_sources
from backfill_assets.execution.opening import look
from backfill_assets.execution.operators import refuse_reach
from backfill_assets.execution.outstanding import outstanding
from backfill_assets.execution.plan_state import plan_state
from backfill_assets.execution.plan_terms import USUAL, PlanTerms
from backfill_assets.planning.build_plan import build_plan
from backfill_assets.planning.plan_json import content_hash, identified, plan_json
from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets.snapshots.loaded import Loaded
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets.snapshots.stored_plan import PlanStatus, StoredPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from backfill_assets.execution.observing import Looked
    from backfill_assets.execution.outstanding import Outstanding
    from backfill_assets.execution.run_context import RunContext
    from backfill_assets.planning.plan import Plan
    from backfill_assets.planning.plan_state import PlanState
    from backfill_assets.planning.request import PlanRequest
    from backfill_assets.snapshots.person import Person
    from backfill_assets.state.store import Store

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMaker:
    """Makes plans from what is declared and what is there.

    Attributes:
        store: the state.
        loaded: the declarations that plans are made for.
        data_root: folder or URI under which tables lie.
        clock: gives the instant (UTC) that plans are made at.
        spark: gives the session, started only where a source can't be looked at without it.
        told: called with each thing that people must know of the sources.
        terms: how long plans last, and what their work costs.
        at_work: what the steps tell themselves to.
    """

    store: Store
    loaded: Loaded
    data_root: str
    clock: Callable[[], datetime]
    spark: Callable[[], Any]
    told: Callable[[str], None] = lambda _: None
    terms: PlanTerms = USUAL
    at_work: AtWork = field(default_factory=AtWork)

    def look(self) -> tuple[Looked, ...]:
        """Look at the sources, as planning rests on them; Spark is started only where it is the last way."""
        sources = self.loaded.graph.sources
        looks = observe_sources(self.store, sources.values(), self.data_root, None, self.at_work)
        left = [sources[one.source] for one in looks if not one.judged and one.counts]
        again = observe_sources(self.store, left, self.data_root, self.spark, self.at_work)
        found = (*(one for one in looks if one.judged or not one.counts), *again)
        for one in found:
            if one.note:
                self.told(one.note)
        return found

    def plan(self, request: PlanRequest, as_of: datetime | None = None) -> Plan:
        """Make a plan from what was looked at; nothing is written.

        Args:
            request: what is asked.
            as_of: the instant that history ends at (UTC); None: now. The plan is made, and expires,
                by the clock whatever this says.

        Raises:
            RequestError: the environment is a new one that can't be called so.
            BackfillAssetsError: the request can't be met; each cause has its own class.
        """
        with self.at_work.at(Phase.PLANNING):
            made_at = self.clock()
            until = as_of or made_at
            graph, state = self.loaded.graph, self._state(request.environment, until)
            built = build_plan(request, graph, state, until, self.loaded)
            if as_of is not None:
                lasts = built.expires_at - built.created_at
                built = identified(replace(built, created_at=made_at, expires_at=made_at + lasts))
            return Estimator(self.store, graph, self.data_root, self.terms).estimated(built)

    def keep(self, plan: Plan) -> None:
        """Keep a plan as it was shown; the same one again stays as it is, and an empty one is not kept."""
        if plan.is_empty:
            return
        self.store.save_plan(
            StoredPlan(
                plan_id=plan.plan_id,
                environment=plan.environment,
                status=PlanStatus.PROPOSED,
                content=plan_json(plan),
                content_hash=content_hash(plan),
                created_at=plan.created_at,
                created_by=plan.request.asked_by,
                reason=plan.request.reason,
                expires_at=plan.expires_at,
                cells={one.model: one.cells for one in plan.models if one.cells},
            )
        )

    def new_environment(self, name: str) -> Environment | None:
        """Describe an environment that is to follow prod; None when it is there already.

        Raises:
            RequestError: it can't be called so.
        """
        if any(one.name == name for one in self.store.environments()):
            return None
        if not _NAME.fullmatch(name):
            raise RequestError(
                found=f"no environment can be called {name!r}",
                do="a name is up to 40 small letters, digits and underscores, and begins with a "
                "letter, as dev_refunds does",
            )
        expires = self.clock() + timedelta(days=self.terms.environment_days)
        return Environment(name, protected=False, follows=PROD, expires_at=expires)

    def read_by(self, name: str) -> str:
        """Name the environment whose pointers an environment reads: prod's for one that is new.

        Raises:
            RequestError: it is a new one that can't be called so.
        """
        return PROD if self.new_environment(name) else name

    def prepare(self, plan: Plan, who: Person, operators: Sequence[str]) -> None:
        """Refuse a plan whose reach this person may not change; make the environment that it begins.

        Raises:
            RequestError: it restates what others read, too, and the settings name who may.
        """
        refuse_reach(self.store, plan, who, operators)
        new = self.new_environment(plan.environment)
        if new is not None:
            self.store.save_environment(new)

    def _state(self, environment: str, instant: datetime) -> PlanState:
        """Draw the picture that planning works on; a new environment reads all that prod reads."""
        new = self.new_environment(environment)
        state = plan_state(
            self.store,
            self.loaded,
            PROD if new else environment,
            data_root=self.data_root,
            now=instant,
            plan_days=self.terms.plan_days,
        )
        return state if new is None else replace(state, view=replace(state.view, environment=new))


def maker_of(run: RunContext) -> PlanMaker:
    """Make plans for what a run's environment runs, whatever code is loaded."""
    return PlanMaker(
        store=run.store,
        loaded=Loaded(run.graph, snapshots_of(run.graph), run.reads),
        data_root=run.data_root,
        clock=run.clock,
        spark=run.spark,
        terms=run.terms,
        at_work=run.at_work,
    )


@dataclass(frozen=True, slots=True)
class Made:
    """A plan, and what the look at the sources before it came to."""

    plan: Plan
    looks: tuple[Looked, ...]


def make_plan(maker: PlanMaker, request: PlanRequest, as_of: datetime | None = None) -> Made:
    """Look at the sources, make a plan, and keep it unless there is nothing to do.

    Raises:
        RequestError: the environment is a new one that can't be called so.
        BackfillAssetsError: the request can't be met; each cause has its own class.
    """
    looks = maker.look()
    plan = maker.plan(request, as_of)
    maker.keep(plan)
    return Made(plan, looks)


def left_before(maker: PlanMaker, made: Made, as_of: datetime | None = None) -> Outstanding:
    """Count what is left in a plan's environment before it is applied; a new one reads what prod reads."""
    graph = maker.loaded.graph
    run = look(
        maker.store,
        graph,
        environment=maker.read_by(made.plan.environment),
        spark=maker.spark,
        data_root=maker.data_root,
        clock=(lambda: as_of) if as_of else maker.clock,
        run_id="plan",
        snapshots=maker.loaded.snapshots,
    )
    return outstanding(run, run.graph.order, made.looks)
