"""The checks that consumers have declared, run on what a plan would publish for them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.batch_inputs import published_table
from backfill_assets.engine.plans.comparing import wrong_once
from backfill_assets.engine.plans.evaluations import run_evaluation
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.errors import BackfillAssetsError, one_line
from backfill_assets.snapshots.plan_check import CONSUMER, PlanCheck

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.models.consumer import CheckQuery


class ConsumerCheckError(BackfillAssetsError):
    """What a plan would publish fails a check of a consumer."""

    def __init__(self, plan_id: str, failed: Sequence[PlanCheck]) -> None:
        self.plan_id, self.failed = plan_id, tuple(failed)
        listed = "; ".join(f"{check.check}: {check.text}" for check in failed)
        first = failed[0]
        super().__init__(
            f"plan {plan_id} fails checks of consumers, nothing was published: {listed}. Correct the model and "
            f"plan again, or explain it: `backfill accept {plan_id} {first.model} {shlex.quote(first.check)} --reason TEXT`"
        )


@dataclass(frozen=True, slots=True)
class _CheckToRun:
    """A check or an evaluation: its consumer's and its own name, the models that it reads, and how it is run."""

    name: str
    models: frozenset[str]
    run: Callable[[], tuple[bool, str]]


def consumer_checks(op: Operation) -> list[PlanCheck]:
    """Run every check and evaluation that reads a model which the plan moves.

    Checks run on the whole models as they would be read. A query that Spark refuses fails its check: the text says why.
    """
    if not op.plan.protected:
        return []
    moved = {planned.model for planned in op.plan.models if planned.moves} | {*op.plan.removed}
    consumers = op.project.loaded.graph.consumers.values()
    checks = (
        _CheckToRun(f"{each.name}: {check.name}", check.query.tables(), partial(_result, op, check))
        for each in consumers
        for check in each.checks
    )
    evaluations = (
        _CheckToRun(
            f"{each.name}: {evaluation.name}",
            frozenset(reading.model for reading in each.reads),
            partial(run_evaluation, op, each, evaluation),
        )
        for each in consumers
        for evaluation in each.evaluations
    )
    return [
        *_results(op, "what consumers have declared", checks, moved),
        *_results(op, "what consumers evaluate", evaluations, moved),
    ]


def _results(
    op: Operation, what: str, checks: Iterable[_CheckToRun], moved: set[str]
) -> Iterator[PlanCheck]:
    due_checks = [each for each in checks if moved & each.models]
    if not due_checks:
        return
    with op.at_work.at(Phase.CHECKING, what, of=len(due_checks)) as step:
        for each in due_checks:
            step.next(each.name)
            passed, text = each.run()
            model = min(moved & each.models)
            yield PlanCheck(model, each.name, passed, text, decided_by=CONSUMER)


def _result(op: Operation, check: CheckQuery) -> tuple[bool, str]:
    run = op.workspace()
    view, names = run.view(), check.query.tables()
    lacking = sorted(name for name in names if name not in view.models)
    if lacking:
        return False, f"{', '.join(lacking)} would not be published"
    tables = {name: (run.graph.model(name), published_table(run, name)) for name in names}
    try:
        wrong_rows = wrong_once(op, check.query, tables)
    except BackfillAssetsError:
        raise
    except Exception as error:  # noqa: BLE001 - what Spark says of a person's query
        return False, one_line(error)
    if not wrong_rows.count:
        return True, "no row is wrong"
    rows = "row is" if wrong_rows.count == 1 else "rows are"
    return False, f"{wrong_rows.count:,} {rows} wrong, such as {wrong_rows.first}"
