"""Whether the way back is open: what a plan has published, which plans came after it, and what is kept."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NoReturn

from backfill_assets.engine.review.way_back import command_to_build_anew
from backfill_assets.errors import RequestError
from backfill_assets.intervals.instants import minute_text
from backfill_assets.intervals.text import ranges_text
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.snapshots.publication import PublicationKind
from backfill_assets.snapshots.stored_plan import PlanEventKind, PlanStatus
from backfill_assets.state.versions import UnknownVersionError
from backfill_assets.warehouse.log.delta_log import head

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.snapshots.publication import PointerMove
    from backfill_assets.state.store import Store


def nothing_to_take_back(plan_id: str, status: PlanStatus) -> RequestError:
    """Refuse to take back a plan that is not published."""
    return RequestError(
        found=f"plan {plan_id} is {status.value}",
        do="Only a promoted plan can be rolled back or undone",
    )


def moves_to_take_back(op: Operation, kind: PublicationKind) -> list[PointerMove]:
    """Read what a plan's promotion has moved, if the way back is still open.

    A publication of the plan whose process died was finished before (`plan_verbs`).

    Raises:
        RequestError: the plan is not promoted.
        RequestError: its environment was dropped since.
        RequestError: a later plan has touched the same.
        RequestError: what was published before is not kept any more.
    """
    status = op.store.plans.get(op.plan_id).status
    moves = op.store.history.promoting_moves(op.plan_id)
    if status is not PlanStatus.PROMOTED or not moves:
        raise nothing_to_take_back(op.plan_id, status)
    _refuse_dropped(op.store, op.plan)
    refuse_after_promise(op, moves)
    for move in moves:
        if move.old is not None and not _is_kept(op, move.old):
            refuse_expired(op, moves, f"the old table of {move.model} was deleted")
    refuse_later(op, moves, cells_only=kind is PublicationKind.UNDO)
    return moves


def _refuse_dropped(store: Store, plan: Plan) -> None:
    """Refuse where the environment that a plan has changed is gone, also if another one has its name."""
    for event in store.plans.events(plan.plan_id):
        if event.event == PlanEventKind.DROPPED:
            raise RequestError(
                found=f"environment '{plan.environment}' was dropped at {minute_text(event.at)}, and with it "
                f"what plan {plan.plan_id} had published there. Nothing was changed",
                do="Make a new plan for what should be built",
            )


def refuse_after_promise(op: Operation, moves: Sequence[PointerMove]) -> None:
    """Refuse once the old cells are promised no more: a collection may be deleting them.

    Raises:
        RequestError: the promise has run out.
    """
    until = moves[0].open_until(timedelta(days=op.project.terms.promise_days))
    if until < op.clock():
        days = (until - moves[0].at).days
        refuse_expired(op, moves, f"it was promoted more than {days} days ago")


def _is_kept(op: Operation, old: Pointer) -> bool:
    try:
        return head(op.store.versions.version_path(old.version)) >= old.delta_version
    except UnknownVersionError:
        return False


def refuse_expired(op: Operation, moves: Sequence[PointerMove], why: str) -> NoReturn:
    """Refuse, and say which plan does it instead.

    Raises:
        RequestError: in any case.
    """
    command = command_to_build_anew(op.plan.environment, moves)
    raise RequestError(
        found=f"plan {op.plan_id} can't be taken back any more: {why}. Nothing was changed",
        do=f"build the old data again with `{command}`",
    )


def refuse_later(op: Operation, moves: Sequence[PointerMove], *, cells_only: bool) -> None:
    """Refuse when later plans, that are not taken back themselves, have touched the same."""
    mine, later = {move.model: move for move in moves}, dict[str, dict[str, str]]()
    for move in op.store.history.moves_in(op.plan.environment, moves[0].number):
        own = mine.get(move.model)
        if own is None or move.plan_id == op.plan_id or _is_taken_back(op, move.plan_id):
            continue
        same_table = _version(own.old) == _version(own.new) == _version(move.new)
        touched = own.cells & move.cells
        if touched or not (cells_only and same_table):
            model = op.environment().graph.models.get(move.model)
            cells = ranges_text(model.cadence, touched) if model and touched else "its table"
            later.setdefault(move.plan_id, {})[move.model] = cells
    if later:
        listed = "; ".join(
            f"{later_id}: {', '.join(f'{model} {cells}' for model, cells in touched.items())}"
            for later_id, touched in later.items()
        )
        raise RequestError(
            found=f"plan {op.plan_id} can't be taken back, later plans have changed the same cells or models: "
            f"{listed}. Nothing was changed",
            do="Take back those plans first",
        )


def _is_taken_back(op: Operation, plan_id: str) -> bool:
    return op.store.plans.get(plan_id).status in (PlanStatus.ROLLED_BACK, PlanStatus.UNDONE)


def _version(pointer: object) -> str:
    return getattr(pointer, "version", "")


def promoted_after(store: Store, last: Plan) -> tuple[Plan, ...]:
    """Find the plans of an environment that were promoted after one and are not taken back, the latest first.

    Raises:
        RequestError: there is none, or the plan itself was never promoted.
        RequestError: the environment was dropped since.
    """
    _refuse_dropped(store, last)
    own = [move.number for move in store.history.promoting_moves(last.plan_id)]
    after = store.history.moves_in(last.environment, max(own, default=0))
    ids = dict.fromkeys(move.plan_id for move in reversed(after))
    kept = [store.plans.get(plan_id) for plan_id in ids if plan_id != last.plan_id]
    plans = [read_plan(plan.content) for plan in kept if plan.status is PlanStatus.PROMOTED]
    if not own or not plans:
        raise RequestError(
            found=f"nothing was promoted in {last.environment} after plan {last.plan_id}: "
            "there is nothing to roll back",
            do=f"`backfill rollback {last.plan_id}` takes that plan itself back",
        )
    return tuple(plans)
