"""Watch what a plan has published: ask for it, look, and tell the plan's history what was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.engine.project.opening import look
from backfill_assets.engine.review.evidence import record_end
from backfill_assets.errors import RequestError
from backfill_assets.evidence.manifest import WATCHED
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.review.aftercare import NOT_JUDGED, Watched, findings, watch_of
from backfill_assets.snapshots.stored_plan import ENDS, PlanEventKind, PlanStatus, dropped_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime, timedelta

    from backfill_assets.engine.project.project import Project
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.model import Model
    from backfill_assets.planning.review.aftercare import Watch
    from backfill_assets.snapshots.stored_plan import PlanEvent, StoredPlan
    from backfill_assets.state.store import Store


@dataclass(frozen=True, slots=True)
class WatchedPlan:
    """A look at what a plan has published.

    Attributes:
        plan_id: the plan.
        watch: the watch, this look included.
    """

    plan_id: str
    watch: Watch

    @property
    def found(self) -> tuple[str, ...]:
        """What is wrong, a sentence each."""
        return self.watch.found

    @property
    def alarm(self) -> str:
        """What is wrong, and the command that goes back; empty where all is well."""
        if not self.found:
            return ""
        return f"{'; '.join(self.found)}. `backfill rollback {self.plan_id}` goes back"


def ask_watch(project: Project, plan_id: str, time: timedelta) -> None:
    """Let a plan be watched for so long after its promotion, made already or to come."""
    seconds = time.total_seconds()
    project.store.plans.tell(
        plan_id, PlanEventKind.WATCH, who=project.who, detail={"seconds": seconds}
    )


def watches(store: Store, environment: str | None = None) -> dict[str, Watch]:
    """Read every watch that is under way, by plan; of one environment, or of all."""
    plan_ids = store.plans.begun_and_not_ended(
        PlanEventKind.WATCH, PlanEventKind.WATCH_ENDED, PlanStatus.PROMOTED
    )
    plans = [
        plan_id
        for plan_id in plan_ids
        if environment in {None, store.plans.get(plan_id).environment}
    ]
    by_plan = {plan_id: watch_of(store.plans.events(plan_id)) for plan_id in plans}
    return {plan_id: watch for plan_id, watch in by_plan.items() if watch}


def look_after(project: Project, plan_id: str) -> WatchedPlan:
    """Look at what a plan has published, from recorded state alone, and tell its history.

    The first look at or after the end of the watch ends it: then the plan's evidence is written anew.

    Raises:
        UnknownPlanError: there is no such plan.
        RequestError: it is not watched, or no longer.
    """
    store, plan = project.store, project.store.plans.get(plan_id)
    events = store.plans.events(plan.plan_id)
    watch = watch_of(events)
    if plan.status is not PlanStatus.PROMOTED or watch is None or watch.ended:
        raise _not_watched(plan, events, watch)
    run, now = look(project, plan.environment), project.clock()
    consumers = project.loaded.graph.consumers.values()
    problems = findings(list(_watched(run, plan, watch.since, now)), consumers, watch.since, now)
    kind = PlanEventKind.WATCH_ENDED if now >= watch.until else PlanEventKind.LOOKED
    detail = {"found": list(problems), "not_judged": [NOT_JUDGED]}
    store.plans.tell(plan.plan_id, kind, who=project.who, detail=detail)
    looked = WatchedPlan(plan.plan_id, watch_of(store.plans.events(plan.plan_id)) or watch)
    if kind == PlanEventKind.WATCH_ENDED or (problems and problems != watch.found):
        record_end(run, plan.plan_id, WATCHED, looked.alarm)
    return looked


def _not_watched(
    plan: StoredPlan, events: Sequence[PlanEvent], watch: Watch | None
) -> RequestError:
    """Say why a plan is not watched, and how it would be, where it can be."""
    over = _over(plan, events)
    asked = "no watch was asked for" if watch is None else "its watch has ended"
    now = asked if plan.status is PlanStatus.PROMOTED else f"it is {plan.status.value}"
    how = f"`backfill promote {plan.plan_id} --watch 24h` watches what it publishes"
    return RequestError(
        found=f"plan {plan.plan_id} is not watched: {over or now}", do="" if over else how
    )


def _over(plan: StoredPlan, events: Sequence[PlanEvent]) -> str:
    """Say why nothing of a plan is published, nor will be; empty where it is, or may be."""
    if dropped_at(events) is not None:
        return "its environment was dropped"
    is_over = plan.status in ENDS and plan.status is not PlanStatus.PROMOTED
    return f"it is {plan.status.value}" if is_over else ""


def _watched(
    run: RunContext, plan: StoredPlan, since: datetime, now: datetime
) -> Iterator[Watched]:
    """Read of each model of which a plan has published cells what is judged."""
    view, moves = run.view(), run.store.history.promoting_moves(plan.plan_id)
    for name, cells in CellsByModel.of((move.model, move.cells) for move in moves).items():
        if name not in run.graph.models or name not in run.pointers:
            continue
        model = run.graph.model(name)
        work = run.work(name, view, now)
        contents = run.store.views.published_contents(plan.environment, name, work.ready)
        yield Watched(
            model=name,
            cadence=model.cadence,
            planned=cells,
            gaps=work.gaps,
            rows={cell: content.rows for cell, content in contents.items()},
            new=_new(run, plan, name, since) & work.ready,
            failed=tuple(_failed(run, model, since, work.gaps | work.stale_cells)),
        )


def _new(run: RunContext, plan: StoredPlan, name: str, since: datetime) -> IntervalSet:
    """Give the cells that were written since the promotion, by other batches than the plan's."""
    at = run.pointers[name]
    made = run.store.versions.makers(at.version, at.delta_version)
    return IntervalSet.of(
        maker.cell
        for maker in made
        if maker.started_at and maker.started_at >= since and maker.plan_id != plan.plan_id
    )


def _failed(
    run: RunContext, model: Model, since: datetime, todo: IntervalSet
) -> Iterator[tuple[str, IntervalSet]]:
    """Give the blocking audits that failed since, on cells that no later batch has made good."""
    batches = {
        row.batch_id: row.stretches & todo
        for row in run.store.batches.latest(model=model.name)
        if row.environment == run.environment.name and row.started_at >= since
    }
    by_audit: dict[str, IntervalSet] = {}
    for row in run.store.batches.audit_results(model=model.name) if batches else ():
        cells = batches.get(row.audited.batch_id)
        if cells and row.result.blocks:
            by_audit[row.result.audit] = by_audit.get(row.result.audit, IntervalSet.empty()) | cells
    yield from by_audit.items()
