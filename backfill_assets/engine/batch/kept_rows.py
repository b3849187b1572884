"""The history of a plan says how many rows that only history has it carried over, or dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.requests import REFRESH
from backfill_assets.snapshots.stored_plan import PlanEventKind
from backfill_assets.warehouse.files.cells import cell_number, number_text
from backfill_assets.warehouse.rows.kept_rows import KeptRowCounts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.snapshots.batch import BatchRequest
    from backfill_assets.snapshots.stored_plan import PlanEvent


@dataclass(frozen=True, slots=True)
class KeptRowsFound:
    """What became of one model's kept rows in a plan.

    Attributes:
        carried: rows that were taken over, by cell.
        dropped: rows that were left out, by cell.
    """

    carried: dict[str, int]
    dropped: dict[str, int]

    @property
    def words(self) -> tuple[str, ...]:
        """Say how many there are and where."""
        both = (
            KeptRowCounts(self.carried, carried=True),
            KeptRowCounts(self.dropped, carried=False),
        )
        return tuple(kept.words for kept in both if kept.counts)


def tell_kept_rows(run: RunContext, request: BatchRequest, kept: KeptRowCounts | None) -> None:
    """Write down what a batch found; of cells that are built again also that there is none any more."""
    if kept is None or request.plan_id is None:
        return
    counts = dict(kept.counts)
    if request.reason == REFRESH:
        cadence = run.graph.model(request.model).cadence
        named = (number_text(cadence, cell_number(cadence, cell)) for cell in request.cells)
        counts = dict.fromkeys(named, 0) | counts
    if counts:
        detail = {"model": request.model, "carried": kept.carried, "cells": counts}
        why = f"{request.model}: {kept.words}"
        run.store.plans.tell(
            request.plan_id, PlanEventKind.KEPT_ROWS, who=request.run_id, why=why, detail=detail
        )


def kept_rows_in(events: Iterable[PlanEvent]) -> dict[str, KeptRowsFound]:
    """Read what became of kept rows, by model: of each cell what was said last."""
    by_model: dict[str, KeptRowsFound] = {}
    for event in events:
        if event.event == PlanEventKind.KEPT_ROWS:
            name = str(event.detail["model"])
            kept_rows = by_model.setdefault(name, KeptRowsFound({}, {}))
            (kept_rows.carried if event.detail["carried"] else kept_rows.dropped).update(
                event.detail["cells"]
            )
    return {
        name: KeptRowsFound(_some(each.carried), _some(each.dropped))
        for name, each in by_model.items()
    }


def _some(counts: dict[str, int]) -> dict[str, int]:
    return {cell: count for cell, count in sorted(counts.items()) if count}
