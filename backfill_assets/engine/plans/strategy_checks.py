"""Run the blocking checks of what a plan has built: those of its strategies, its contract, its slice and its consumers.

Here the cells and rows are compared. The verdicts are pure: `planning.change.strategy_checks` and
`planning.review.contract_judging`.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.batch_inputs import published_table
from backfill_assets.engine.plans.comparing import (
    compared_once,
    outside_once,
    published_and_built,
    totals_once,
)
from backfill_assets.engine.plans.consumer_checks import ConsumerCheckError, consumer_checks
from backfill_assets.engine.plans.contract_checks import contract_results
from backfill_assets.engine.plans.refusals import StalePlanError, refuse_stale
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.engine.project.gate import gate_in
from backfill_assets.engine.review.preflight import LostSourceHistoryError, refuse_lost_history
from backfill_assets.engine.review.reviewed import comparable
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.restated import onward
from backfill_assets.intervals.text import counted
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.models.codec import dumps
from backfill_assets.models.column import canonical_type
from backfill_assets.planning.change.compared import Group
from backfill_assets.planning.change.deriving import explained
from backfill_assets.planning.change.life import outside_life
from backfill_assets.planning.change.strategy_checks import (
    CheckedContents,
    CheckResult,
    Expected,
    check,
    declared_coverage,
    in_doubt,
    shared_time,
)
from backfill_assets.planning.plan.plan import Build, Change, Why
from backfill_assets.planning.plan.request import KeptRows, Strategy
from backfill_assets.planning.plan.restating import restated_cells
from backfill_assets.planning.review.acceptance import voided, with_acceptances
from backfill_assets.planning.rule.lost_inputs import cells_reading_any
from backfill_assets.snapshots.plan_check import CONSUMER, STRATEGY, PlanCheck
from backfill_assets.snapshots.stored_plan import PlanEventKind
from backfill_assets.warehouse.compare.comparison_sql import Question
from backfill_assets.warehouse.files.layers import files_read
from backfill_assets.warehouse.spark.spark_errors import DamagedFileError, PinGoneError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from decimal import Decimal

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.model import Model
    from backfill_assets.planning.change.categorize import DeclarationDifference
    from backfill_assets.planning.change.strategy_checks import Cells
    from backfill_assets.planning.plan.plan import ModelPlan
    from backfill_assets.planning.review.acceptance import Acceptance
    from backfill_assets.planning.review.contract import Expectation
    from backfill_assets.snapshots.state_view import StateView


class StrategyCheckError(BackfillAssetsError):
    """What a plan has built is not what its strategy promises."""

    def __init__(self, plan_id: str, failed: Mapping[str, tuple[PlanCheck, ...]]) -> None:
        self.plan_id, self.failed = plan_id, dict(failed)
        listed = "; ".join(
            f"{model}: {result.check}: {result.text}"
            for model, all_ in failed.items()
            for result in all_
        )
        super().__init__(
            f"plan {plan_id} fails the checks of its strategy, nothing was published: "
            f"{listed}. Look at `backfill diff {plan_id}`; where only late data differs, abandon the plan and "
            "plan again, since a new plan includes it; else correct the model, or plan with another "
            "--strategy and say why, or explain the difference with `backfill accept`"
        )


class UnexpectedChangeError(BackfillAssetsError):
    """A plan would change more than its contract says."""

    def __init__(self, plan_id: str, failed: Sequence[PlanCheck]) -> None:
        self.plan_id, self.failed = plan_id, tuple(failed)
        listed = "; ".join(f"{check.model}: {check.check}: {check.text}" for check in failed)
        first = failed[0]
        super().__init__(
            f"plan {plan_id} would change more than its contract expects, nothing was published: {listed}. "
            f"Look at `backfill diff {plan_id}`; correct the model and plan again, or explain the "
            f"difference: `backfill accept {plan_id} {first.model} {shlex.quote(first.check)} --reason TEXT`"
        )


class SliceLeakError(BackfillAssetsError):
    """Rows that a plan's condition does not choose would differ."""

    def __init__(self, plan_id: str, model: str, rows: int, sample: str) -> None:
        self.plan_id, self.model, self.rows = plan_id, model, rows
        super().__init__(
            f"plan {plan_id} would change {counted(rows, 'row')} of '{model}' that its --where does not select, "
            f"nothing was published; such as {sample}. Widen the condition, or repair the other rows "
            "with a separate plan"
        )


