"""`backfill why`: explain why a cell is, or is not, in the next work."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.cli.named_model import cells_named, published_model
from backfill_assets.cli.operating import looking
from backfill_assets.cli.options import AsJson, Env  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import print_json, say
from backfill_assets.cli.run_commands import filling_commands, removed_words, restricted
from backfill_assets.engine.batch.unpromoted import unpromoted_columns
from backfill_assets.engine.fill.late_cells import late_work_of, lease_name
from backfill_assets.engine.fill.outstanding import A_PLAN, stale_by_need
from backfill_assets.engine.project.opening import added_by_plans_alone
from backfill_assets.intervals.text import ranges_text
from backfill_assets.planning.rule.explain import Reason, why as explain
from backfill_assets.render.origins import origins
from backfill_assets.render.plan_words import naming_of
from backfill_assets.snapshots.places import located
from backfill_assets.warehouse.log.delta_log import head

if TYPE_CHECKING:
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.planning.rule.late_work import LateWork
    from backfill_assets.snapshots.state_view import StateView

_ROUTINE = ("gap", "refresh")
"""Reasons of batches about which nothing more is known than that they built the cell."""


def why(
    model: Annotated[str, typer.Argument(help="Such as marketing.campaign_performance.")],
    interval: Annotated[
        str, typer.Argument(help="A partition key, or FIRST..LAST: keys or dates, both included.")
    ],
    env: Env = "prod",
    as_json: AsJson = False,
) -> None:
    """Tell why cells are, or are not, in the next work.

    The reason is followed upstream. The word after the cells is the branch of the rule: gap, waits, running, upstream changed,
    ready, not required; or removed, of a model that is not declared any more. For ready cells it shows the batch, its plan, who promoted the plan, and whether the cells hold an
    older definition than the current definition.

    For a source without a table, the path is shown; of an edit that is not promoted, the columns that only it has.

    Example: backfill why commerce.fact_orders 2018-10-03

    Example: backfill why web.sessions 2025-05-01..2025-05-31
    """
    with looking() as at:
        run = at.run(env)
        if model not in run.graph.models:
            run = at.published(env)
        cadence = published_model(run, model).cadence
        cells = cells_named(cadence, interval)
        view, naming = run.view(), naming_of(run.graph)
        built = origins(run.store.reading(), naming, view, model, cells)
        if model in run.removed:
            words = removed_words(run, model)
            reasons = [Reason(0, model, ranges_text(cadence, cells), "removed", words)]
            gaps = dict[str, list[str]]()
        else:
            runs = run.pointer(run.graph.model(model)).fingerprint
            built = [
                origin
                for origin in built
                if origin.plan_id or origin.fingerprint != runs or origin.reason not in _ROUTINE
            ]
            reasons, gaps = _by_rule(run, view, model, cells)
    if as_json:
        print_json(
            [*map(asdict, reasons), *({**asdict(origin), "branch": "origin"} for origin in built)]
        )
        return
    for reason in reasons:
        indent = "  " * reason.depth
        line = f"{indent}{reason.model} {reason.cells}: {reason.branch}: {reason.text}"
        say(line, indent=len(indent) + 4)
    for origin in built:
        say(f"{model} {origin.cells}: {origin.text}", indent=4)
    if gaps:
        say(f"Next: {', then '.join(restricted(gaps))}")


def _by_rule(
    run: RunContext, view: StateView, model: str, cells: IntervalSet
) -> tuple[list[Reason], dict[str, list[str]]]:
    """Give the reasons that the rule gives, and the commands that fill what can be filled."""
    explained = [
        _with_sources(run, reason)
        for reason in explain(
            run.graph,
            view,
            model,
            cells.span(),
            now=run.clock(),
            reads=run.reads,
            heals=partial(_without_plan, run, late_work_of(run)),
        )
    ]
    gaps = filling_commands(
        run, sorted({reason.model for reason in explained if reason.branch == "gap"})
    )
    return [_with_edits(run, reason) for reason in explained], gaps


def _without_plan(
    run: RunContext, late: LateWork, model: str, stale: IntervalSet
) -> dict[str, IntervalSet]:
    """Give the stale cells of a model that need no plan of a person, by what they wait for, in words."""
    lease = run.store.locks.lease(lease_name(run.environment.name))
    by_need = stale_by_need(run, late, model, stale, lease)
    return {f"they {whom}": cells for whom, cells in by_need.items() if whom != A_PLAN}


def _with_sources(run: RunContext, reason: Reason) -> Reason:
    """Say of a gap which source has no table: the rule looks at what is recorded, not at tables."""
    if reason.branch != "gap":
        return reason
    paths = {
        upstream.name: located(run.graph.sources[upstream.name].path, run.data_root)
        for upstream in run.graph.model(reason.model).reads
        if upstream.name in run.graph.sources
    }
    absent = [
        f"source {name} has no table at {path}" for name, path in paths.items() if head(path) < 0
    ]
    if not absent:
        return reason
    return replace(reason, branch="waits", text=f"required and not ready; {', '.join(absent)}")


def _with_edits(run: RunContext, reason: Reason) -> Reason:
    """Say of a gap why no run can build it: columns that it reads of an edit which is not promoted, or a table that only a plan takes over."""
    if reason.branch != "gap":
        return reason
    lacking = unpromoted_columns(run, run.graph.model(reason.model))
    if not lacking and added_by_plans_alone(run, [reason.model]):
        text = "required and not ready; only a plan can add it"
        return replace(reason, branch="waits", text=text)
    if not lacking:
        return reason
    named = ", ".join(
        f"it reads {', '.join(columns)} of an edit of {name} that is not promoted"
        for name, columns in lacking.items()
    )
    return replace(reason, branch="waits", text=f"required and not ready; {named}")
