"""Audits that a plan changes, over the published cells that it keeps: nothing is rebuilt for them.

What passed is remembered in the plan's history, with the commits that were looked at; only cells
that were committed since are audited again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from backfill_assets.engine.batch.audit_run import audit_published
from backfill_assets.engine.batch.audited import blocking_text
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.plan import Build
from backfill_assets.planning.plan.request import Category
from backfill_assets.snapshots.stored_plan import OPEN, PlanEventKind, PlanStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.audit import Audit
    from backfill_assets.models.audit_result import AuditResult
    from backfill_assets.planning.plan.plan import ModelPlan


def refuse_failing(op: Operation, results: Mapping[str, tuple[AuditResult, ...]]) -> None:
    """Refuse to publish where a blocking audit failed.

    Raises:
        RequestError: one did.
    """
    listed = "; ".join(
        filter(None, (blocking_text(model, of_model) for model, of_model in results.items()))
    )
    if listed:
        raise RequestError(
            found=f"published cells that plan {op.plan_id} keeps fail its new audits, nothing was "
            f"published: {listed}",
            do="Restate these cells in the same plan, or change the audit, and plan again",
        )


def audit_kept(op: Operation, so_far: Outcome) -> Outcome:
    """Run the audits that a plan changes on the cells that it keeps, and tell what they found.

    What has passed already is not audited again, nor is anything once `Check` has refused the plan.
    Afterwards a plan that was being applied counts as built.
    """
    audited = dict(so_far.audited) if so_far.refusal else {**so_far.audited, **_audited(op)}
    if so_far.status is not PlanStatus.APPLYING:
        return replace(so_far, audited=audited)
    op.store.plans.set_plan_status(op.plan_id, OPEN, PlanStatus.BUILT)
    return replace(so_far, status=PlanStatus.BUILT, audited=audited)


def _audited(op: Operation) -> dict[str, tuple[AuditResult, ...]]:
    todo = unaudited(op)
    if not todo:
        return {}
    audited: dict[str, tuple[AuditResult, ...]] = {}
    run = op.workspace()
    with op.at_work.at(Phase.CHECKING, of=len(todo)) as step:
        for name, cells in todo.items():
            step.next(name)
            tables = _tables(run, name)
            audits = _changed_audits(op, _planned(op, name))
            results = audit_published(run, name, cells, audits)
            op.tell(PlanEventKind.AUDITED, **_detail(run, name, cells, tables, results))
            audited[name] = results
    return audited


def unaudited(op: Operation) -> CellsByModel:
    """Give the kept cells that the plan's changed audits have not passed yet, by model."""
    touched = [
        planned for planned in op.plan.models if _keeps(planned) and _changed_audits(op, planned)
    ]
    if not touched:
        return CellsByModel()
    run, passed = op.workspace(), _passed(op)
    view = run.view()
    unaudited_cells = CellsByModel()
    for planned in touched:
        state = view.models.get(planned.model)
        since = passed.get(planned.model, {})
        cells = _committed_since(run, planned.model, since) if since else None
        kept = IntervalSet.empty() if state is None else state.ready - state.own
        kept -= view.kept(run.graph.model(planned.model), kept)  # the old definition's, for good
        unaudited_cells |= {planned.model: kept if cells is None else kept & cells}
    return unaudited_cells


def _planned(op: Operation, name: str) -> ModelPlan:
    return next(planned for planned in op.plan.models if planned.model == name)


def _keeps(planned: ModelPlan) -> bool:
    """Whether published cells stay and must hold what the new declaration says.

    A forward-only change counts from now on, and so do its audits.
    """
    kept = (
        planned.build in (Build.POINTER, Build.IN_PLACE)
        and planned.category is not Category.FORWARD_ONLY
    )
    return kept and bool(planned.old_fingerprint) and planned.fingerprint != planned.old_fingerprint


def _changed_audits(op: Operation, planned: ModelPlan) -> tuple[Audit, ...]:
    old, new = (
        audits_of(op.store.snapshots.get(print_).declared)
        for print_ in (planned.old_fingerprint, planned.fingerprint)
    )
    return tuple(audit for audit in new if audit not in old)


def _tables(run: RunContext, name: str) -> dict[str, int]:
    """Give the tables that the workspace reads a model from, at their pins."""
    pointer = run.store.environments.pointers(run.environment.name)[name]
    return {table.version: table.delta_version for table in run.store.views.tables(pointer)}


def _committed_since(run: RunContext, name: str, since: Mapping[str, int]) -> IntervalSet:
    """Give the cells of commits that came after those that were looked at."""
    cells = (
        record.cell
        for version, at in _tables(run, name).items()
        if at != since.get(version)
        for record in run.store.versions.ready_records(version, at)
        if record.valid_from > since.get(version, -1)
    )
    return IntervalSet.of(cells)


def _passed(op: Operation) -> dict[str, dict[str, int]]:
    """Read per model at which pins its kept cells have passed."""
    events = op.store.plans.events(op.plan_id)
    details = (
        event.detail
        for event in events
        if event.event == PlanEventKind.AUDITED and event.detail["passed"]
    )
    return {detail["model"]: detail["tables"] for detail in details}


def _detail(
    run: RunContext,
    name: str,
    cells: IntervalSet,
    tables: Mapping[str, int],
    results: tuple[AuditResult, ...],
) -> dict[str, Any]:
    return {
        "model": name,
        "cells": ranges_text(run.graph.model(name).cadence, cells),
        "passed": not any(result.blocks for result in results),
        "tables": dict(tables),
        "audits": [
            {
                "audit": result.audit,
                "severity": result.severity.value,
                "passed": result.passed,
                "found": result.found,
                "allowed": result.allowed,
                "cells": list(result.cells),
            }
            for result in results
        ],
    }
