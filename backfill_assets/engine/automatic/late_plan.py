"""Late data heals by itself: stale cells inside of all late windows are built again and published.

    look at the sources -> which stale cells reach nothing outside of a late window
    -> where one model alone is concerned: in its own table, as ever
    -> else one plan: built and audited in a workspace, promoted in one transaction over all models

Nothing asks for approval, for nothing happens that the models do not declare. For what lies outside of late
windows a plan is kept, which a person decides on. What fails is left out and the rest goes on. What remembers the work is the stamps of the cells: a refresh that died is found
again by the next one, which finishes its plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from backfill_assets.engine.automatic.automatic_plan import begun, carried_out
from backfill_assets.engine.automatic.needed_plan import needed_plan
from backfill_assets.engine.batch.failure_kinds import kind_of
from backfill_assets.engine.fill.fill import fill_cells
from backfill_assets.engine.fill.late_cells import late_work_of, lease_name
from backfill_assets.engine.fill.observing import observe
from backfill_assets.engine.plans.building import built_in
from backfill_assets.engine.plans.making import keep, plan_of
from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.plans.plan_verbs import abandon_plan
from backfill_assets.engine.project.events import Committed, Failed, events_of
from backfill_assets.engine.project.gate import gate_in
from backfill_assets.engine.project.holds import refuse_hold
from backfill_assets.engine.project.plan_age import stands
from backfill_assets.engine.project.waiting import leased
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.planning.rule.late_work import ASKED_BY, LateWork
from backfill_assets.snapshots.stored_plan import NOT_ENDED
from backfill_assets.state.locks import PlanLeasedError
from backfill_assets.state.queue import PlanPausedOrStoppedError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from backfill_assets.engine.fill.observing import SourceLook
    from backfill_assets.engine.project.project import Project
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.planning.plan.plan import Plan

_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What became of late data.

    Attributes:
        plan_id: the last plan that was made or finished; None where none was needed.
        cells: what was late, was built again and is published, by model.
        built_by: all that was built again and is published, by the plan that built it ("" for none: in its own
            table) and by model; beside what was late, what read it.
        promoted: whether everything that could be published by itself is, and the plan for the rest is kept; what fails
            for good is not counted, nor what was paused or stopped by hand.
        spared: cells that were not built, since what they read was built again with equal content.
        left: what is still late, by what it waits for.
        needed: the plan for what is left and needs one, which a person decides on; None where there is none.
        failed: batches that failed; what they concern is left for the next time.
        notes: what else people should know.
        looks: what the look at the sources came to.
    """

    plan_id: str | None = None
    cells: CellsByModel = field(default_factory=CellsByModel)
    built_by: Mapping[str, CellsByModel] = field(default_factory=dict[str, CellsByModel])
    promoted: bool = True
    spared: Mapping[str, int] = field(default_factory=dict[str, int])
    left: LateWork = field(default_factory=LateWork)
    needed: str | None = None
    failed: tuple[Failed, ...] = ()
    notes: tuple[str, ...] = ()
    looks: tuple[SourceLook, ...] = ()

    @property
    def built(self) -> CellsByModel:
        """All that was built again and is published, by model."""
        return CellsByModel.of(each for built in self.built_by.values() for each in built.items())

    @property
    def held(self) -> CellsByModel:
        """What is still late, since another run or plan, or a batch that failed, keeps it for now, by model."""
        return self.left.held | self.left.automatic

    @property
    def ended(self) -> bool:
        """Whether another attempt would change nothing: only other rows or other code could."""
        return self.promoted and not any(failure.kind.may_pass for failure in self.failed)


