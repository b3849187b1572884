"""Whether a publication has overtaken what a batch read, while it computed or before it was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells import cells_reading
from backfill_assets.snapshots.publication import gone_with
from backfill_assets.state import layers, moves, pointers, ready, snapshots
from backfill_assets.state.opening import VersionMovedError, refuse_done
from backfill_assets.state.owed import Mark, mark_owed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import Content
    from backfill_assets.snapshots.batch import BatchCommit, BatchRequest, OpenBatch
    from backfill_assets.snapshots.publication import PointerMove
    from backfill_assets.snapshots.ready import ReadyRecord


class InputsMovedError(BackfillAssetsError):
    """A publication has overtaken what a batch read."""

    def __init__(self, request: BatchRequest, move: PointerMove) -> None:
        self.batch_id, self.model, self.move = request.batch_id, request.model, move
        super().__init__(
            f"batch {request.batch_id} pinned its inputs before plan {move.plan_id} published "
            f"{move.model} ({move.kind.value}); expected them unchanged until its commit. Nothing "
            "was committed; the next run builds these cells from the data published now"
        )


def check_inputs(connection: sa.Connection, opened: OpenBatch) -> None:
    """Make sure that nothing which a batch read or rewrites was published anew since it was opened.

    A batch of another run may have been silent for so long that its claims lapsed, and have recorded its
    commit all the same, before this one's turn: then the work is done already.

    Raises:
        InputsMovedError: something was.
        VersionMovedError: its environment is gone, or reads another version by now.
        CellsReadyError: another run has done some of its work by now.
    """
    request = opened.request
    for move in _moves_since(connection, request.environment, opened.built_at):
        if _overtakes(request, move):
            raise InputsMovedError(request, move)
    own = pointers.pointer(connection, request.environment, request.model)
    if own is None or own.version != request.version:
        raise VersionMovedError(request, None if own is None else own.version)
    refuse_done(connection, request, own)


def owe_what_read_gone_cells(connection: sa.Connection, commit: BatchCommit, since: int) -> None:
    """Let cells of a commit be owed that were computed from cells which are published no more.

    A publication may have taken them away after the batch was asked the last time, or while its process was
    dead. The commit is in the table's log by then, so it is recorded. What changed and is still there has a
    stamp, and the rule finds it.

    Args:
        connection: to the state.
        commit: what is recorded.
        since: the number after which its inputs may have been taken away.
    """
    read = {pin.upstream for pin in commit.inputs if pin.version}
    by_upstream: dict[str, list[PointerMove]] = {}
    for move in _moves_since(connection, commit.environment, since):
        if move.model in read:
            by_upstream.setdefault(move.model, []).append(move)
    for name, made in by_upstream.items():
        gone = _gone(connection, commit, name, made)
        cells = _reading(connection, commit, made[0], gone) if gone else gone
        if cells:
            mark = Mark(gone_with(made[-1].plan_id), environment=commit.environment)
            mark_owed(connection, commit.version, cells, mark)


def _gone(
    connection: sa.Connection, commit: BatchCommit, name: str, made: list[PointerMove]
) -> IntervalSet:
    """Give the cells of an upstream that a batch may have read, and that are not there as it read them."""
    was: dict[Interval, Content] = {}
    for pin in commit.inputs:
        if pin.upstream == name:
            cells = ready.ready_cells(connection, pin.version, pin.delta_version, pin.cells)
            if not any(map(_moved, made)):
                cells &= IntervalSet.union_all(move.changed for move in made)
            was |= ready.contents(connection, pin.version, pin.delta_version, cells)
    at = pointers.pointer(connection, commit.environment, name)
    now = {} if at is None else layers.records(connection, at, IntervalSet.of(was))
    return IntervalSet.of(
        cell
        for cell, content in was.items()
        if not _is_found_by_the_rule(now.get(cell), content, commit.built_at)
    )


def _is_found_by_the_rule(now: ReadyRecord | None, content: Content, built_at: int) -> bool:
    """Whether a cell that held this content holds it still, or is stamped as changed since."""
    if now is None:
        return False
    stamps = now.changed_at
    return now.content == content or max(stamps.row_set, *stamps.columns.values()) > built_at


def _reading(
    connection: sa.Connection, commit: BatchCommit, move: PointerMove, cells: IntervalSet
) -> IntervalSet:
    """Give the cells of a commit that read some cells of an upstream; all where a model is not known."""
    own = snapshots.model(connection, commit.fingerprint)
    theirs = None if move.old is None else snapshots.model(connection, move.old.fingerprint)
    if own is None or theirs is None:
        return commit.stretches
    reading = (
        cells_reading(own.cadence, upstream, theirs.cadence, cells)
        for upstream in own.reads
        if upstream.name == move.model
    )
    return IntervalSet.union_all(reading) & commit.stretches


def _moves_since(connection: sa.Connection, environment: str, since: int) -> Iterator[PointerMove]:
    for name in pointers.followed(connection, environment):
        yield from moves.moves_in(connection, name, since)


def _overtakes(request: BatchRequest, move: PointerMove) -> bool:
    if move.model == request.model:
        runs = move.new is not None and move.new.fingerprint == request.fingerprint
        return not runs or _moved(move) or bool(move.cells & request.stretches)
    read = request.reads.get(move.model)
    return read is not None and (_moved(move) or bool(move.changed & read))


def _moved(move: PointerMove) -> bool:
    return move.old is None or move.new is None or move.old.version != move.new.version
