"""`backfill undo`: take back only the cells of a plan."""

from __future__ import annotations

from backfill_assets.cli.asking import Yes  # noqa: TC001 - typer reads it
from backfill_assets.cli.going_back import report_back, taken_back
from backfill_assets.cli.operating import operating
from backfill_assets.cli.options import AsJson, PlanId, Why  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import print_json
from backfill_assets.cli.stored_plans import plan_named
from backfill_assets.engine.plans.plan_verbs import undo_plan
from backfill_assets.intervals.text import counted


def undo(
    plan: PlanId,
    yes: Yes = False,
    reason: Why = "",
    as_json: AsJson = False,
) -> None:
    """Take back only the cells of a plan; days that were written since are kept.

    The undo is refused, with a list, where a later plan has changed the same cells.

    Exit code: 0 when the plan is undone, 1 when that was refused: then nothing was changed.

    Example: backfill undo p1a2b3c4d5 --reason "wrong currency"

    Example: backfill undo p1a2b3c4d5 --yes --json
    """
    with operating() as at:
        named = plan_named(at.store, plan)
        naming = at.naming_of(named)
        cells = sum(naming.count(planned.model, planned.published) for planned in named.models)
        models = counted(named.model_count, "model")
        effect = (
            f"undo plan {named.plan_id}: up to {counted(cells, 'cell')} of {models} in "
            f"{named.environment} get back the data from before the plan"
        )
        result = taken_back(at, named, undo_plan, effect, why=reason, yes=yes)
    if as_json:
        print_json(result)
        return
    report_back(result, "is undone")
