"""What the comparisons of a plan have found: old against new, cell by cell, as the state keeps them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from backfill_assets.evidence.manifest import json_text
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.codec import loads
from backfill_assets.models.number import added
from backfill_assets.planning.change.compared import Group, Measure
from backfill_assets.planning.review.touched import ROWS
from backfill_assets.render.number_changes import exact
from backfill_assets.warehouse.compare.compare import (
    Comparison,
    Difference,
    OutsideRows,
)
from backfill_assets.warehouse.compare.comparison_sql import BY_CELL
from backfill_assets.warehouse.files.cells import cell_of_text
from backfill_assets.warehouse.rows.reading import WrongRows
from backfill_assets.warehouse.rows.totals import Totals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from backfill_assets.engine.review.facts import Facts
    from backfill_assets.planning.review.touched import ChangedModel, Touched
    from backfill_assets.state.store import Store

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shown:
    """A comparison as people ask for it, with some of the rows that differ.

    Attributes:
        comparison: without its SQL, which names where the tables lie today.
        sample: rows that differ.
    """

    comparison: Comparison
    sample: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """The numbers that an evaluation of a consumer has given of one side, by name."""

    numbers: tuple[tuple[str, float], ...]


KEPT = (Comparison, Difference, Group, Measure, Measured, OutsideRows, Shown, Totals, WrongRows)
"""What kept comparisons are made of."""


@dataclass
class ComparedModel:
    """What is known of one model.

    Attributes:
        cells: the last comparison of each cell, by its start as text.
        added: columns that only the new table has.
        removed: columns that only the old one has.
        sample: rows that differ, as a person has asked for them last.
    """

    cells: dict[str, Group] = field(default_factory=dict[str, Group])
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    sample: tuple[Difference, ...] = ()


def compared_models(store: Store, plan_id: str, until: datetime) -> dict[str, ComparedModel]:
    """Gather, by model, what the comparisons of a plan have found until an instant (UTC).

    Those of some rows, or within a tolerance, name no model and are left out; so do those of the release before.
    """
    by_model: dict[str, ComparedModel] = {}
    for text in store.plans.comparisons(plan_id, until):
        kept = loads(text, KEPT)
        comparison = kept.comparison if isinstance(kept, Shown) else kept
        if not isinstance(comparison, Comparison) or not comparison.model:
            continue
        if comparison.by != BY_CELL:
            continue
        of = by_model.setdefault(comparison.model, ComparedModel())
        of.cells.update({str(group.by[0]): group for group in comparison.groups})
        of.added, of.removed = comparison.added, comparison.removed
        if isinstance(kept, Shown):
            of.sample = kept.sample
    return dict(sorted(by_model.items()))


def diff(facts: Facts) -> str:
    """Write old against new: the cells that differ by their checksums, and what was found row by row.

    Column by column there is one number for each cell whose rows were compared.
    """
    differing = facts.differing()
    return json_text(
        {
            "models": [
                {
                    "model": planned.model,
                    "planned": _stretches(facts, planned.model, planned.published),
                    **_differing_cells(facts, planned.model, differing.get(planned.model)),
                    **_compared(facts, planned.model),
                }
                for planned in facts.plan.models
                if planned.published
            ]
        }
    )


def _differing_cells(facts: Facts, model: str, changed: ChangedModel | None) -> Json:
    """Tell where published cells differ by their checksums, and in which columns."""
    cells = IntervalSet.empty() if changed is None else changed.cells
    columns = () if changed is None or changed.columns is None else changed.columns
    return {
        "differ": _stretches(facts, model, cells),
        "differing": facts.named(model, cells),
        "differing_cells": facts.naming.count(model, cells),
        "differing_columns": [name for name in columns if name != ROWS],
    }


def _stretches(facts: Facts, model: str, cells: IntervalSet) -> list[list[str]]:
    """Give cells as instants; none of a model whose one cell is all of time."""
    cadence = facts.noted.cadences.get(model)
    if cadence is None or cadence.unit is Unit.WHOLE:
        return []
    return [[each.start.isoformat(), each.end.isoformat()] for each in cells]


def _compared(facts: Facts, model: str) -> Json:
    compared, cadence = facts.compared.get(model), facts.noted.cadences.get(model)
    if compared is None or cadence is None:
        return {"cells": [], "columns": {}, "sample": []}
    at = sorted(
        ((cell_of_text(cadence, text), group) for text, group in compared.cells.items()),
        key=lambda item: item[0].start,
    )
    groups = [group for _, group in at]
    timed = [] if cadence.unit is Unit.WHOLE else [cell for cell, _ in at]
    return {
        "cells": [cadence.key(cell) for cell, _ in at],
        "starts": [cell.start.isoformat() for cell in timed],
        "ends": [cell.end.isoformat() for cell in timed],
        "old_rows": [group.old_rows for group in groups],
        "new_rows": [group.new_rows for group in groups],
        "keys_added": [group.keys_added for group in groups],
        "keys_removed": [group.keys_removed for group in groups],
        "rows_changed": [group.rows_changed for group in groups],
        "columns_added": list(compared.added),
        "columns_removed": list(compared.removed),
        "columns": {name: _column(groups, name) for name in _differing(compared)},
        "sample": [_row(row) for row in compared.sample],
    }


def _differing(compared: ComparedModel) -> Iterable[str]:
    """Name the columns in which anything differs."""
    names = {name for group in compared.cells.values() for name in group.columns}
    moved = {
        name
        for name in names
        if any(group.columns[name].differs for group in compared.cells.values())
    }
    return sorted(moved | (names & {*compared.added, *compared.removed}))


_NUMBERS: Mapping[str, Callable[[Measure], object]] = {
    "changed": lambda measure: measure.changed,
    "old_filled": lambda measure: measure.old_filled,
    "new_filled": lambda measure: measure.new_filled,
    "old_sum": lambda measure: exact(measure.old_sum),
    "new_sum": lambda measure: exact(measure.new_sum),
}


def _column(groups: Iterable[Group], name: str) -> Json:
    measures = [group.columns[name] for group in groups]
    return {word: [number(measure) for measure in measures] for word, number in _NUMBERS.items()}


def sums_of(facts: Facts, found: Touched) -> dict[str, tuple[str, str]]:
    """Sum up the columns that differ for a consumer, over its cells that were compared: before and after.

    Only numbers that are known in all of these cells are there; empty where nothing was compared.
    """
    of, cadence = facts.compared.get(found.model), facts.noted.cadences.get(found.model)
    if of is None or cadence is None:
        return {}
    groups = [
        group for text, group in of.cells.items() if cell_of_text(cadence, text) in found.cells
    ]
    names = [name for name in _differing(of) if not found.columns or name in found.columns]
    sums = {name: _sums([group.columns[name] for group in groups]) for name in names}
    return {name: pair for name, pair in sums.items() if pair is not None}


def _sums(measures: Sequence[Measure]) -> tuple[str, str] | None:
    before = added(measure.old_sum for measure in measures)
    after = added(measure.new_sum for measure in measures)
    if not measures or before is None or after is None:
        return None
    return f"{before:,f}", f"{after:,f}"


def _row(row: Difference) -> Json:
    values = [
        {name: None if value is None else str(value) for name, value in side.items()}
        for side in (row.key, row.old, row.new)
    ]
    key, old, new = values
    return {"cell": row.cell, "change": row.change, "key": key, "old": old, "new": new}