def check_built(op: Operation, so_far: Outcome) -> Outcome:
    """Compare what is built with what the plan saw, and check what each strategy promises.

    A refusal is not raised but put into the outcome: `apply` reports it, and `Publish` raises it.
    """
    checked = replace(so_far, checked=op.built_pins())
    try:
        with op.at_work.at(Phase.CHECKING, "what was built"):
            refuse_stale(op)
            refuse_lost_history(op.project, op.plan)
            check_strategies(op)
    except (
        StalePlanError,
        LostSourceHistoryError,
        StrategyCheckError,
        ConsumerCheckError,
        UnexpectedChangeError,
        SliceLeakError,
    ) as error:
        return replace(checked, refusal=error)
    return replace(checked, refusal=None)


def check_strategies(op: Operation) -> None:
    """Check that what is built is what each strategy promises, and what is expected of the plan.

    What was found is kept; a finding that a person has accepted, with just these numbers, stops nothing.

    Raises:
        StrategyCheckError: a blocking check of a strategy fails.
        UnexpectedChangeError: the plan would change more than its contract says.
        ConsumerCheckError: a check that a consumer has declared fails.
        SliceLeakError: rows outside the plan's slice would change.
    """
    accepted = op.store.checks.acceptances(op.plan_id)
    checks = with_acceptances([*_made_checks(op), *consumer_checks(op)], accepted)
    if checks:
        op.store.checks.keep(op.plan_id, checks)
    _refuse_stopping(op, checks, accepted)
    _check_slice(op)


def check_canaries(op: Operation, so_far: Outcome) -> Outcome:
    """Compare canaries that were just built; go on to the other cells if the policy allows that.

    The plan goes on if the policy of its environment allows it and the canaries are as the plan expects. Otherwise it
    waits for the next `apply`, which builds the other cells.
    """
    if not so_far.canaries or so_far.failed:
        return so_far
    accepted = op.store.checks.acceptances(op.plan_id)
    with op.at_work.at(Phase.CHECKING, "the canaries"):
        checks = with_acceptances(_made_checks(op, so_far.canaries), accepted)
    refusal = None
    try:
        _refuse_stopping(op, checks, accepted)
    except (StrategyCheckError, UnexpectedChangeError) as error:
        refusal = error
    gate = gate_in(op.project, op.plan.environment)
    goes_on = refusal is None and gate is not None and gate.policy.goes_on(op.plan.environment)
    lines = [f"{each.model}: {each.check}: {each.text}" for each in checks]
    op.tell(
        PlanEventKind.CANARIES_COMPARED, checked=lines, goes_on=goes_on, refused=str(refusal or "")
    )
    if goes_on:
        return replace(so_far, canaries=CellsByModel())
    return replace(so_far, refusal=refusal)


def _refuse_stopping(
    op: Operation, checks: Sequence[PlanCheck], accepted: Sequence[Acceptance]
) -> None:
    stopping = [each for each in checks if each.stops]
    with_reasons = [
        replace(each, text=f"{each.text}; {was}") if (was := voided(each, accepted)) else each
        for each in stopping
    ]
    failed: dict[str, tuple[PlanCheck, ...]] = {}
    for each in with_reasons:
        if each.decided_by == STRATEGY:
            failed[each.model] = (*failed.get(each.model, ()), each)
    if failed:
        raise StrategyCheckError(op.plan_id, failed)
    expected = [each for each in with_reasons if each.decided_by != CONSUMER]
    if expected:
        raise UnexpectedChangeError(op.plan_id, expected)
    if with_reasons:
        raise ConsumerCheckError(op.plan_id, with_reasons)


