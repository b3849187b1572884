"""Whether a publication has overtaken what a batch read, while it computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.state import moves, pointers
from backfill_assets.state.opening import VersionMovedError, refuse_done

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sqlalchemy as sa

    from backfill_assets.snapshots.batch import BatchRequest, OpenBatch
    from backfill_assets.snapshots.publication import PointerMove


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
    for move in _moves_since(connection, opened):
        if _overtakes(request, move):
            raise InputsMovedError(request, move)
    own = pointers.pointer(connection, request.environment, request.model)
    if own is None or own.version != request.version:
        raise VersionMovedError(request, None if own is None else own.version)
    refuse_done(connection, request, own)


def _moves_since(connection: sa.Connection, opened: OpenBatch) -> Iterator[PointerMove]:
    for name in pointers.followed(connection, opened.request.environment):
        yield from moves.moves_in(connection, name, opened.built_at)


def _overtakes(request: BatchRequest, move: PointerMove) -> bool:
    if move.model == request.model:
        runs = move.new is not None and move.new.fingerprint == request.fingerprint
        return not runs or _moved(move) or bool(move.cells & request.stretches)
    read = request.reads.get(move.model)
    return read is not None and (_moved(move) or bool(move.changed & read))


def _moved(move: PointerMove) -> bool:
    return move.old is None or move.new is None or move.old.version != move.new.version
