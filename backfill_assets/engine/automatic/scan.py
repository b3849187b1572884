"""Scan for work that can be released: in prod, and in every plan that the queue has.

Only recorded state is read: no Spark, no table. The one rule is asked about each model, and the cells that
it finds are offered, except those that another plan or environment builds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.engine.automatic.late_mark import (
    late_mark,
    late_plans_queued,
    not_automatic_models,
)
from backfill_assets.engine.automatic.scan_memory import (
    FAILED,
    LEFT,
    OUTSIDE,
    ScanMemory,
    Scanned,
    hashed,
)
from backfill_assets.engine.automatic.scanned_environment import (
    ScannedEnvironment,
    for_scanning,
    in_turn,
    scanned_by_plan,
    scanned_prod,
)
from backfill_assets.engine.automatic.stuck import stuck_cells
from backfill_assets.engine.project.frozen_code import FrozenCode
from backfill_assets.engine.project.plan_age import may_go_on, stands
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.instants import minute_text
from backfill_assets.models.automation import Automation
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.outline import plan_or_outline, why_unreadable
from backfill_assets.planning.plan.selecting import following
from backfill_assets.planning.queue.off_peak import read_off_peak
from backfill_assets.planning.queue.releasing import Offer, ReleaseKind
from backfill_assets.planning.rule.late_work import ASKED_BY
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.stored_plan import NOT_ENDED, OPEN, PlanStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from backfill_assets.engine.automatic.scanned_environment import ScannedModel
    from backfill_assets.engine.project.project import Project
    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.rule.failed_cells import Rest
    from backfill_assets.snapshots.queued_plan import QueuedPlan
    from backfill_assets.snapshots.stored_plan import StoredPlan

MOST = 40_000
"""About how many cells one scan reads per environment, so that none takes long; the rest is next."""


@dataclass(frozen=True, slots=True)
class ReadyWork:
    """What a scan found.

    Attributes:
        memory: what this scan and earlier ones found to need nothing.
        offers: what could be released.
        reported: cells that are ready to be built, of models that are only reported.
        notes: what keeps plans from going on, in words.
        asked: how many models were asked about.
    """

    memory: ScanMemory
    offers: tuple[Offer, ...]
    reported: CellsByModel
    notes: tuple[str, ...]
    asked: int


def ready_work(project: Project, memory: ScanMemory, most: int = MOST) -> ReadyWork:
    """Scan prod and every plan in the queue.

    Args:
        project: whose state is scanned.
        memory: what earlier scans found to need nothing.
        most: about how many cells are read per environment or plan; one model at least is asked about.
    """
    project = for_scanning(project)
    stored = {plan.plan_id: plan for plan in project.store.plans.latest(statuses=OPEN)}
    standing = [plan for plan in stored.values() if stands(project.store, plan, project.clock())]
    scan = _Scan(project, memory, most, standing)
    paused = paused_models(standing)
    prod = scanned_prod(project, standing, paused)
    scan.at(prod)
    scan.notes += [*_unreadable_words(standing), *_paused_words(paused), *_waiting_words(prod)]
    scan.notes += _unpromoted_words(prod)
    scan.late(prod)
    for queued in project.store.queue.queued_plans():
        if queued.plan_id in stored:
            scan.at_plan(stored[queued.plan_id], queued)
    return ReadyWork(
        ScanMemory(scan.scanned, scan.next),
        tuple(scan.offers),
        scan.reported,
        tuple(scan.notes),
        scan.asked,
    )


@dataclass
class _Scan:
    """The state of one scan, beside the open plans that have not waited for too long."""

    project: Project
    memory: ScanMemory
    most: int
    standing: Sequence[StoredPlan]
    scanned: dict[str, Scanned] = field(default_factory=dict[str, Scanned])
    next: dict[str, int] = field(default_factory=dict[str, int])
    offers: list[Offer] = field(default_factory=list[Offer])
    reported: CellsByModel = field(default_factory=CellsByModel)
    notes: list[str] = field(default_factory=list[str])
    asked: int = 0

    def late(self, prod: ScannedEnvironment) -> None:
        """Offer what late data needs, by the name of all that decides what becomes of it (`late_mark`).

        Which of it may be built without a person is found out by the run that does it.
        """
        found = {
            _model(prod, name): mark for name, mark in ScanMemory(self.scanned).stale().items()
        }
        self.notes += _by_hand_words(prod, found)
        stale = {name: mark for name, mark in found.items() if not self._only_reported(name)}
        if stale:
            queued_plans = late_plans_queued(self.project.store, self.standing)
            self.notes += [
                f"late data waits: its plan {plan.plan_id} is {plan.control.words}; "
                f"`backfill resume {plan.plan_id}` continues it"
                for plan in queued_plans
                if plan.control.holds
            ]
            self.notes += _proposed_words(self.project)
            mark = late_mark(self.project, stale, queued_plans)
            inputs = hashed(_sources_of(prod, stale))
            self.offers.append(Offer(PROD, ReleaseKind.LATE, mark=mark, inputs=inputs))

    def at_plan(self, stored: StoredPlan, queued: QueuedPlan) -> None:
        """Scan a plan; one that can't go on keeps nothing else from going on."""
        if stored.status is not PlanStatus.APPLYING or queued.queued_at is None:
            return
        if held := self._held(stored, queued):
            self.notes.append(held)
            return
        if why_unreadable(stored):
            return  # it is named with those that hold cells
        try:
            if queued.off_peak and not read_off_peak(queued.off_peak).covers(self.project.clock()):
                self.notes.append(f"plan {stored.plan_id} waits for its hours, {queued.off_peak}")
                return
            plan = plan_or_outline(stored)
            FrozenCode.of(plan, lambda: self.project.loaded.fingerprints).check()
            places = list(scanned_by_plan(self.project, plan))
            before = len(self.offers)
            for where in places:
                self.at(where)
        except BackfillAssetsError as error:
            self.notes.append(str(error))
            return
        ended = all(map(self._is_done, places)) or self._is_newly_stuck(plan, places)
        if len(self.offers) == before and ended:
            self.offers.append(Offer(plan.environment, ReleaseKind.FINISH, plan_id=plan.plan_id))

    def _held(self, stored: StoredPlan, queued: QueuedPlan) -> str:
        """Say what holds a plan; empty for nothing."""
        if queued.control.holds:
            return f"plan {stored.plan_id} is {queued.control.words}"
        if stored not in self.standing:
            return (
                f"plan {stored.plan_id} has waited for too long; `backfill abandon {stored.plan_id}`, "
                "then plan again"
            )
        return ""

    def at(self, where: ScannedEnvironment) -> None:
        """Ask about the models of an environment that may have moved, as many as one scan may."""
        now = {name: where.key(name) for name in where.names}
        todo: list[str] = []
        for name, key in now.items():
            if self.memory.knows(_name(where, name), key):
                self.scanned[_name(where, name)] = self.memory.models[_name(where, name)]
            else:
                todo.append(name)
                self._carry_over(_name(where, name))
        start = self.memory.next.get(where.title, 0)
        chosen_names = in_turn(where, todo, start, self.most)
        self.asked += len(chosen_names)
        rests: dict[str, Rest] = {}
        for scanned in where.scanned(chosen_names) if chosen_names else ():
            name = scanned.model.name
            self._found(where, scanned)
            key, end = (now[name], scanned.end) if scanned.unchanging else ("", LEFT)
            self.scanned[_name(where, name)] = Scanned(key, end, scanned.stale)
            if scanned.rest is not None:
                rests[name] = scanned.rest
        self._tell_rests(where, rests)
        self._tell_failures(where)
        self._tell_outside(where)
        if len(chosen_names) < len(todo):
            self.next[where.title] = where.names.index(chosen_names[-1]) + 1

    def _carry_over(self, name: str) -> None:
        """Keep what was stale in a model, in case that its turn does not come in this scan."""
        last = self.memory.models.get(name)
        if last is not None and last.stale:
            self.scanned[name] = Scanned("", LEFT, last.stale)

    def _found(self, where: ScannedEnvironment, scanned: ScannedModel) -> None:
        name = scanned.model.name
        if not scanned.offers:
            return
        if where.plan_id is None and self._only_reported(name):
            self.reported |= CellsByModel.of((name, offer.cells) for offer in scanned.offers)
            return
        owner = where.run.store.versions.owner(where.pointers[name].version)
        if owner in (None, where.run.environment.name):
            self.offers += scanned.offers
        else:
            self.notes.append(f"{name}: only {owner} may write its table, so {owner} fills it")

    def _tell_rests(self, where: ScannedEnvironment, rests: Mapping[str, Rest]) -> None:
        """Say why cells rest that come again by themselves, once per cause."""
        causes: dict[str, list[str]] = {}
        for name, rest in rests.items():
            batch = self.project.store.batches.find(rest.batch_id)
            error = (batch.error if batch else None) or "no cause was recorded"
            causes.setdefault(error, []).append(f"{name} at {minute_text(rest.until)}")
        for error, listed in causes.items():
            self.notes.append(
                f"cells {_whose(where)} have failed and are retried automatically: "
                f"{', '.join(listed)}; the error was: {error}"
            )

    def _tell_failures(self, where: ScannedEnvironment) -> None:
        """Name the models of which nothing more comes by itself."""
        if failed := self._ended(where, FAILED):
            self.notes.append(
                f"cells {_whose(where)} have failed and are not retried until their code or their "
                f"input changes: {', '.join(failed)}; see `backfill batches --failed`"
            )

    def _tell_outside(self, where: ScannedEnvironment) -> None:
        """Name the models with cells that no run can be requested for."""
        if outside := self._ended(where, OUTSIDE):
            self.notes.append(
                f"cells {_whose(where)} lie outside of the declared start and end, which are not promoted yet, and are "
                f"not released: {', '.join(outside)}; promote the edit, or "
                f"`backfill run --select {outside[0]}` fills them"
            )

    def _ended(self, where: ScannedEnvironment, end: str) -> list[str]:
        """Name the models of an environment whose last scan ended so."""
        prefix = _name(where, "")
        ended = ScanMemory(self.scanned).ended(end)
        return [name.removeprefix(prefix) for name in ended if name.startswith(prefix)]

    def _only_reported(self, name: str) -> bool:
        return self.project.loaded.graph.models[name].automated is Automation.REPORT

    def _is_newly_stuck(self, plan: Plan, places: Iterable[ScannedEnvironment]) -> bool:
        """Whether a plan is stuck, and its evidence does not say so since its last batch."""
        if not any(self._ended(where, FAILED) for where in places):
            return False
        store = self.project.store
        ends = [row.finished_at for row in store.batches.of_plan(plan.plan_id) if row.finished_at]
        records = store.evidence.of_plan(plan.plan_id)
        if records and all(end <= records[-1].at for end in ends):
            return False
        return bool(stuck_cells(self.project, plan))

    def _is_done(self, where: ScannedEnvironment) -> bool:
        memory = ScanMemory(self.scanned)
        return all(memory.is_done(_name(where, name)) for name in where.names)


