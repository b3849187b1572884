"""Find the origin of a published cell: its batch and code, its plan, and who promoted it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.intervals.instants import minute_text
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.plan.plan_json import PlanFormatError, read_plan
from backfill_assets.render.plan_words import reason_text
from backfill_assets.snapshots.batch import EMPTY
from backfill_assets.snapshots.publication import PublicationKind
from backfill_assets.state.plans import UnknownPlanError

if TYPE_CHECKING:
    from backfill_assets.render.plan_words import Naming
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.snapshots.state_view import StateView
    from backfill_assets.state.batch_rows import BatchRow
    from backfill_assets.state.store import StateReader

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class CellOrigin:
    """Where some ready cells come from.

    Attributes:
        cells: keys of the cells, as ranges.
        batch_id: the batch that built them.
        plan_id: the plan that it served; None for a gap fill.
        fingerprint: the snapshot that it ran; empty when the batch is not known.
        reason: why it ran; empty likewise.
        text: the origin in words.
    """

    cells: str
    batch_id: str
    plan_id: str | None
    fingerprint: str
    reason: str
    text: str


def origins(
    store: StateReader, naming: Naming, view: StateView, model: str, cells: IntervalSet
) -> tuple[CellOrigin, ...]:
    """Find the origins of the ready ones of these cells, batch by batch.

    Args:
        store: the state.
        naming: how cells are named.
        view: of the environment that is asked about.
        model: whose cells.
        cells: whole cells.
    """
    state = view.models.get(model)
    parts: dict[str, IntervalSet] = {}
    for run in state.runs if state else ():
        part = cells & IntervalSet.of([run.interval])
        if part:
            parts[run.batch_id] = parts.get(run.batch_id, IntervalSet.empty()) | part
    return tuple(
        _origin(store, state.pointer, batch_id, part, naming.ranges(model, part))
        for batch_id, part in parts.items()
        if state
    )


def _origin(
    store: StateReader, pointer: Pointer, batch_id: str, part: IntervalSet, cells: str
) -> CellOrigin:
    row = store.batches.find(batch_id)
    if row is None:
        text = f"batch {batch_id}, which is recorded only in the table's log"
        return CellOrigin(cells, batch_id, None, "", "", text)
    built, let_in = _built(row, _reason(store, row)), _let_in(store, row, pointer, part)
    text = f"{built}{let_in}{_definition(store, row, pointer)}"
    return CellOrigin(cells, batch_id, row.plan_id, row.fingerprint, row.reason, text)


def _reason(store: StateReader, row: BatchRow) -> str:
    """Say why a batch ran; of a plan's batch, from the plan, since its workspace sees only gaps."""
    if row.plan_id is None:
        return row.reason
    try:
        planned = read_plan(store.plans.get(row.plan_id).content).model(row.model)
    except (UnknownPlanError, PlanFormatError):
        return row.reason
    reasons = (
        [reason_text(part) for part in planned.work if part.cells & row.stretches]
        if planned
        else []
    )
    return "; ".join(dict.fromkeys(reasons)) or row.reason


def _built(row: BatchRow, reason: str) -> str:
    by = f" by plan {row.plan_id}" if row.plan_id else f" by run {row.run_id}"
    short = row.batch_id[:_SHOWN]
    if row.reason == EMPTY:
        return f"recorded as empty{by}, not computed (batch {short})"
    return f"built{by} ({reason}; batch {short})"


def _let_in(store: StateReader, row: BatchRow, pointer: Pointer, cells: IntervalSet) -> str:
    """Say why there was a plan, and who promoted it, or the plan that took its cells over, in the environment."""
    if row.plan_id is None:
        return ""
    try:
        stored, events = store.plans.get(row.plan_id), store.plans.events(row.plan_id)
    except UnknownPlanError:
        return ", which is no longer in the state"
    why = f": {stored.reason}" if stored.reason else ""
    moves = [
        move
        for move in store.history.moves_of(row.plan_id)
        if (move.model, move.environment) == (row.model, pointer.environment)
    ]
    if moves:
        who = next((move.who for move in reversed(moves) if move.who), stored.created_by)
        return f"{why}; promoted by {who} on {minute_text(moves[-1].at)}"
    where = f" in {stored.environment}" if stored.environment != pointer.environment else ""
    ended = f"; {events[-1].event}{where} by {events[-1].who}" if events else ""
    return f"{why}{ended}{_taken_over(store, row, pointer, cells)}"


def _taken_over(store: StateReader, row: BatchRow, pointer: Pointer, cells: IntervalSet) -> str:
    """Name the plan that published what another plan has built; nothing where none did."""
    moves = (
        move
        for move in reversed(store.history.moves_in(pointer.environment))
        if move.kind is PublicationKind.PROMOTE and move.model == row.model and move.cells & cells
    )
    if (move := next(moves, None)) is None:
        return ""
    why = f" ({move.why})" if move.why else ""
    return f"; taken over by plan {move.plan_id}{why}, promoted by {move.who} on {minute_text(move.at)}"


def _definition(store: StateReader, row: BatchRow, pointer: Pointer) -> str:
    """Note that the cell holds an older definition than the current definition, and since which plan."""
    if row.fingerprint == pointer.fingerprint:
        return ""
    moved = [
        move for move in store.history.moves_in(pointer.environment) if move.model == row.model
    ]
    since = next(
        (
            move
            for move in reversed(moved)
            if move.new and move.redefines and move.new.fingerprint == pointer.fingerprint
        ),
        None,
    )
    by = f", which plan {since.plan_id} brought" if since else ""
    why = f" ({since.why})" if since and since.why else ""
    return (
        f"; by the definition {row.fingerprint[:_SHOWN]}, older than the definition that "
        f"{pointer.environment} runs now{by}{why}"
    )