def _made_checks(op: Operation, within: CellsByModel | None = None) -> list[PlanCheck]:
    """Make every check of the plan's strategies, and of its contract; of some cells, or of all.

    None where cells are recorded without computing: nothing is promised of those.
    """
    if op.plan.request.empty:
        return []
    sides = _Sides(op, op.environment(), op.workspace(), within)
    checked = [
        planned
        for planned in op.plan.models
        if ((planned.strategy is not None and planned.built_apart) or _expected_of(op, planned))
        and (within is None or within[planned.model])
    ]
    checks: list[PlanCheck] = []
    with op.at_work.at(Phase.COMPARING, of=len(checked)) as step:
        for planned in checked:
            step.next(planned.model)
            contents = _contents(sides, planned)
            if (strategy := planned.strategy) is not None and planned.built_apart:
                judge = partial(_of_strategy, sides, planned, strategy, contents)
                checks += _judged(sides, planned, contents, [(strategy.value, STRATEGY)], judge)
            if expected := _expected_of(op, planned):
                judge = partial(_of_contract, sides, planned, expected, contents)
                names = [(each.check, each.decided_by) for each in expected]
                checks += _judged(sides, planned, contents, names, judge)
    return checks


def _judged(
    both: _Sides,
    planned: ModelPlan,
    contents: tuple[Cells, Cells],
    names: Iterable[tuple[str, str]],
    judge: Callable[[], list[PlanCheck]],
) -> list[PlanCheck]:
    """Make checks of a model; of lost published rows none can be made: a plan repairs such cells, and a person judges it.

    Args:
        both: what is published, and what would be.
        planned: the model.
        contents: what each cell holds that is published, and what it would hold.
        names: the checks that are failed then, each with what decides on it.
        judge: makes them.
    """
    try:
        return judge()
    except (PinGoneError, DamagedFileError):
        if _lacks_built_files(both, planned.model):
            raise
        basis = sha256(dumps([*contents[1].items()]).encode()).hexdigest()
        return [
            _kept(planned.model, CheckResult(name, passed=False, text=_LOST), decided_by, basis)
            for name, decided_by in names
        ]


_LOST = (
    "can't be judged: files of the published rows are gone or damaged, `backfill audit` names them"
)


def _lacks_built_files(both: _Sides, name: str) -> bool:
    """Whether files of cells are gone that the plan's own table holds."""
    model, table = both.workspace.graph.model(name), published_table(both.workspace, name)
    return any(part.missing for part in files_read(model, table, both.after.own(name)))


def _expected_of(op: Operation, planned: ModelPlan) -> tuple[Expectation, ...]:
    """Give the rules that are judged: what only fills gaps changes nothing that was published."""
    rules = (expected for expected in op.plan.contract if expected.model == planned.model)
    return tuple(rules) if planned.moves else ()


def _of_strategy(
    both: _Sides, planned: ModelPlan, strategy: Strategy, contents: tuple[Cells, Cells]
) -> list[PlanCheck]:
    compared = _comparison(both, planned, contents)
    differing = [
        (each.cell.start, compared.old[each.cell], compared.new[each.cell])
        for each in compared.differences
    ]
    basis = sha256(dumps(differing).encode()).hexdigest()
    return [
        _kept(planned.model, result, STRATEGY, "" if result.passed else basis)
        for result in check(strategy, compared)
    ]


def _of_contract(
    both: _Sides,
    planned: ModelPlan,
    expected: Sequence[Expectation],
    contents: tuple[Cells, Cells],
) -> list[PlanCheck]:
    late = _expected(both, planned)
    appended = IntervalSet.empty()
    if planned.model in both.after.models:
        appended = _appended(both, planned)
    results = contract_results(
        both.op,
        both.workspace.graph.model(planned.model),
        expected,
        (both.environment, both.workspace),
        _judged_contents(both, planned, contents),
        appended=appended,
        explained=late.cells,
    )
    return [
        _kept(planned.model, result, each.decided_by)
        for each, result in zip(expected, results, strict=True)
    ]


def _kept(model: str, result: CheckResult, decided_by: str, basis: str = "") -> PlanCheck:
    return PlanCheck(
        model, result.name, result.passed, result.text, decided_by=decided_by, basis=basis
    )


