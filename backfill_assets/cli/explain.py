"""`backfill explain`: why a published number changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli.exits import FAILED
from backfill_assets.cli.options import AsJson, Env  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import counted, print_json, say
from backfill_assets.cli.plan_view import naming_of
from backfill_assets.cli.project import looked_at
from backfill_assets.cli.selecting import model_named
from backfill_assets.cli.why import cells_asked
from backfill_assets.engine.review.cell_numbers import ROWS
from backfill_assets.engine.review.explaining import explain_number
from backfill_assets.errors import RequestError
from backfill_assets.intervals.instants import end_at, start_at
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.render.number_changes import (
    exact,
    number_text,
    part_json,
    part_texts,
    plans_told,
)
from backfill_assets.render.plan_words import instant_text

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.engine.review.explaining import ExplainedNumber
    from backfill_assets.models.model import Model
    from backfill_assets.render.plan_words import Naming


def explain(
    model: Annotated[str, typer.Argument(help="Such as marketing.campaign_performance.")],
    cell: Annotated[
        str, typer.Argument(help="A partition key, or FIRST..LAST: keys or dates, both included.")
    ],
    column: Annotated[str, typer.Argument(help="Whose sum is explained; '*' for the row count.")],
    between: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="T1 T2",
            help="Two dates, both included, or instants; from the first publication until now unless given.",
        ),
    ] = None,
    env: Env = "prod",
    as_json: AsJson = False,
) -> None:
    """Tell why a published number changed: which publications made the difference, and why.

    The number is the exact sum of a column over the cells as they were published at two moments. Every
    publication in between that changed it is a part, with its plan and what made it differ: logic, late
    rows of a source, an upstream model, a rollback. The parts sum exactly to the difference; causes that
    the records can't tell apart are named together. Where a version is collected, the parts around it are
    one.

    Exit code: 0; 1 if the number can't be read any more at one of the two moments.

    Example: backfill explain marketing.roi_analysis 2024-03-04 revenue

    Example: backfill explain commerce.revenue_monthly 2019-03-01 revenue --between 2026-11-01 2026-11-30 --json
    """
    with looked_at(env) as run:
        declared = model_named(run.graph, model)
        cells = IntervalSet.of([cells_asked(declared.cadence, cell)])
        moments = _moments(declared, between)
        found = explain_number(run, declared, cells, column, moments)
        naming, told = naming_of(run.graph), plans_told(run.store.reading(), found.steps)
    number = "rows" if column == ROWS else f"sum of {column}"
    asked = f"{model} {naming.ranges(model, cells)}: {number} in {env}"
    if as_json:
        print_json(
            {
                "model": model,
                "cells": naming.ranges(model, cells, limit=1000),
                "column": column,
                "environment": env,
                **_json(found, moments, naming, told, model),
            }
        )
    else:
        _print(asked, found, moments, naming, told, model)
    if found.explained.difference is None:
        raise typer.Exit(FAILED)


def _moments(
    model: Model, between: tuple[str, str] | None
) -> tuple[datetime | None, datetime | None]:
    """Read the two moments: of a date, where its day begins, or ends, in the model's zone.

    Raises:
        InstantFormatError: one is neither a date nor an instant.
        RequestError: the second one is not after the first.
    """
    if between is None:
        return None, None
    first, last = start_at(between[0], model.cadence.tz), end_at(between[1], model.cadence.tz)
    if last <= first:
        raise RequestError(
            found=f"--between {between[0]} {between[1]}: the second moment is not after the first",
            do="give the earlier one first",
        )
    return first, last


def _json(
    found: ExplainedNumber,
    moments: tuple[datetime | None, datetime | None],
    naming: Naming,
    told: dict[str, str],
    model: str,
) -> dict[str, Any]:
    explained = found.explained
    ends = zip(moments, (explained.before, explained.after), found.is_published, strict=True)
    before, after = (
        {
            "at": moment.isoformat() if moment else None,
            "number": exact(number),
            "published": published,
        }
        for moment, number, published in ends
    )
    return {
        "before": before,
        "after": after,
        "difference": exact(explained.difference),
        "parts": [part_json(part, found.steps, told, naming, model) for part in explained.parts],
        "equal": explained.equal,
        "unread": {why: naming.ranges(model, cells, 1000) for why, cells in found.unread.items()},
    }


def _print(
    asked: str,
    found: ExplainedNumber,
    moments: tuple[datetime | None, datetime | None],
    naming: Naming,
    told: dict[str, str],
    model: str,
) -> None:
    explained = found.explained
    say(asked)
    shown = [number_text(part.difference, signed=True) for part in explained.parts]
    ends = [number_text(number) for number in (explained.before, explained.after)]
    width = max(map(len, (*shown, *ends)))
    say(f"{ends[0]:>{width}}  {_moment(moments[0], 'before it was published')}")
    for text, part in zip(shown, explained.parts, strict=True):
        for at, line in enumerate(part_texts(part, found.steps, told, naming, model)):
            say(f"{text if at == 0 else 'with':>{width}}  {line}", indent=width + 2)
    say(f"{ends[1]:>{width}}  {_moment(moments[1], 'now')}")
    for why, cells in found.unread.items():
        say(f"{model} {naming.ranges(model, cells)} can't be read as it once was: {why}", indent=2)
    if explained.equal:
        say(f"{counted(explained.equal, 'publication')} more left the number as it was.")
    say(_summary(found, model))


def _moment(moment: datetime | None, otherwise: str) -> str:
    return instant_text(moment) if moment else otherwise


def _summary(found: ExplainedNumber, model: str) -> str:
    explained = found.explained
    if not any(found.is_published):
        return f"{model}: not published at either moment."
    difference = number_text(explained.difference, signed=True)
    if explained.difference is None:
        return f"{model}: the difference {difference}; the parts that can are above."
    parts = counted(len(explained.parts), "part")
    return f"{model}: {difference} in {parts}, which sum to it exactly."
