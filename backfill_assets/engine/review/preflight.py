"""Gather what the checklist of a plan rests on, and stop a plan that would replace history by nothing."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.project.opening import look
from backfill_assets.engine.project.plan_age import may_go_on
from backfill_assets.errors import RequestError
from backfill_assets.intervals.instants import minute_text
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells import cells_read
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.models.sql.lineage import lineage_of
from backfill_assets.planning.review.checklist import (
    ChecklistFacts,
    Item,
    checklist,
    inventory,
    source_history,
)
from backfill_assets.planning.review.source_history import LostHistory, lost_history
from backfill_assets.render.plan_words import naming_of
from backfill_assets.snapshots.environment import PROD, workspace_name
from backfill_assets.snapshots.places import located
from backfill_assets.snapshots.stored_plan import OPEN, PlanStatus, promotion_of
from backfill_assets.warehouse.files.tables import table_now
from backfill_assets.warehouse.log.delta_log import CorruptTableError
from backfill_assets.warehouse.sources.null_counts import source_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.engine.project.project import Project
    from backfill_assets.models.audit_result import AuditResult
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.source import Source
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.review.source_columns import SourceColumns
    from backfill_assets.snapshots.state_view import StateView


class LostSourceHistoryError(RequestError):
    """A plan would build published cells from source cells that have lost their rows."""

    def __init__(self, plan: Plan, item: Item) -> None:
        self.item = item
        super().__init__(
            found=f"plan {plan.plan_id} would replace published rows by nothing: "
            f"{'; '.join(item.texts)}. Nothing was published",
            do=item.todo,
        )


def refuse_lost_history(project: Project, plan: Plan) -> None:
    """Refuse a plan of a protected environment that would replace published rows by nothing, or has built that.

    An automatic plan for late data is not asked: its models declare that such cells follow their source, and where
    the source lets cells wait for rows, these are not in it.

    Raises:
        LostSourceHistoryError: it lists the cells.
    """
    if not plan.protected or plan.request.late:
        return
    graph = project.loaded.graph
    lost = _lost(project, plan, graph, project.store.views.of(plan.environment))
    for item in source_history(lost, naming_of(graph).ranges):
        raise LostSourceHistoryError(plan, item)


def checklist_of(project: Project, plan: Plan) -> tuple[Item, ...]:
    """Settle every item of a plan's checklist, from the state, the loaded declarations and the sources' logs."""
    graph, store = project.loaded.graph, project.store
    view, status = _published_view(project, plan), store.plans.get(plan.plan_id).status
    facts = replace(
        _recorded(project, plan, view),
        columns=dict(_columns(project, plan, graph, view)),
        left=_left(project, plan) if status in OPEN else {},
        audits=_audits(project, plan),
        building=_building(project, plan),
        published=_published(project, plan),
    )
    return checklist(plan, graph, facts, naming_of(graph).ranges)


def inventory_of(project: Project, plan: Plan) -> tuple[Item, ...]:
    """Settle what must be known before a plan computes, from the declarations and the state alone.

    No log of a source is read, so what its files tell of single columns is not in it: only rows and declarations
    change it, and no other layout of the same rows does.
    """
    graph = project.loaded.graph
    facts = _recorded(project, plan, _published_view(project, plan))
    return inventory(plan, graph, facts, naming_of(graph).ranges)


def _published_view(project: Project, plan: Plan) -> StateView:
    """Draw what the plan's environment publishes; where there is no such environment yet, what prod does."""
    exists = project.store.environments.exists(plan.environment)
    return project.store.views.of(plan.environment if exists else PROD)


def _recorded(project: Project, plan: Plan, view: StateView) -> ChecklistFacts:
    """Gather what the state says of a plan's inventory."""
    graph, gate = project.loaded.graph, project.gate()
    status = project.store.plans.get(plan.plan_id).status
    return ChecklistFacts(
        status=status,
        lost=() if status is PlanStatus.PROMOTED else _lost(project, plan, graph, view),
        empty=_empty(_read(plan, graph), view),
        needs_inventory=gate is not None and gate.policy.needs_inventory(plan.environment),
    )