@dataclass(frozen=True)
class _Sides:
    """What is published, and what would be.

    Attributes:
        op: the plan, and who works on it.
        environment: what is published.
        workspace: what would be.
        within: the cells that are looked at, by model; None for all.
    """

    op: Operation
    environment: RunContext
    workspace: RunContext
    within: CellsByModel | None = None

    @cached_property
    def before(self) -> StateView:
        """What the environment holds, as every check of the plan sees it."""
        return self.environment.view()

    @cached_property
    def after(self) -> StateView:
        """What the workspace holds, as every check of the plan sees it."""
        return self.workspace.view()

    def looked_at(self, name: str, cells: IntervalSet) -> IntervalSet:
        """Give the cells of a model that are looked at."""
        return cells if self.within is None else cells & self.within[name]

    @cached_property
    def edits(self) -> Mapping[str, DeclarationDifference]:
        """How models may differ by the plan's edits, their own and those upstream."""
        run = self.workspace
        return explained(self.op.plan, self.environment.graph, run.graph, run.reads)

    @cached_property
    def restated(self) -> CellsByModel:
        """The cells that the plan's restatements reach."""
        if not self.op.plan.request.restate:
            return CellsByModel()
        return restated_cells(self.op.plan, self.workspace.graph, self.before)

    @cached_property
    def gone(self) -> CellsByModel:
        """The published cells that new lives leave out."""
        graph = self.workspace.graph
        new = [each.model for each in self.op.plan.models if each.build is Build.NEW_VERSION]
        return CellsByModel(
            {name: outside_life(graph.model(name), self.before.ready(name)) for name in new}
        )

    @cached_property
    def moved(self) -> CellsByModel:
        """The cells that would differ without an edit of what computes them, and what reads them: an input had changed, or is gone."""
        graph = self.workspace.graph
        moved = CellsByModel()
        for name in graph.order:
            planned = self.op.plan.model(name)
            if planned is None or not planned.built_apart:
                continue
            model = graph.models[name]
            own = [
                work.cells for work in planned.work if work.why not in (Why.NEW_SNAPSHOT, Why.GAP)
            ]
            if name in self.environment.graph.models:
                stale = self.environment.work(name, self.before).stale_cells
                own.append(stale if planned.build is Build.NEW_VERSION else stale & planned.cells)
            read = cells_reading_any(graph, model, moved | self.gone)
            cells = IntervalSet.union_all([*own, self.restated[name], read])
            moved |= {name: onward(cells, self.after.ready(name)) if model.in_order else cells}
        return moved


def _comparison(
    both: _Sides, model_plan: ModelPlan, contents: tuple[Cells, Cells]
) -> CheckedContents:
    old, new = contents
    built = model_plan.cells | _appended(both, model_plan)
    coverage, planned = None, both.looked_at(model_plan.model, built)
    if model_plan.strategy is Strategy.COLUMN_ENRICHMENT:
        coverage = _coverage(both, model_plan.model, planned)
    expected = _expected(both, model_plan)
    looked = _looked(both, model_plan.model, in_doubt(old, new, expected))
    compared = CheckedContents(old, new, planned, expected, coverage, looked=looked)
    if model_plan.strategy is Strategy.FULL_REBUILD:
        time = shared_time(old, new, expected.cells)
        differ = IntervalSet.of(
            each.cell for each in compared.differences if each.rows or each.columns
        )
        compared_cell_by_cell = IntervalSet.of(old.keys() & new.keys())
        if time & differ or time - compared_cell_by_cell:
            totals = _totals(both, model_plan.model, time)
            return replace(compared, totals=totals)
    return compared


def _contents(both: _Sides, planned: ModelPlan) -> tuple[Cells, Cells]:
    """Read what each cell of a model holds that is published, and what it would hold."""
    name = planned.model
    old, new = (
        run.store.views.content_at_pin(
            run.environment.name, name, both.looked_at(name, view.ready(name))
        )
        for run, view in ((both.environment, both.before), (both.workspace, both.after))
    )
    return comparable(both.op.store, planned, old), new


def _judged_contents(
    both: _Sides, planned: ModelPlan, contents: tuple[Cells, Cells]
) -> tuple[Cells, Cells]:
    """Give what a contract is about: what is published, and what would be.

    In an environment that is not protected a new table has the cells of the requested range alone: no rule is about
    the others. Cells outside of a new life are gone by the plan's edit, and are judged.
    """
    old, new = contents
    if planned.build is not Build.NEW_VERSION or both.op.plan.protected:
        return old, new
    left_out = IntervalSet.of(old) - IntervalSet.of(new) - both.gone[planned.model]
    return {cell: held for cell, held in old.items() if cell not in left_out}, new