def _name(where: ScannedEnvironment, model: str) -> str:
    return f"{where.title}:{model}"


def _whose(where: ScannedEnvironment) -> str:
    return f"of plan {where.plan_id}" if where.plan_id else "missing"


def _model(where: ScannedEnvironment, name: str) -> str:
    """Read back what `_name` has written."""
    return name.removeprefix(_name(where, ""))


def _by_hand_words(prod: ScannedEnvironment, stale: Iterable[str]) -> Iterator[str]:
    """Name late data that reaches models which are not automatic, and those: nothing brings it in by itself."""
    declared = not_automatic_models(prod.run.project.loaded.graph)
    not_automatic = prod.pointers.keys() & declared
    for name in stale:
        if reached := following(prod.graph, [name]) & not_automatic:
            yield (
                f"late data of {name} is not brought in automatically where it reaches {', '.join(sorted(reached))}, "
                "whose automation is not 'on'; `backfill run` brings in what lies in late windows"
            )


def _sources_of(where: ScannedEnvironment, models: Iterable[str]) -> list[object]:
    """Give the place and head of every source that models and their readers are built from."""
    found = {
        upstream.name
        for name in following(where.graph, models)
        for upstream in where.graph.models[name].reads
    } & where.heads.keys()
    return [[name, where.heads[name]] for name in sorted(found)]


