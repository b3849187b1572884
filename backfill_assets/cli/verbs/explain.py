"""`backfill explain`: why a published number changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli.exits import FAILED
from backfill_assets.cli.named_model import cells_named, model_named
from backfill_assets.cli.operating import looking
from backfill_assets.cli.options import AsJson, Env  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import print_json, say
from backfill_assets.engine.review.cell_numbers import ROWS
from backfill_assets.engine.review.explaining import explain_number
from backfill_assets.errors import RequestError
from backfill_assets.intervals.instants import end_at, minute_text, start_at
from backfill_assets.intervals.text import counted
from backfill_assets.render.number_changes import (
    exact,
    number_text,
    part_json,
    part_texts,
    plans_told,
)
from backfill_assets.render.plan_words import naming_of

if TYPE_CHECKING:
    from datetime import datetime
    from decimal import Decimal

    from backfill_assets.engine.review.explaining import ExplainedNumber
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.model import Model
    from backfill_assets.render.plan_words import Naming


def explain(
    model: Annotated[str, typer.Argument(help="Such as marketing.campaign_performance.")],
    cell: Annotated[
        str, typer.Argument(help="A partition key, or FIRST..LAST: keys or dates, both included.")
    ],
    column: Annotated[
        str, typer.Argument(help="Column whose sum is explained; '*' for the row count.")
    ],
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
    the records can't tell apart are named together. Where a version was deleted by `backfill gc`, the parts around it are
    a single part.

    Exit code: 0; 1 if the number can no longer be read at one of the two moments.

    Example: backfill explain marketing.roi_analysis 2024-03-04 cost

    Example: backfill explain commerce.revenue_monthly 2019-03-01 revenue --between 2026-11-01 2026-11-30 --json
    """
    with looking() as at:
        run = at.published(env)
        snapshots, models = run.store.snapshots, run.graph.models
        declared = models.get(model) or snapshots.last_model(model) or model_named(run.graph, model)
        cells = cells_named(declared.cadence, cell)
        moments = _moments(declared, between, run.clock())
        explanation = explain_number(run, declared, cells, column, moments)
        naming, plan_texts = (
            naming_of(run.graph, snapshots.last_cadence),
            plans_told(run.store.reading(), explanation.steps),
        )
    answer = _Answer(model, cells, column, env, moments, explanation, naming, plan_texts)
    if as_json:
        print_json(answer.as_json())
    else:
        answer.show()
    if explanation.explained.difference is None:
        raise typer.Exit(FAILED)


def _moments(
    model: Model, between: tuple[str, str] | None, now: datetime
) -> tuple[datetime | None, datetime | None]:
    """Read the two moments; without them, the first publication and now, each given as None.

    In the model's zone, the first date means the start of its day, the second date the end, or now if that day is
    not over.

    Raises:
        InstantFormatError: one is neither a date nor an instant.
        RequestError: the second one is not after the first, or the first one lies in the future.
    """
    if between is None:
        return None, None
    first, last = start_at(between[0], model.cadence.tz), end_at(between[1], model.cadence.tz)
    if last <= first:
        raise RequestError(
            found=f"--between {between[0]} {between[1]}: the second moment is not after the first",
            do="give the earlier one first",
        )
    if first > now:
        raise RequestError(
            found=f"--between {between[0]} {between[1]}: the first moment lies in the future",
            do="give a moment in the past",
        )
    return first, last if last <= now else None


@dataclass(frozen=True, slots=True)
class _Answer:
    """The question, what was found, and how it is named."""

    model: str
    cells: IntervalSet
    column: str
    environment: str
    moments: tuple[datetime | None, datetime | None]
    found: ExplainedNumber
    naming: Naming
    told: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        """Give it as JSON values; numbers are text, since they are exact."""
        explained, steps = self.found.explained, self.found.steps
        before, after = (
            {
                "at": moment,
                "number": exact(number),
                "published": published,
            }
            for moment, number, published in zip(
                self.moments, self._numbers, self.found.is_published, strict=True
            )
        )
        return {
            "model": self.model,
            "cells": self.naming.all_ranges(self.model, self.cells),
            "column": self.column,
            "environment": self.environment,
            "before": before,
            "after": after,
            "difference": exact(explained.difference),
            "parts": [
                part_json(part, steps, self.told, self.naming, self.model)
                for part in explained.parts
            ],
            "equal": explained.equal,
            "unread": {
                why: self.naming.all_ranges(self.model, cells)
                for why, cells in self.found.unread.items()
            },
        }

    def show(self) -> None:
        """Print the number at both moments, and between them the parts of its difference."""
        explained = self.found.explained
        number = "rows" if self.column == ROWS else f"sum of {self.column}"
        named = self.naming.ranges(self.model, self.cells)
        say(f"{self.model} {named}: {number} in {self.environment}")
        first, last = map(number_text, self._numbers)
        shown = [number_text(part.difference, signed=True) for part in explained.parts]
        width = max(map(len, (first, last, *shown)))
        say(f"{first:>{width}}  {_moment(self.moments[0], 'before it was published')}")
        for text, part in zip(shown, explained.parts, strict=True):
            where = "" if part.cells == self.cells else self.naming.ranges(self.model, part.cells)
            lines = part_texts(part, self.found.steps, self.told, self.naming, where)
            for at, line in enumerate(lines):
                say(f"{'with' if at else text:>{width}}  {line}", indent=width + 2)
        say(f"{last:>{width}}  {_moment(self.moments[1], 'now')}")
        for why, cells in self.found.unread.items():
            say(
                f"earlier versions of {self.naming.ranges(self.model, cells)} can no longer be read: {why}",
                indent=2,
            )
        if explained.equal:
            more = counted(explained.equal, "more publication")
            say(f"{more} built it again and did not change the number.")
        say(self._summary())

    def _summary(self) -> str:
        explained = self.found.explained
        if not any(self.found.is_published):
            return f"{self.model}: not published at either moment."
        if explained.difference is None:
            return f"{self.model}: the number at one of the two moments can no longer be read."
        difference = number_text(explained.difference, signed=True)
        return f"{self.model}: {difference} in {counted(len(explained.parts), 'part')}, which sum to it exactly."

    @property
    def _numbers(self) -> tuple[Decimal | None, Decimal | None]:
        return self.found.explained.before, self.found.explained.after


def _moment(moment: datetime | None, otherwise: str) -> str:
    return minute_text(moment) if moment else otherwise
