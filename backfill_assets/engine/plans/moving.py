"""Move the pointers of a plan, forward or back: the one way in which its stages publish."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.plans.lost_cells import owed_without
from backfill_assets.engine.plans.publishing import publish
from backfill_assets.engine.plans.taken_over import owed_with
from backfill_assets.errors import PassingError, RequestError
from backfill_assets.snapshots.publication import Intent
from backfill_assets.state.publications import PinMovedError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.plans.publishing import Prepared
    from backfill_assets.snapshots.publication import PublicationKind
    from backfill_assets.snapshots.state_view import StateView


class ConcurrentPublicationError(RequestError, PassingError):
    """The environment has published more cells while the locks were taken, or another run of the plan has built some."""

    def __init__(self, plan_id: str, environment: str) -> None:
        super().__init__(
            found=f"'{environment}' published more cells, or another run built cells of plan {plan_id}, while "
            "this one took its locks; nothing of the plan was published",
            do="Run the same command again",
        )


def move_pointers(
    op: Operation,
    kind: PublicationKind,
    versions: Collection[str],
    decide: Callable[[StateView], Prepared],
) -> int:
    """Publish in one transaction over all models of a plan, and give the publication's number.

    Args:
        op: the plan, and who publishes.
        kind: forward or back.
        versions: every table concerned.
        decide: called under the locks with the environment's state: it looks again, and decides what
            moves.

    Raises:
        ConcurrentPublicationError: more was published meanwhile.
        TableLockedError: a live promotion, or a batch that does not end, is at one of the tables.
        PointerMovedError: a pointer is not where it was believed to be.
    """
    intent = Intent(
        plan_id=op.plan_id,
        environment=op.plan.environment,
        kind=kind,
        holder=op.run_id,
        versions=tuple(sorted(versions)),
    )

    def prepare() -> Prepared:
        view = op.store.views.of(op.plan.environment)
        read = [state.pointer for state in view.models.values()]
        pins = {at.version: at.delta_version for at in read}
        decided = decide(view)
        owed, taken = owed_without(op, view, decided)
        return replace(
            decided,
            who=op.who,
            why=op.why,
            seen=view.counter,
            pins=pins,
            owed=(*owed, *owed_with(op, decided)),
            taken=taken,
        )

    try:
        return publish(op.environment(), intent, prepare)
    except PinMovedError as error:
        raise ConcurrentPublicationError(op.plan_id, op.plan.environment) from error