def _proposed_words(project: Project) -> Iterator[str]:
    """Name the plans for late data that reaches further back than a window: what is late waits for a person."""
    for stored in project.store.plans.latest(PROD, NOT_ENDED):
        if stored.created_by != ASKED_BY or not may_go_on(project.store, stored, project.clock()):
            continue
        if not plan_or_outline(stored).request.late:
            yield (
                f"late data waits for plan {stored.plan_id}, which is {stored.status.value}: a person decides on it, "
                f"`backfill show {stored.plan_id}`"
            )


def paused_models(plans: Iterable[StoredPlan]) -> dict[str, str]:
    """Give the models of prod that open plans keep from the sensor and the schedules, each with the plan's id."""
    pausing_plans = (
        plan
        for stored in plans
        if stored.environment == PROD and (plan := plan_or_outline(stored)).request.pause_schedules
    )
    return {
        planned.model: plan.plan_id
        for plan in pausing_plans
        for planned in plan.models
        if planned.moves
    }


def _unreadable_words(plans: Iterable[StoredPlan]) -> Iterator[str]:
    for stored in plans:
        if why := why_unreadable(stored):
            yield (
                f"plan {stored.plan_id} can't be read: {why}; its cells wait until a release that can read it ends "
                f"it, or `backfill abandon {stored.plan_id}`"
            )


