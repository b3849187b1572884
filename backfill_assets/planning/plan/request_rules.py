"""Refuse requests that contradict themselves, or that would blank what is published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from backfill_assets.errors import RequestError
from backfill_assets.intervals.instants import start_at
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.column import AUDIT_COLUMNS, CELL_COLUMN
from backfill_assets.models.graph import close_to
from backfill_assets.planning.plan.request import Category, Strategy
from backfill_assets.planning.plan.windows import in_the_future

_LONGEST = 3650
"""For how many days a dual run can be asked."""

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.planning.plan.plan import ModelPlan
    from backfill_assets.planning.plan.request import PlanRequest
    from backfill_assets.snapshots.state_view import StateView


_OF_MANY_ROWS = (exp.AggFunc, exp.Any, exp.Window, exp.UDTF, exp.Explode)
_ALSO_OF_MANY_ROWS = {"every", "some", "try_avg", "try_sum"}
"""Aggregates of Spark that sqlglot does not know."""

_FIRST = "Pacific/Kiritimati"
"""The zone in which a date begins first: a date that has not begun there lies in the future of every model."""


def check_request(request: PlanRequest, now: datetime) -> None:
    """Refuse a request that contradicts itself.

    Raises:
        RequestError: two wishes exclude each other, or one needs another.
        RequestError: its condition on rows is none, or is about several rows.
        RequestError: a cutoff or an effective date lies in the future.
    """
    for contradiction, do in _impossible(request):
        raise RequestError(found=contradiction, do=do)
    if request.where is not None and not is_condition(request.where):
        problem = f"--where {request.where!r} is not one SQL condition"
        raise RequestError(
            found=problem, do="write one, such as \"country = 'DE'\", without comments"
        )
    if request.where is not None and _is_about_many_rows(request.where):
        problem = (
            f"--where {request.where!r} is about several rows at once, and is asked of each row"
        )
        raise RequestError(
            found=problem, do="write it without aggregates, windows and generators of rows"
        )
    for what, when in (("cutoff", request.cutoff), ("effective date", request.effective_from)):
        if when is not None and start_at(when, _FIRST) > now:
            raise in_the_future(what, when, now)


def refuse_idle_cutoff(request: PlanRequest, models: Iterable[ModelPlan]) -> None:
    """Refuse a cutoff that keeps no cell out of a restatement: the cells before it would be restated all the same.

    Raises:
        RequestError: no edit of the plan changes history, and no cutoff that is in force begins then or later.
    """
    if not request.restate or request.cutoff is None:
        return
    asked = start_at(request.cutoff, _FIRST)
    in_force = (model.kept_before.since for model in models if model.kept_before)
    if all(start_at(since, _FIRST) < asked for since in in_force):
        raise RequestError(
            found=f"--cutoff {request.cutoff} keeps older cells under their old definition, but no definition of "
            "what the plan restates has changed, and no cutoff of a model that is in force begins then or later",
            do=f"to restate no older cells, name the first one: --restate MODEL:{request.cutoff}..",
        )


def refuse_blank_history(graph: Graph, view: StateView, models: Iterable[ModelPlan]) -> None:
    """Refuse to record cells as empty that the environment publishes, its own or those it follows.

    Raises:
        RequestError: some are.
    """
    for planned in models:
        blank = planned.certain & view.ready(planned.model)
        if blank:
            cadence = graph.model(planned.model).cadence
            raise RequestError(
                found=f"--empty would blank {cadence.count(blank)} published cells of "
                f"'{planned.model}': {ranges_text(cadence, blank)}",
                do="It is for cells that were never published: leave these out (--select; --start "
                "and --end, where no new table must hold them). To keep their old rows under a "
                "changed model use --forward-only, or --cutoff DATE --reason TEXT, instead of "
                "--empty",
            )


def is_condition(text: str) -> bool:
    """Whether a text is one condition, so that it stays inside of brackets around it."""
    try:
        (parsed,) = sqlglot.parse(text, read="spark")
        return (
            isinstance(parsed, exp.Condition)
            and not any(node.comments for node in parsed.walk())
            and not parsed.find(exp.Query, exp.Placeholder)
        )
    except (SqlglotError, ValueError):
        return False


def _is_about_many_rows(condition: str) -> bool:
    """Whether Spark can't answer a condition for a row by itself."""
    parsed = sqlglot.parse_one(condition, read="spark")
    return any(not _is_like_any(node) for node in parsed.find_all(*_OF_MANY_ROWS)) or any(
        node.name.lower() in _ALSO_OF_MANY_ROWS for node in parsed.find_all(exp.Anonymous)
    )


