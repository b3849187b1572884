"""Plans held against what a test expects: the changes, categories and cells alone, or all of it in a file."""

from __future__ import annotations

import os
from datetime import time
from difflib import unified_diff
from typing import TYPE_CHECKING

from backfill_assets.intervals.instants import end_at, start_at
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.plan.plan import Change

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from backfill_assets.planning.plan.plan import ModelPlan, Plan

UPDATE = "UPDATE_GOLDEN_FILES"
"""The variable by which golden files are written again instead of compared, where it is not empty."""


def assert_plan(
    plan: Plan,
    golden_file: Path | None = None,
    *,
    change: Mapping[str, str] | None = None,
    cells: Mapping[str, str | IntervalSet] | None = None,
    categories: Mapping[str, str] | None = None,
) -> None:
    """Hold a plan against what is expected; what is not given is not looked at.

    Args:
        plan: the plan.
        golden_file: a file with its `plan_text`. With the variable `UPDATE_GOLDEN_FILES` it is written.
        change: how each model that changes differs, by its name, such as ``modified``; of no other model.
        cells: which cells are planned by model, and of no other model: ranges of UTC dates with commas
            between them, such as ``2024-03-01..2024-03-04``, both ends included, or sets.
        categories: what each change means, by model, such as ``non-breaking``; of no other model.

    Raises:
        AssertionError: something differs; the message shows expected and found as a difference of texts.
    """
    expected, actual = (
        [*_expected(change, cells, categories)],
        [*_found(plan, change, cells, categories)],
    )
    if golden_file is not None:
        if os.environ.get(UPDATE):
            golden_file.parent.mkdir(parents=True, exist_ok=True)
            golden_file.write_text(plan_text(plan), encoding="utf-8")
        expected += _lines_of(golden_file)
        actual += plan_text(plan).splitlines()
    if expected != actual:
        difference = unified_diff(expected, actual, "expected", "found", lineterm="")
        again = f"\nif that is right, write {golden_file} again: {UPDATE}=1" if golden_file else ""
        raise AssertionError("\n".join(["the plan is another one:", *difference]) + again)


def _lines_of(golden_file: Path) -> list[str]:
    return golden_file.read_text(encoding="utf-8").splitlines() if golden_file.exists() else []


def _expected(
    change: Mapping[str, str] | None,
    cells: Mapping[str, str | IntervalSet] | None,
    categories: Mapping[str, str] | None,
) -> Iterator[str]:
    yield from _listed("change", change)
    yield from _listed("category", categories)
    yield from _listed("cells", cells and {name: _set(text) for name, text in cells.items()})


def _found(plan: Plan, change: object, cells: object, categories: object) -> Iterator[str]:
    changed = [planned for planned in plan.models if planned.change is not Change.UNCHANGED]
    if change is not None:
        yield from _listed("change", {planned.model: planned.change.value for planned in changed})
    if categories is not None:
        by_model = {planned.model: planned.category for planned in plan.models if planned.category}
        yield from _listed(
            "category", {model: category.value for model, category in by_model.items()}
        )
    if cells is not None:
        yield from _listed(
            "cells", {planned.model: planned.cells for planned in plan.models if planned.cells}
        )


def _listed(what: str, entries: Mapping[str, object] | None) -> Iterator[str]:
    for name, value in sorted((entries or {}).items()):
        text = cells_text(value) if isinstance(value, IntervalSet) else value
        yield f"{what} {name}: {text}"


def _set(cells: str | IntervalSet) -> IntervalSet:
    if isinstance(cells, IntervalSet):
        return cells
    return IntervalSet.of(_range(part.strip()) for part in cells.split(","))


def _range(text: str) -> Interval:
    first, _, last = text.partition("..")
    return Interval(start_at(first, "UTC"), end_at(last or first, "UTC"))


def cells_text(cells: IntervalSet) -> str:
    """Write cells as half-open stretches of UTC, without the time where it is midnight."""
    return ", ".join(f"[{_instant(stretch.start)}, {_instant(stretch.end)})" for stretch in cells)


def _instant(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d}" if instant.time() == time() else f"{instant:%Y-%m-%dT%H:%MZ}"


def plan_text(plan: Plan) -> str:
    """Write what a plan does as lines that are the same whenever and by whom it was made.

    Left out are its id, its times, its estimate, and the numbers of tables.
    """
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    yield f"{plan.environment}{' (protected)' if plan.protected else ''}"
    for planned in plan.models:
        yield from _model_lines(planned)
    for name in plan.removed:
        yield f"removed: {name}"
    for reader in plan.untouched:
        yield f"untouched: {reader.model}: {reader.because}"
    for gate in plan.gates:
        yield f"gate: {gate}"
    for note in plan.notes:
        yield f"note: {note}"


def _model_lines(planned: ModelPlan) -> Iterator[str]:
    category = f", {planned.category.value}" if planned.category else ""
    yield f"{planned.model}: {planned.change.value}{category}"
    if planned.category_reason:
        yield f"  because: {planned.category_reason}"
    strategy = f", {planned.strategy.value}" if planned.strategy else ""
    yield f"  build: {planned.build.value}{strategy}"
    for work in planned.work:
        certain = "" if work.certain else ", only if what it reads changes"
        yield f"  cells: {cells_text(work.cells)}: {work.why.value}{certain}"
    if planned.waiting:
        yield f"  waiting: {cells_text(planned.waiting)}"
    if planned.batches:
        yield f"  batches: {len(planned.batches)}"
    for note in planned.notes:
        yield f"  note: {note}"