def _looked(both: _Sides, name: str, cells: IntervalSet) -> dict[Interval, Group]:
    """Compare the rows of cells whose checksums leave it open what differs."""
    if not cells:
        return {}
    model = both.workspace.graph.model(name)
    sides = published_and_built(model, (both.environment, both.workspace))
    compared = compared_once(both.op, sides, Question(cells=cells)).cells(model)
    nothing = Group((), 0, 0, 0, 0, 0, {})  # a cell without a row on either side
    return {cell: compared.get(cell, nothing) for cell in model.cadence.cells(cells)}


def _totals(
    both: _Sides, name: str, cells: IntervalSet
) -> dict[str, tuple[Decimal | None, Decimal | None]]:
    """Sum every numeric column that both have, over the same cells, before and after."""
    runs = (both.environment, both.workspace)
    types = [
        {column.name: canonical_type(column.dtype) for column in run.graph.model(name).schema}
        for run in runs
    ]
    key = both.workspace.graph.model(name).key
    names = [
        column
        for column, dtype in types[0].items()
        if types[1].get(column) == dtype and column not in key
    ]
    before, after = (_sums(both.op, run, name, names, cells) for run in runs)
    return {
        column: (before.get(column), after.get(column))
        for column in names
        if column in before or column in after
    }


def _sums(
    op: Operation, run: RunContext, name: str, names: Sequence[str], cells: IntervalSet
) -> dict[str, Decimal | None]:
    totals = totals_once(op, run.graph.model(name), published_table(run, name), names, cells)
    return {
        column: total if totals.filled[column] else None
        for column, total in totals.sums.items()
        if total is not None
    }


def _appended(both: _Sides, planned: ModelPlan) -> IntervalSet:
    """Give what was built beside the plan's cells because the environment has published it since.

    Any other cell is a neighbour, also one into which the plan's rows moved.
    """
    state = both.before.models.get(planned.model)
    runs = state.runs if state is not None else ()
    seen_cells = IntervalSet.of(run.interval for run in runs if run.built_at <= both.op.plan.seen)
    return both.after.models[planned.model].own - seen_cells


def _expected(both: _Sides, planned: ModelPlan) -> Expected:
    """What may differ: what edits explain, and anything where an input had changed anyway.

    Rows that only history has, and that a person let the plan drop, are gone on purpose.
    """
    environment = both.environment
    if planned.change is not Change.MODIFIED or planned.model not in environment.graph.models:
        return Expected()
    edit = both.edits[planned.model]
    return Expected(
        rows=edit.rows,
        columns=edit.columns,
        cells=both.moved[planned.model],
        missing=planned.kept_rows is KeptRows.DROP,
    )


def _coverage(both: _Sides, name: str, cells: IntervalSet) -> dict[str, tuple[float, float]]:
    """Count in how many rows of these cells (of all, if none is left to build) new columns have a value."""
    model = both.workspace.graph.model(name)
    old_model = both.environment.graph.models.get(name)
    before = set[str]() if old_model is None else {column.name for column in old_model.schema}
    new = [column.name for column in model.schema if column.name not in before]
    if not new:
        return {}
    table = published_table(both.workspace, name)
    totals = totals_once(both.op, model, table, new, cells or None)
    return {
        name: (count / totals.rows if totals.rows else 1.0, declared_coverage(model, name))
        for name, count in totals.filled.items()
    }


def _check_slice(op: Operation) -> None:
    where = op.plan.request.where
    if where is None:
        return
    restated = {restatement.name for restatement in op.plan.request.restate}
    for planned in op.plan.models:
        if planned.model in restated and planned.built_apart:
            with op.at_work.at(Phase.COMPARING, planned.model):
                _refuse_leak(op, op.workspace().graph.model(planned.model), planned, where)


def _refuse_leak(op: Operation, model: Model, planned: ModelPlan, where: str) -> None:
    environment, workspace = op.environment(), op.workspace()
    cells = planned.cells
    if planned.build is Build.NEW_VERSION:  # others have built cells of it that it publishes, too
        cells |= workspace.view().own(planned.model)
    sides = published_and_built(model, (environment, workspace))
    leaked = outside_once(op, sides, where, cells)
    if leaked.differing:
        first = leaked.sample[0]
        key = ", ".join(f"{name}={value}" for name, value in first.key.items())
        raise SliceLeakError(op.plan_id, planned.model, leaked.differing, f"{first.change} {key}")
