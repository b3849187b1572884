"""Publish: every pointer of a promotion, rollback or undo moves in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.environment import workspace_name
from backfill_assets.snapshots.publication import (
    Intent,
    IntentStatus,
    PointerMove,
    PublicationKind,
    gone_with,
)
from backfill_assets.snapshots.stored_plan import PlanEventKind, PlanStatus
from backfill_assets.state import (
    batch_rows,
    environments,
    heartbeats,
    moves,
    plans,
    pointers,
    promotions,
    ready,
    versions,
)
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.counter import next_number
from backfill_assets.state.cutoffs import publish_cutoffs
from backfill_assets.state.locks import check_lock, release_all
from backfill_assets.state.owed import Mark, mark_copied, mark_owed
from backfill_assets.state.plans import NewEvent
from backfill_assets.state.restamping import (
    outdate_overtaken,
    published,
    read_instead,
    strike_rebuilt,
)
from backfill_assets.state.rows import read_as
from backfill_assets.state.tables import PROMOTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from backfill_assets.snapshots.environment import Environment, Pointer
    from backfill_assets.snapshots.publication import Move, Publication
    from backfill_assets.state.database import Database
    from backfill_assets.state.locks import CommitLock

_STATUS = {
    PublicationKind.PROMOTE: PlanStatus.PROMOTED,
    PublicationKind.ROLLBACK: PlanStatus.ROLLED_BACK,
    PublicationKind.UNDO: PlanStatus.UNDONE,
}
_CARRIED = {
    PublicationKind.PROMOTE: PlanEventKind.APPENDED,
    PublicationKind.UNDO: PlanEventKind.CARRIED_BACK,
}


class PointerMovedError(BackfillAssetsError):
    """Pointers are not where the plan saw them."""

    def __init__(self, plan_id: str, environment: str, models: tuple[str, ...]) -> None:
        self.plan_id, self.environment, self.models = plan_id, environment, models
        super().__init__(
            f"environment '{environment}' reads other versions of {', '.join(models)} than when plan {plan_id} was "
            "made; expected no change since. Nothing was published; run `backfill plan` again"
        )


class PinMovedError(BackfillAssetsError):
    """Another environment has published more in tables whose models a plan moves."""

    def __init__(self, plan_id: str, environment: str, models: tuple[str, ...]) -> None:
        self.plan_id, self.environment, self.models = plan_id, environment, models
        super().__init__(
            f"{', '.join(models)} got more cells by the environment that '{environment}' follows, after "
            f"plan {plan_id} was last looked at. Nothing was published; "
            f"`backfill promote {plan_id}` looks again"
        )


@dataclass(frozen=True, slots=True)
class _Moment:
    """One publication while it happens: what, its number, and when."""

    publication: Publication
    number: int
    now: datetime


class Publications(Aggregate[D]):
    """Promotions, rollbacks and undos: the intent, the steps done so far, the publication itself.

    Each method is one transaction.
    """

    def promotion(self, plan_id: str) -> Intent | None:
        """Read the last intent of a plan, whatever became of it."""
        intents = self.promotions_of(plan_id)
        return intents[-1] if intents else None

    def promotions_of(self, plan_id: str) -> list[Intent]:
        """Read every intent of a plan, whatever became of it, the earliest first."""
        query = sa.select(PROMOTIONS).where(PROMOTIONS.c.plan_id == plan_id)
        return [read_as(Intent, row) for row in self._rows(query.order_by(PROMOTIONS.c.number))]

    def begin_promotion(self: Publications[Database], intent: Intent) -> Intent:
        """Write the intent to publish, before any lock is taken.

        The same plan's intent of the same kind is taken over when its holder went silent, with the
        steps that it had noted; or given back when the holder is the same.

        Returns:
            The intent with its number.

        Raises:
            TableLockedError: another live intent names one of its tables.
            PromotionPendingError: a dead one does: finish that first.
            UnknownVersionError: no such version.
        """
        # A transaction of its own: the next one is rolled back when it refuses.
        self._database.write(
            lambda connection: heartbeats.bring_back(connection, self._clock(), self._lease)
        )
        return self._database.write(
            lambda connection: promotions.begin(connection, intent, self._clock(), self._lease)
        )

    def note_promotion(
        self: Publications[Database], intent: Intent, steps: Mapping[str, Any]
    ) -> None:
        """Note how far a promotion got, for the process that must finish it.

        Raises:
            PromotionTakenOverError: it is closed, or another run's by now.
        """
        self._database.write(
            lambda connection: promotions.note(connection, intent, steps, self._clock())
        )

    def withdraw_promotion(self: Publications[Database], intent: Intent) -> None:
        """Close an intent of which nothing was copied; its run's locks are released.

        Raises:
            PromotionTakenOverError: it is closed, or another run's by now.
        """

        def work(connection: sa.Connection) -> None:
            withdrawn = promotions.withdraw(connection, intent)
            release_all(connection, withdrawn.versions, withdrawn.holder)

        self._database.write(work)

    def let_go_of_promotion(self: Publications[Database], intent: Intent) -> None:
        """Leave an intent that is still open to the next process, and release its run's locks.

        Its run can't finish it, and would keep it for as long as it lives. One that is closed, or another
        run's by now, stays as it is.
        """

        def work(connection: sa.Connection) -> None:
            promotions.let_go(connection, intent)
            release_all(connection, intent.versions, intent.holder)

        self._database.write(work)

    def publish(
        self: Publications[Database], publication: Publication, locks: Iterable[CommitLock] = ()
    ) -> int:
        """Move every pointer of a publication at once: until then no reader sees any of it.

        In the same transaction ready records are restamped (only what really differs from what was
        published has changed), owed marks of what was rebuilt are struck off, the history is
        written, the plan's and the environment's rows say so, a promoted plan's workspace is
        forgotten, the locks are released, the intent is done.

        Args:
            publication: what moves.
            locks: the commit locks that the holder took for it.

        Returns:
            The number of the publication; of the earlier one when it is done already.

        Raises:
            PointerMovedError: a pointer is not where the plan saw it.
            PinMovedError: another environment has published more in a table that this one reads.
            LostLeaseError: a lock was taken over.
            PromotionTakenOverError: the intent is withdrawn, or another run's by now.
            VersionCollectingError: a table is being deleted.
        """
        all_locks = tuple(locks)

        def work(connection: sa.Connection) -> int:
            begun = self._clock()
            number = _publish(connection, publication, all_locks, begun)
            # Very many cells take so long that nothing else could beat meanwhile.
            heartbeats.pass_over(connection, begun, self._clock(), self._lease)
            return number

        return self._database.write(work)


def _publish(
    connection: sa.Connection,
    publication: Publication,
    locks: tuple[CommitLock, ...],
    now: datetime,
) -> int:
    intent = promotions.intent(connection, publication.intent)
    if intent.status is IntentStatus.DONE and intent.published is not None:
        return intent.published
    promotions.check_held(connection, replace(intent, holder=publication.holder))
    for lock in locks:
        check_lock(connection, lock)
    environment = environments.environment(connection, publication.environment)
    before = pointers.pointers(connection, environment.name)
    _check_pointers(publication, before)
    _check_pins(connection, publication, before)
    moment = _Moment(publication, next_number(connection), now)
    made = [
        _move(connection, moment, environment, each, before.get(each.model))
        for each in publication.moves
    ]
    made += [
        _remove(connection, moment, before[model])
        for model in publication.removed
        if model in before
    ]
    for owed in publication.owed:
        mark = Mark(owed.reason, environment=owed.environment or environment.name)
        mark_owed(connection, owed.version, owed.cells, mark)
    _mark_late_readers(connection, publication)
    outdate_overtaken(connection, publication, moment.number)
    moves.save_moves(connection, made)
    _close(connection, moment, intent)
    return moment.number


def _mark_late_readers(connection: sa.Connection, publication: Publication) -> None:
    """Let cells be owed that were computed from what is taken away, and were committed since that was decided."""
    taken = publication.taken
    mark = Mark(gone_with(publication.plan_id), environment=publication.environment)
    for version, head in taken.heads.items():
        records = ready.ready_records(connection, version, None)
        late = [record for record in records if record.valid_from > head]
        inputs = batch_rows.inputs_of(connection, (each.batch_id for each in late))
        read = {
            batch
            for batch, pins in inputs.items()
            if any(pin.upstream in taken.models for pin in pins)
        }
        cells = IntervalSet.of(each.cell for each in late if each.batch_id in read)
        if cells:
            mark_owed(connection, version, cells, mark)


def _check_pointers(publication: Publication, before: Mapping[str, Pointer]) -> None:
    moved = tuple(
        each.model
        for each in publication.moves
        if _version_and_fingerprint(before.get(each.model))
        != (each.old_version, each.old_fingerprint)
    )
    if moved:
        raise PointerMovedError(publication.plan_id, publication.environment, moved)


def _check_pins(
    connection: sa.Connection, publication: Publication, before: Mapping[str, Pointer]
) -> None:
    """Refuse to publish over later commits in other environments' tables: our locks don't cover those."""
    moved = tuple(
        each.model
        for each in publication.moves
        if each.model in before
        and any(
            publication.tables.get(layer.version, layer.delta_version) != layer.delta_version
            and versions.owner(connection, layer.version) != publication.environment
            for layer in before[each.model].layers
        )
    )
    if moved:
        raise PinMovedError(publication.plan_id, publication.environment, moved)


def _version_and_fingerprint(pointer: Pointer | None) -> tuple[str, str]:
    return ("", "") if pointer is None else (pointer.version, pointer.fingerprint)


def _move(
    connection: sa.Connection,
    moment: _Moment,
    environment: Environment,
    move: Move,
    old: Pointer | None,
) -> PointerMove:
    new = replace(move.pointer, environment=environment.name)
    for version in (new.version, *(layer.version for layer in new.under)):
        versions.check_kept(connection, version)
    done = published(connection, replace(move, pointer=new), old, moment.number)
    strike_rebuilt(connection, new, old, done)
    pointers.put_pointer(connection, new, moment.now)
    _update_tables(connection, environment, new, old, moment.now)
    mark = Mark(f"{moment.publication.kind.value} of plan {moment.publication.plan_id}")
    for copy in move.copies:
        if copy.source.version != new.version:
            mark_copied(connection, copy.source.version, done.cells, new.version, environment.name)
    if move.owed:
        mark_owed(connection, new.version, move.owed, replace(mark, environment=environment.name))
    made = _pointer_move(moment, new.model, old, new)
    return replace(made, cells=done.cells, changed=done.changed, stale_before=move.stale_before)


def _update_tables(
    connection: sa.Connection,
    environment: Environment,
    new: Pointer,
    old: Pointer | None,
    now: datetime,
) -> None:
    """Set the new table's head and owner, and keep the old table's pin for others that read it."""
    if new.delta_version > versions.known_head(connection, new.version):
        versions.set_known_head(connection, new.version, new.delta_version)
    if old is not None and old.version == new.version:
        return
    if environment.protected or _is_free(connection, new.version):
        versions.set_owner(connection, new.version, environment.name)
        pointers.follow_again(connection, new, now)
    if old is not None and old.environment == environment.name:
        pointers.keep_live_pin(connection, old, now)


def _is_free(connection: sa.Connection, version: str) -> bool:
    """Whether no environment that people read owns a version."""
    owner = versions.owner(connection, version)
    environment = None if owner is None else environments.find_environment(connection, owner)
    return environment is None or environment.is_workspace


def _remove(connection: sa.Connection, moment: _Moment, old: Pointer) -> PointerMove:
    """Take a pointer away: where the environment follows another one, it reads what that one publishes again."""
    environment = moment.publication.environment
    pointers.remove_pointer(connection, environment, old.model, moment.now)
    if old.environment == environment:
        pointers.keep_live_pin(connection, old, moment.now)
    made = _pointer_move(moment, old.model, old, None)
    followed = pointers.pointer(connection, environment, old.model)
    if followed is None:
        return made
    done = read_instead(connection, old, followed)
    return replace(made, cells=done.cells, changed=done.changed)


def _pointer_move(
    moment: _Moment, model: str, old: Pointer | None, new: Pointer | None
) -> PointerMove:
    publication = moment.publication
    return PointerMove(
        number=moment.number,
        environment=publication.environment,
        model=model,
        plan_id=publication.plan_id,
        kind=publication.kind,
        at=moment.now,
        who=publication.who,
        why=publication.why,
        old=old,
        new=new,
        promised_until=moment.now + publication.promise,
    )


def _close(connection: sa.Connection, moment: _Moment, intent: Intent) -> None:
    """Record the publication with its environment and plan; drop the workspace, intent and locks."""
    publication, status = moment.publication, _STATUS[moment.publication.kind]
    environments.finalize(
        connection, publication.environment, publication.plan_id, publication.removed, moment.now
    )
    if plans.find_plan(connection, publication.plan_id) is not None:
        plans.put_status(connection, publication.plan_id, status, moment.now)
        detail: dict[str, object] = {"environment": publication.environment}
        if publication.approvals:
            detail["approvals"] = publication.approvals
        _tell(connection, moment, PlanEventKind(status.value), **detail)
        if publication.carried:
            _tell(connection, moment, _CARRIED[publication.kind], cells=publication.carried)
    if publication.kind is PublicationKind.PROMOTE:
        publish_cutoffs(connection, publication.plan_id, publication.environment, moment.number)
        environments.forget_environment(connection, workspace_name(publication.plan_id), moment.now)
    promotions.finish(connection, intent, moment.number)
    release_all(connection, intent.versions, publication.holder)


def _tell(
    connection: sa.Connection, moment: _Moment, event: PlanEventKind, **detail: object
) -> None:
    """Add to the plan's history."""
    publication, numbered = moment.publication, {**detail, "number": moment.number}
    told = NewEvent(publication.plan_id, event, publication.who, publication.why, numbered)
    plans.tell(connection, told, moment.now)