def _is_like_any(node: exp.Expr) -> bool:
    """Whether it is the list of patterns in `LIKE ANY`, not the aggregate of that name."""
    return isinstance(node.parent, (exp.Like, exp.ILike)) and node.arg_key == "expression"


def refuse_unknown_columns(where: str, model: Model) -> None:
    """Refuse a condition on columns that a model's table does not have.

    Raises:
        RequestError: it names such a column.
    """
    condition = sqlglot.parse_one(where, read="spark")
    if condition.find(exp.Lambda):  # its parameters are no columns
        return
    names = [column.name for column in model.schema]
    names += [CELL_COLUMN, *(AUDIT_COLUMNS if model.audit_columns else ())]
    lower_names = {name.lower() for name in names}
    for column in condition.find_all(exp.Column):
        name = column.parts[0].name  # of a field: the column that holds it
        if name.lower() not in lower_names:
            problem = f"--where {where!r} names '{name}', which is no column of '{model.name}'"
            raise RequestError(found=problem, do=close_to(name, names))


def _impossible(request: PlanRequest) -> list[tuple[str, str]]:
    forward = request.forward_only or any(
        category is Category.FORWARD_ONLY for _, category in request.categories
    )
    rules = (
        (
            request.where is not None and not request.restate,
            "--where narrows a restatement, and nothing is restated",
            "add --restate MODEL",
        ),
        (
            request.restate_all_snapshots and not request.restate,
            "--restate-all-snapshots widens a restatement, and nothing is restated",
            "add --restate MODEL",
        ),
        (
            request.effective_from is not None and not forward,
            "--effective-from says from when a forward-only change counts",
            "add --forward-only, or use --cutoff DATE --reason TEXT",
        ),
        (
            request.cutoff is not None and not request.reason.strip(),
            "--cutoff keeps older cells under the old definition for good",
            "say why with --reason",
        ),
        (
            request.cutoff is not None and request.forward_only,
            "--cutoff and --forward-only both say from when a change counts",
            "use one of them (--forward-only --effective-from DATE)",
        ),
        (
            request.empty and bool(request.restate),
            "--empty records cells without computing them, and --restate computes them again",
            "use one of them",
        ),
    )
    return [
        (contradiction, do)
        for is_so, contradiction, do in (*rules, *_of_dual_run(request))
        if is_so
    ]


def _of_dual_run(request: PlanRequest) -> tuple[tuple[bool, str, str], ...]:
    """Say what of a dual run can't be, whether it was asked for, and what to do instead."""
    return (
        (
            not 0 <= request.dual_run_days <= _LONGEST,
            f"--dual-run {request.dual_run_days} is no number of days",
            f"give 0 to {_LONGEST}",
        ),
        (
            request.dual_run_days > 0
            and Strategy.DUAL_RUN not in {strategy for _, strategy in request.strategies},
            "--dual-run says for how many days two histories are filled, and no model has that strategy",
            "add --strategy MODEL=dual-run",
        ),
        (
            request.dual_run_days > 0 and request.pause_schedules,
            "--dual-run fills both histories, and --pause-schedules lets the published one wait",
            "use one of them",
        ),
    )
