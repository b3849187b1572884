"""`backfill rollback`: return an environment to the data from before a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli.asking import Yes  # noqa: TC001 - typer reads it
from backfill_assets.cli.going_back import report_back, taken_back
from backfill_assets.cli.operating import operating
from backfill_assets.cli.options import AsJson, Why  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import print_json
from backfill_assets.cli.stored_plans import plan_named
from backfill_assets.engine.plans.plan_verbs import rollback_plan
from backfill_assets.engine.plans.rollback_checks import promoted_after
from backfill_assets.errors import RequestError
from backfill_assets.intervals.text import counted

if TYPE_CHECKING:
    from backfill_assets.planning.plan.plan import Plan


def rollback(
    plan: Annotated[str | None, typer.Argument(help="The plan to take back.")] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="PLAN", help="Take back every plan that was promoted after this plan."
        ),
    ] = None,
    yes: Yes = False,
    reason: Why = "",
    as_json: AsJson = False,
) -> None:
    """Return an environment to the data that it read before a plan was promoted.

    To another table it is a pointer move; within a table the old rows are committed again. Cells that were built on the withdrawn data
    become stale, and days that were published since are filled anew, with the old logic. If the promised time has passed, a plan
    that restates the cells is named instead.

    Exit code: 0 when the plan is rolled back, 1 when that was refused: then nothing was changed.

    Example: backfill rollback p1a2b3c4d5 --reason "wrong currency"

    Example: backfill rollback --to p1a2b3c4d5 --yes
    """
    if (plan is None) == (to is None):
        raise RequestError(
            found="rollback needs one plan: the plan to take back, or with --to the plan to return to",
            do="give `backfill rollback PLAN` or `backfill rollback --to PLAN`",
        )
    with operating() as at:
        named = plan_named(at.store, to or plan or "")
        plans = promoted_after(at.store, named) if to else (named,)
        results: list[dict[str, Any]] = []
        try:
            for each in plans:
                effect = _effect(each)
                results.append(taken_back(at, each, rollback_plan, effect, why=reason, yes=yes))
        finally:  # where a later plan is refused, the earlier ones are rolled back all the same
            _report(results, as_json=as_json)


def _report(results: list[dict[str, Any]], *, as_json: bool) -> None:
    if not results:
        return
    if as_json:
        print_json(results)
        return
    for rolled_back in results:
        report_back(rolled_back, "is rolled back")


def _effect(plan: Plan) -> str:
    models = counted(plan.model_count, "model")
    return f"roll back plan {plan.plan_id}: {plan.environment} reads {models} as before it"