def _lost(project: Project, plan: Plan, graph: Graph, view: StateView) -> tuple[LostHistory, ...]:
    """Find lost source rows of cells that are published with rows, and that the plan has not built with rows.

    A cell that is published empty loses none; one that was built before its source lost them has them.
    """
    found = tuple(lost_history(plan, graph, view))
    workspace, own = workspace_name(plan.plan_id), CellsByModel()
    if found and project.store.environments.exists(workspace):
        built = project.store.views.of(workspace)
        own = CellsByModel({planned.model: built.own(planned.model) for planned in plan.models})
    remaining = (
        replace(
            lost,
            cells=_with_rows(project, plan.environment, lost.model, lost.cells)
            - _with_rows(project, workspace, lost.model, lost.cells & own[lost.model]),
        )
        for lost in found
    )
    return tuple(lost for lost in remaining if lost.cells)


def _with_rows(project: Project, environment: str, model: str, cells: IntervalSet) -> IntervalSet:
    contents = project.store.views.content_at_pin(environment, model, cells)
    return IntervalSet.of(cell for cell, content in contents.items() if content.rows) & cells


def _read(plan: Plan, graph: Graph) -> CellsByModel:
    """Give per source the cells that the plan reads."""
    return CellsByModel.of(
        (
            upstream.name,
            cells_read(model.cadence, upstream, source.cadence, planned.cells, until=plan.until),
        )
        for planned in plan.models
        if (model := graph.models.get(planned.model))
        for upstream in model.reads
        if (source := graph.sources.get(upstream.name))
    )


def _empty(read: CellsByModel, view: StateView) -> dict[str, IntervalSet | None]:
    """Give per source the cells without a row that the plan reads; None of one that was never looked at."""
    return {
        name: cells - view.sources[name].ready if name in view.sources else None
        for name, cells in read.items()
    }


def _columns(
    project: Project, plan: Plan, graph: Graph, view: StateView
) -> Iterator[tuple[str, SourceColumns | None]]:
    """Tell per source how far the columns that the plan reads are filled; None where its log can't say."""
    for name, cells in _read(plan, graph).items():
        source = graph.sources[name]
        seen = view.sources.get(name)
        path = located(source.path, project.data_root)
        try:
            table = table_now(path)
            if table.exists:
                with_rows = cells if seen is None else cells & seen.ready
                columns = _asked(plan, graph, source)
                yield name, source_columns(path, source, table.delta_version, columns, with_rows)
        except (CorruptTableError, OSError):  # the batch that reads it says what is wrong
            yield name, None


def _asked(plan: Plan, graph: Graph, source: Source) -> frozenset[str]:
    """Name the columns of a source that the plan's models read: all of them where that is not known."""
    every = frozenset(column.name for column in source.schema)
    models = [
        graph.models[planned.model] for planned in plan.models if planned.model in graph.models
    ]
    reading = [model for model in models if any(read.name == source.name for read in model.reads)]
    reads = (lineage_of(graph, model).reads.get(source.name) for model in reading)
    return frozenset[str]().union(*(every if own is None else own for own in reads)) & every


def _left(project: Project, plan: Plan) -> dict[str, str]:
    workspace = workspace_name(plan.plan_id)
    if not project.store.environments.exists(workspace):
        return {}
    run = look(project, workspace)
    remaining = run.left_of(plan)
    return {name: naming_of(run.graph).ranges(name, cells) for name, cells in remaining.items()}


def _building(project: Project, plan: Plan) -> str:
    """Name the command that goes on with a plan; empty where it has ended, or its time is over."""
    store = project.store
    if not may_go_on(store, store.plans.get(plan.plan_id), project.clock()):
        return ""
    return f"backfill {store.queue.control_of(plan.plan_id).goes_on_by} {plan.plan_id}"


def _audits(project: Project, plan: Plan) -> dict[str, list[AuditResult]]:
    """Read the results of the last attempt of each of the plan's batches, by model."""
    batches = project.store.batches
    last = {row.batch_id: row.attempt for row in batches.of_plan(plan.plan_id)}
    results: defaultdict[str, list[AuditResult]] = defaultdict(list)
    for row in batches.audits_of_plan(plan.plan_id):
        if last.get(row.audited.batch_id) == row.audited.attempt:
            results[row.audited.model].append(row.result)
    return dict(results)


def _published(project: Project, plan: Plan) -> str:
    """Say who has published a plan, and when; empty where it is not published."""
    promoted = promotion_of(project.store.plans.events(plan.plan_id))
    if promoted is None:
        return ""
    by = f" by {promoted.who}" if promoted.who else ""
    return f"in {plan.environment} at {minute_text(promoted.at)}{by}"
