"""`backfill stop`: take a plan out of the queue; its committed batches are kept."""

from __future__ import annotations

from typing import Annotated

import typer

from backfill_assets.cli.controlling import controlled
from backfill_assets.cli.options import AsJson, PlanId, Why  # noqa: TC001 - typer reads them
from backfill_assets.snapshots.queued_plan import Control


def stop(
    plan: PlanId,
    now: Annotated[
        bool, typer.Option("--now", help="Also cancel the Spark jobs of running batches.")
    ] = False,
    reason: Why = "",
    as_json: AsJson = False,
) -> None:
    """Stop a plan and take it out of the queue; cells already built are kept.

    Running batches end normally; with `--now` their Spark jobs are cancelled and nothing of them is committed. A plan that was stopped
    may still be stopped `--now`. Afterwards it can be resumed, or abandoned with `backfill abandon`.

    Exit code: 0 when the plan is stopped, 1 when it was stopped already, or is promoted or abandoned.

    Example: backfill stop p1a2b3c4d5

    Example: backfill stop p1a2b3c4d5 --now --reason "wrong currency"
    """
    changed = controlled(plan, Control.CANCELLED if now else Control.STOPPED, reason)
    name = changed.plan.plan_id
    work = f"{changed.going_on} {'being cancelled' if now else 'to their end'}"
    text = f"stopped, {work if changed.at_work else changed.going_on}; cells already built are kept"
    changed.tell(text, then=f"resume {name}, or backfill abandon {name}", as_json=as_json)
