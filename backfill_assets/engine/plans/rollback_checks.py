"""Whether the way back is open: what a plan has published, which plans came after it, and what is kept."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NoReturn

from backfill_assets.engine.review.way_back import how_to_build_anew
from backfill_assets.errors import RequestError
from backfill_assets.intervals.instants import minute_text
from backfill_assets.intervals.text import counted, ranges_text
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.snapshots.publication import PublicationKind
from backfill_assets.snapshots.stored_plan import PlanStatus, dropped_at
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


def filled_only(plan_id: str) -> RequestError:
    """Refuse what asks for the way back of a plan that moved no pointer."""
    return RequestError(
        found=f"plan {plan_id} has only filled gaps: no way back takes that away, or leads to what was read "
        "after it. Nothing was changed",
        do="`backfill plan --restate MODEL:FIRST..LAST` builds cells that are wrong again",
    )


def moves_to_take_back(op: Operation, kind: PublicationKind) -> list[PointerMove]:
    """Read what a plan's promotion has moved, if the way back is still open.

    A publication of the plan whose process died was finished before (`plan_verbs`).

    Raises:
        RequestError: the plan is not promoted, or has only filled gaps.
        RequestError: its environment was dropped since.
        RequestError: others have changed the same since.
        RequestError: what was published before is not kept any more.
    """
    status = op.store.plans.get(op.plan_id).status
    moves = op.store.history.promoting_moves(op.plan_id)
    if status is not PlanStatus.PROMOTED:
        raise nothing_to_take_back(op.plan_id, status)
    if not moves:
        raise filled_only(op.plan_id)
    _refuse_dropped(op.store, op.plan)
    refuse_after_promise(op, moves)
    for move in moves:
        if move.old is not None and not _is_kept(op, move.old):
            refuse_expired(op, moves, f"the old table of {move.model} was deleted")
    refuse_later(op, moves, cells_only=kind is PublicationKind.UNDO)
    return moves


def _refuse_dropped(store: Store, plan: Plan) -> None:
    """Refuse where the environment that a plan has changed is gone, also if another one has its name."""
    dropped = dropped_at(store.plans.events(plan.plan_id))
    if dropped is not None:
        raise RequestError(
            found=f"environment '{plan.environment}' was dropped at {minute_text(dropped)}, and with it "
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
        refuse_expired(op, moves, f"it was promoted more than {counted(days, 'day')} ago")


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
    raise RequestError(
        found=f"plan {op.plan_id} can't be taken back any more: {why}. Nothing was changed",
        do=how_to_build_anew(op.plan.environment, moves),
    )


def refuse_later(op: Operation, moves: Sequence[PointerMove], *, cells_only: bool) -> None:
    """Refuse where the way back would also take away what another plan has changed since.

    All of a model goes back in a rollback, so that nothing else may have moved it since. In an undo the
    plan's cells go back, and its table and definition where it has changed them: no other plan may
    have changed the same of these.
    """
    mine, since = {move.model: move for move in moves}, dict[str, list[str]]()
    standing = _standing_moves(op.store, op.plan.environment, moves[0].number)
    for move in standing:
        own = mine.get(move.model)
        if own is not None and (what := _both_changed(op, own, move, cells_only=cells_only)):
            since.setdefault(move.plan_id, []).append(f"{move.model} {what}")
    if not since:
        return
    listed = "; ".join(f"{plan_id}: {', '.join(changed)}" for plan_id, changed in since.items())
    verb = "undo" if cells_only else "rollback"
    first = ", ".join(f"`backfill {verb} {plan_id}`" for plan_id in reversed(since))
    by_ways_back = any(move.is_way_back for move in standing if move.plan_id in since)
    raise RequestError(
        found=f"plan {op.plan_id} can't be taken back, others have changed the same cells or models since: "
        f"{listed}. Nothing was changed",
        do=f"`backfill undo {op.plan_id}` takes its cells alone back, and keeps what the way back of an "
        "earlier plan has changed"
        if by_ways_back
        else f"Take back those plans first: {first}",
    )


def _both_changed(op: Operation, own: PointerMove, later: PointerMove, *, cells_only: bool) -> str:
    """Say what of a model the later one has changed too, where it would go with a way back; else nothing."""
    cells, in_place = own.cells & later.cells, own.in_place and later.in_place
    model = op.environment().graph.models.get(own.model) if cells else None
    if model is not None:
        return ranges_text(model.cadence, cells)
    if in_place and own.redefines and later.redefines:
        return "its definition"
    return "its table" if cells or not (cells_only and in_place) else ""


def _standing_moves(store: Store, environment: str, after: int) -> list[PointerMove]:
    """Read what an environment's publications have changed after a number of the counter, the newest last.

    A plan that was promoted and taken back since changed nothing. The way back of one that was promoted
    before did: it took away what was there then.
    """
    moves = store.history.moves_in(environment, after)
    back = {move.plan_id for move in moves if move.is_way_back}
    nothing = back & {move.plan_id for move in moves if not move.is_way_back}
    return [move for move in moves if move.plan_id not in nothing]


def promoted_after(store: Store, last: Plan) -> tuple[Plan, ...]:
    """Find the plans whose way back leaves an environment as it was after one plan, the latest first.

    Raises:
        RequestError: the plan itself is not promoted, or has only filled gaps, or nothing was promoted after it.
        RequestError: a plan that was promoted before it was taken back since.
        RequestError: the environment was dropped since.
    """
    _refuse_dropped(store, last)
    status, own = store.plans.get(last.plan_id).status, store.history.promoting_moves(last.plan_id)
    if status is not PlanStatus.PROMOTED:
        raise RequestError(
            found=f"plan {last.plan_id} is {status.value}, so no way back leads to what {last.environment} "
            "was after it. Nothing was changed",
            do="Name a plan that is promoted",
        )
    if not own:
        raise filled_only(last.plan_id)
    after = _standing_moves(store, last.environment, own[0].number)
    ids = dict.fromkeys(move.plan_id for move in reversed(after) if not move.is_way_back)
    if not ids:
        raise RequestError(
            found=f"nothing was promoted in {last.environment} after plan {last.plan_id}: "
            "there is nothing to roll back",
            do=f"`backfill rollback {last.plan_id}` takes that plan itself back",
        )
    if gone := dict.fromkeys(move.plan_id for move in after if move.is_way_back):
        raise RequestError(
            found=f"what {last.environment} was after plan {last.plan_id} is not there any more: {', '.join(gone)}, "
            "promoted before it, went since. Nothing was changed",
            do=f"Take back one by one what came after it: {', '.join(ids)}",
        )
    return tuple(read_plan(store.plans.get(plan_id).content) for plan_id in ids)
