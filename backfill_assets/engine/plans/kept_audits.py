"""Audits that a plan changes, over the cells that it keeps: nothing is rebuilt for them.

These are published cells that stay, and cells that a new table holds already, from a plan that was given up or from
another environment: each was audited as the snapshot that built it declares. What passed is remembered in the plan's
history, with the commits that were looked at; only cells that were committed since are audited again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from backfill_assets.engine.batch.audit_run import audit_published
from backfill_assets.engine.batch.audited import blocking_text
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.audits_of import audits_of
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
    from backfill_assets.snapshots.state_view import ModelState, StateView


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
            found=f"cells that plan {op.plan_id} keeps fail its new audits, nothing was "
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
        for each in todo:
            step.next(each.model)
            tables = _tables(run, each.model)
            results = audit_published(run, each.model, each.cells, each.audits)
            op.tell(PlanEventKind.AUDITED, **_detail(run, each, tables, results))
            audited[each.model] = results
    return audited


@dataclass(frozen=True, slots=True)
class _Kept:
    """Cells of a model that a plan keeps, and the audits of its declaration that they have not passed.

    Attributes:
        model: its name.
        cells: the cells.
        audits: of some of these cells at least.
    """

    model: str
    cells: IntervalSet
    audits: tuple[Audit, ...]


def unaudited(op: Operation) -> tuple[_Kept, ...]:
    """Give the kept cells that the plan's changed audits have not passed yet."""
    touched = [planned for planned in op.plan.models if _may_keep(planned)]
    if not touched:
        return ()
    run, passed = op.workspace(), _passed(op)
    view = run.view()
    states = ((planned, view.models.get(planned.model)) for planned in touched)
    kept = [_kept(op, planned, state) for planned, state in states if state is not None]
    todo = (_not_passed(run, view, each, passed.get(each.model, {})) for each in kept)
    return tuple(each for each in todo if each.cells)


def _not_passed(run: RunContext, view: StateView, kept: _Kept, since: Mapping[str, int]) -> _Kept:
    cells = kept.cells
    cells -= view.kept(run.graph.model(kept.model), cells)  # the old definition's, for good
    if cells and since:
        cells &= _committed_since(run, kept.model, since)
    return replace(kept, cells=cells)


def _may_keep(planned: ModelPlan) -> bool:
    """Whether cells that the plan does not build must hold what the new declaration says.

    A forward-only change counts from now on, and so do its audits.
    """
    if planned.build is Build.NEW_VERSION:
        return True
    kept = (
        planned.build in (Build.POINTER, Build.IN_PLACE)
        and planned.category is not Category.FORWARD_ONLY
    )
    return kept and bool(planned.old_fingerprint) and planned.fingerprint != planned.old_fingerprint


def _kept(op: Operation, planned: ModelPlan, state: ModelState) -> _Kept:
    """Give the cells of a model that the plan keeps, with the audits that it changes for them."""
    new = _audits(op, planned.fingerprint)
    if planned.build is not Build.NEW_VERSION:
        audits = _others(new, _audits(op, planned.old_fingerprint))
        return _Kept(planned.model, state.ready - state.own if audits else _NONE, audits)
    lacking = {
        maker: _others(new, _audits(op, maker))
        for maker in {each.fingerprint for each in state.runs}
    }
    cells = IntervalSet.of(each.interval for each in state.runs if lacking[each.fingerprint])
    audits = tuple(audit for audit in new if any(audit in each for each in lacking.values()))
    return _Kept(planned.model, cells, audits)


_NONE = IntervalSet.empty()


def _audits(op: Operation, fingerprint: str | None) -> tuple[Audit, ...]:
    """Give the audits that a snapshot declares; none where it is not known."""
    model = None if fingerprint is None else op.store.snapshots.model(fingerprint)
    return () if model is None else audits_of(model)


def _others(new: tuple[Audit, ...], old: tuple[Audit, ...]) -> tuple[Audit, ...]:
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
    kept: _Kept,
    tables: Mapping[str, int],
    results: tuple[AuditResult, ...],
) -> dict[str, Any]:
    return {
        "model": kept.model,
        "cells": ranges_text(run.graph.model(kept.model).cadence, kept.cells),
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
