"""Write the results of replayed cells, for people and as JSON values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import counted
from backfill_assets.planning.review.replayed import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from backfill_assets.planning.review.replayed import Replayed
    from backfill_assets.render.plan_words import Naming

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class ReplayLine:
    """Cells of one model and batch with one result.

    Attributes:
        first: one of them.
        cells: all.
        rows: how many were published in them, and rebuilt; None where they were not rebuilt.
    """

    first: Replayed
    cells: IntervalSet
    rows: tuple[int, int] | None


def replay_lines(replayed: Iterable[Replayed]) -> tuple[ReplayLine, ...]:
    """Put cells of one model, batch and result together, in the order in which they came."""
    alike: dict[tuple[object, ...], list[Replayed]] = {}
    for cell in replayed:
        key = (cell.model, cell.batch_id, cell.verdict, cell.causes, cell.columns)
        alike.setdefault(key, []).append(cell)
    return tuple(
        ReplayLine(several[0], IntervalSet.of(cell.cell for cell in several), _rows(several))
        for several in alike.values()
    )


def _rows(several: Sequence[Replayed]) -> tuple[int, int] | None:
    counts = [cell.rows for cell in several if cell.rows is not None]
    if len(counts) < len(several):
        return None
    return sum(before for before, _ in counts), sum(after for _, after in counts)


def replay_text(line: ReplayLine, naming: Naming) -> str:
    """Write a line: the cells, the result, and from what they were rebuilt."""
    first = line.first
    head = f"{first.model} {naming.ranges(first.model, line.cells)}: {first.verdict.value}"
    if first.columns:
        head += f" in {', '.join(first.columns)}"
    if line.rows is not None:
        before, after = line.rows
        same = before == after
        head += f", {counted(before, 'row')}" + ("" if same else f" published, {after:,} rebuilt")
    if first.batch_id:
        head += f" (batch {first.batch_id[:_SHOWN]}, snapshot {first.fingerprint[:_SHOWN]}"
        head += f", read {', '.join(first.pins)})" if first.pins else ")"
    return head + (f": {'; '.join(first.causes)}" if first.causes else "")


def replay_summary(replayed: Sequence[Replayed]) -> str:
    """Count the results."""
    counts = Counter(cell.verdict for cell in replayed)
    parts = [f"{counts[verdict]:,} {verdict.value}" for verdict in Verdict if counts[verdict]]
    return f"{counted(len(replayed), 'cell')}: {', '.join(parts) or 'nothing is published there'}."


def replay_json(line: ReplayLine, naming: Naming) -> dict[str, Any]:
    """Give a line as JSON values."""
    first = line.first
    return {
        "model": first.model,
        "cells": naming.all_ranges(first.model, line.cells),
        "result": first.verdict.value,
        "causes": list(first.causes),
        "columns": list(first.columns),
        "rows": None if line.rows is None else {"published": line.rows[0], "rebuilt": line.rows[1]},
        "batch_id": first.batch_id,
        "fingerprint": first.fingerprint,
        "pins": list(first.pins),
    }