def _paused_words(paused: Mapping[str, str]) -> Iterator[str]:
    for plan_id in dict.fromkeys(paused.values()):
        names = ", ".join(name for name, by in paused.items() if by == plan_id)
        yield f"plan {plan_id} pauses the schedules of {names} until it is promoted or abandoned"


def _waiting_words(prod: ScannedEnvironment) -> Iterator[str]:
    """Name the models that prod does not have yet, and that a run does not give it (`open_run`)."""
    declared = prod.run.project.loaded.graph.models
    names = [
        name
        for name in prod.run.graph.order
        if name in declared
        and name not in prod.pointers
        and declared[name].automated is not Automation.OFF
    ]
    if names:
        yield (
            f"models that wait for a plan, since an open one brings them or their tables hold what {PROD} "
            f"does not publish: {', '.join(names)}; see `backfill plan`"
        )


def _unpromoted_words(prod: ScannedEnvironment) -> Iterator[str]:
    """Name the models whose declared cells are not those that prod runs: Dagster shows partitions that no run fills."""
    declared, running = prod.run.project.loaded.graph.models, prod.run.graph.models
    cadences = {
        name: (declared[name].cadence, running[name].cadence)
        for name in prod.run.graph.order
        if name in declared
        and name in prod.pointers
        and declared[name].automated is not Automation.OFF
    }
    if recut := [name for name, (new, old) in cadences.items() if not new.names_alike(old)]:
        yield (
            f"models of which nothing is released, since they declare other cells than {PROD} publishes: "
            f"{', '.join(recut)}; see `backfill plan`"
        )
    if longer := [name for name, (new, old) in cadences.items() if _is_longer(new, old)]:
        yield (
            f"models that declare cells which {PROD} does not have until a plan is promoted: {', '.join(longer)}; "
            f"see `backfill plan`"
        )


def _is_longer(declared: Cadence, running: Cadence) -> bool:
    """Whether a declared life begins before the running one, or ends after it, on the same cells."""
    if not declared.names_alike(running):
        return False
    begins = declared.start and running.start and declared.start < running.start
    ends = running.end and (declared.end is None or declared.end > running.end)
    return bool(begins or ends)