def refresh_late(run: RunContext, besides: Collection[str] = (), why: str = "") -> Refreshed:
    """Build late data again and publish it, in one environment.

    Args:
        run: the environment. It runs its own snapshots, whatever code is loaded.
        besides: models that are left alone, and with them all that reaches them.
        why: the reason, in words.

    Raises:
        RequestError: the environment is a hold, in which nothing is built.
        PolicyError: the policy can't be used.
        PolicyMissingError: the environment was under a policy before, and this process has none for it.
    """
    refuse_hold(run.store, run.environment.name)
    gate_in(run.project, run.environment.name)  # raises before anything is decided
    project = replace(run.own, who=ASKED_BY, code=None)
    left_alone = CellsByModel(dict.fromkeys(besides, IntervalSet.of([WHOLE_CELL])))
    try:
        with leased(run, lease_name(run.environment.name)):
            return _Refresh(run, project, why, left=left_alone).done()
    except PlanLeasedError as error:
        looks = observe(run, run.graph.order)
        notes = (str(error), *(look.note for look in looks if look.note))
        return Refreshed(promoted=False, left=late_work_of(run), notes=notes, looks=looks)


@dataclass
class _Refresh:
    """The state of one refresh."""

    run: RunContext
    project: Project
    why: str
    so_far: Refreshed = field(default_factory=Refreshed)
    left: CellsByModel = field(default_factory=CellsByModel)

    def done(self) -> Refreshed:
        """Finish the plans that an earlier run has begun, then refresh until nothing more can be done."""
        looks = observe(self.run, self.run.graph.order)
        self.so_far = replace(self.so_far, looks=looks)
        self._note(*(look.note for look in looks if look.note))
        for plan in self._begun():
            self._go_on(plan)
        for _ in range(_ROUNDS):
            work = late_work_of(self.run, self.left)
            self._in_place(work)
            if not work.automatic:
                break
            plan = self._made(work)
            if plan.is_empty or not self._carry(plan):
                break
        if late_work_of(self.run, self.left).automatic:
            self.so_far = replace(self.so_far, promoted=False)
        work = late_work_of(self.run)
        self._propose(work)
        return replace(self.so_far, left=work)

    def _propose(self, work: LateWork) -> None:
        """Keep a plan for what waits, for a person to decide on."""
        try:
            self.so_far = replace(self.so_far, needed=needed_plan(self.run, self.project, work))
        except BackfillAssetsError as error:
            self._note(f"no plan could be made for late data that needs one: {error}")
            if kind_of(error).may_pass:
                self.so_far = replace(self.so_far, promoted=False)

    def _begun(self) -> list[Plan]:
        """Find plans of a refresh that died."""
        stored_plans = self.run.store.plans.latest(self.run.environment.name, NOT_ENDED)
        automatic = [stored for stored in stored_plans if stored.created_by == ASKED_BY]
        return begun(self.project, automatic, lambda request: bool(request.late), self.why)

    def _made(self, work: LateWork) -> Plan:
        run = self.run
        pointers = run.store.environments.pointers(run.environment.name)
        reasons = dict.fromkeys(work.because[name] for name in work.automatic)
        request = PlanRequest(
            environment=run.environment.name,
            asked_by=ASKED_BY,
            reason=f"late data: {'; '.join(reasons)}",
            select=tuple(name for name in pointers if name in run.graph.models),
            skip_upstream=True,
            late=tuple(work.automatic.items()),
        )
        plan = plan_of(
            self.project, request
        )  # the sources were looked at before the work was split
        keep(self.project, plan)
        return plan

    def _in_place(self, work: LateWork) -> None:
        """Refresh models without readers in their own tables."""
        if not work.in_place:
            return
        events = fill_cells(self.run, work.in_place, self.project.listener)
        failed = events_of(Failed, events)
        self._failed(failed)
        self.left |= _lost(failed)
        built = CellsByModel.of((done.model, done.cells) for done in events_of(Committed, events))
        self._built("", built, built)

    def _go_on(self, plan: Plan) -> None:
        """Finish a plan that was begun; one that has waited for too long holds nothing, whoever has paused it."""
        if stands(self.run.store, plan, self.run.clock()):
            self._carry(plan)
        elif self._give_up(plan):
            self._note(f"plan {plan.plan_id} has waited for too long, and was abandoned")

    def _carry(self, plan: Plan) -> bool:
        """Build a plan and publish it; return whether another round may do more."""
        op = Operation(project=self.project, plan=plan, why=self.why)
        self.so_far = replace(self.so_far, plan_id=plan.plan_id)
        if self._is_held(plan):
            return False
        try:
            done = carried_out(op, lambda of: of.why)
            if done.left and self._is_held(plan):
                return False
            if done.left:
                return self._stopped(plan, done.failed, done.left)
        except BackfillAssetsError as error:
            return self._refused(plan, error)
        late = CellsByModel({planned.model: planned.certain for planned in plan.models})
        self._built(plan.plan_id, late, built_in(op.store, plan))
        self.so_far = replace(self.so_far, spared={**self.so_far.spared, **done.spared})
        return True

    def _is_held(self, plan: Plan) -> bool:
        """Whether a plan was paused or stopped: its cells are left alone."""
        control = self.run.store.queue.control_of(plan.plan_id)
        if control.holds:
            self._note(str(PlanPausedOrStoppedError(plan.plan_id, control)))
            self.left |= {planned.model: planned.cells for planned in plan.models}
        return control.holds

    def _stopped(self, plan: Plan, failed: tuple[Failed, ...], remaining: CellsByModel) -> bool:
        """Leave a plan that may go on later; else let the cells that failed wait, and all they reach."""
        self._failed(failed)
        if not failed or all(failure.kind.may_pass for failure in failed):
            return self._put_off(plan, f"plan {plan.plan_id} is not completely built")
        lost = _lost(failed)
        self.left |= {name: lost[name] for name in remaining}
        return self._give_up(plan)

    def _refused(self, plan: Plan, error: BackfillAssetsError) -> bool:
        """Leave a plan whose error may pass, since what it has built stays; else make the next one from the new state."""
        if kind_of(error).may_pass:
            return self._put_off(plan, f"plan {plan.plan_id} is not published yet: {error}")
        if not self._give_up(plan):
            return False
        self._note(f"plan {plan.plan_id} was abandoned: {error}")
        return True

    def _put_off(self, plan: Plan, why: str) -> bool:
        """Leave a plan to the next refresh, and its cells with it: no other plan is made for them."""
        self.so_far = replace(self.so_far, promoted=False)
        self.left |= {planned.model: planned.cells for planned in plan.models}
        self._note(f"{why}; the next refresh continues it")
        return False

    def _give_up(self, plan: Plan) -> bool:
        """Abandon a plan, and say whether it is; one in which a batch is at work is left to the next refresh."""
        try:
            abandon_plan(self.project, plan, self.why)
        except BackfillAssetsError as error:
            return self._put_off(plan, str(error))
        return True

    def _built(self, by: str, late: CellsByModel, built: CellsByModel) -> None:
        cells, all_ = self.so_far.cells | late, joined(self.so_far.built_by, {by: built})
        self.so_far = replace(self.so_far, cells=cells, built_by=all_)

    def _failed(self, failed: tuple[Failed, ...]) -> None:
        self.so_far = replace(self.so_far, failed=(*self.so_far.failed, *failed))

    def _note(self, *notes: str) -> None:
        self.so_far = replace(self.so_far, notes=(*self.so_far.notes, *notes))


def joined(
    first: Mapping[str, CellsByModel], then: Mapping[str, CellsByModel]
) -> dict[str, CellsByModel]:
    """Unite what two parts of a refresh have built, by the plan that built it."""
    return {
        by: first.get(by, CellsByModel()) | then.get(by, CellsByModel()) for by in {**first, **then}
    }


def _lost(failed: tuple[Failed, ...]) -> CellsByModel:
    return CellsByModel.of((failure.model, failure.cells) for failure in failed)
