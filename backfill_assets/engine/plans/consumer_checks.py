"""The checks that consumers have declared, run on what a plan would publish for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.batch.batch_inputs import published_table
from backfill_assets.engine.batch.failures import sentence
from backfill_assets.engine.plans.comparing import wrong_once
from backfill_assets.engine.plans.evaluations import evaluations
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.snapshots.plan_check import CONSUMER, PlanCheck

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.models.consumer import CheckQuery, Consumer


class ConsumerCheckError(BackfillAssetsError):
    """What a plan would publish fails a check of a consumer."""

    def __init__(self, plan_id: str, failed: Sequence[PlanCheck]) -> None:
        self.plan_id, self.failed = plan_id, tuple(failed)
        listed = "; ".join(f"{check.check}: {check.text}" for check in failed)
        first = failed[0]
        super().__init__(
            f"plan {plan_id} fails checks of consumers, nothing was published: {listed}. Correct the model and "
            f"plan again, or explain it: `backfill accept {plan_id} {first.model} '{first.check}' --reason TEXT`"
        )


def consumer_checks(op: Operation) -> list[PlanCheck]:
    """Run every check and evaluation that reads a model which the plan moves.

    Checks run on the whole models as they would be read. A query that Spark refuses fails its check: the text says why.
    """
    moved = {planned.model for planned in op.plan.models if planned.moves} | {*op.plan.removed}
    asked = [
        (consumer, check)
        for consumer in op.project.loaded.graph.consumers.values()
        for check in consumer.checks
        if op.plan.protected and moved & check.query.tables()
    ]
    checked = list(_results(op, asked, moved)) if asked else []
    return [*checked, *evaluations(op, moved)]


def _results(
    op: Operation, asked: Sequence[tuple[Consumer, CheckQuery]], moved: set[str]
) -> Iterator[PlanCheck]:
    with op.at_work.at(Phase.CHECKING, "what consumers have declared", of=len(asked)) as step:
        for consumer, check in asked:
            name = f"{consumer.name}: {check.name}"
            step.next(name)
            passed, text = _result(op, check)
            model = min(moved & check.query.tables())
            yield PlanCheck(model, name, passed, text, decided_by=CONSUMER)


def _result(op: Operation, check: CheckQuery) -> tuple[bool, str]:
    run = op.workspace()
    view, names = run.view(), check.query.tables()
    lacking = sorted(name for name in names if name not in view.models)
    if lacking:
        return False, f"nothing of {', '.join(lacking)} would be published"
    tables = {name: (run.graph.model(name), published_table(run, name)) for name in names}
    try:
        found = wrong_once(op, check.query, tables)
    except BackfillAssetsError:
        raise
    except Exception as error:  # noqa: BLE001 - what Spark says of a person's query
        return False, sentence(error)
    if not found.count:
        return True, "no row is wrong"
    rows = "row is" if found.count == 1 else "rows are"
    return False, f"{found.count:,} {rows} wrong, such as {found.first}"
