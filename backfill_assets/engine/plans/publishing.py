"""Publish: intent, locks, the decision, evidence, copies, and the one transaction that moves every pointer.

Promotion, rollback and undo are all this. The process that finds an intent whose holder died finishes it: what
it was about to do is noted before the first copy, and a copy that is in a table's log is found there
by its name. Before the transaction no reader sees anything of it.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.rewriting import Rewrite, rewritten
from backfill_assets.engine.batch.table_turn import reconcile, take, take_back
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.engine.project.heartbeat import renewing_claims
from backfill_assets.engine.project.iceberg import describe_moves
from backfill_assets.engine.project.views import rewrite_views
from backfill_assets.engine.review.evidence import write_before_publishing, write_owed_evidence
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.codec import ADDED_LATER, dumps, loads
from backfill_assets.snapshots.environment import Layer, Pointer
from backfill_assets.snapshots.publication import Copy, IntentStatus, Move, Publication, TakenAway
from backfill_assets.snapshots.workspace import OwedCells
from backfill_assets.state.promotions import PromotionPendingError, PromotionTakenOverError
from backfill_assets.state.publications import PinMovedError, PointerMovedError
from backfill_assets.state.versions import UnknownVersionError, VersionCollectingError
from backfill_assets.warehouse.log.delta_log import head

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.snapshots.publication import Intent
    from backfill_assets.state.locks import CommitLock

_NOTED = "prepared"
_ONE_AT_A_TIME = threading.RLock()
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Step:
    """What a publication does to one model.

    Attributes:
        move: its pointer, as it will be; after a rewrite, at the commit that it makes.
        rewrite: cells that enter the pointer's table before; None where the table is as it must be.
    """

    move: Move
    rewrite: Rewrite | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that a publication does, decided under the locks.

    Attributes:
        steps: by model.
        removed: models that the environment does not run any more.
        who: the person or run that asked for it.
        why: in words.
        seen: the counter when it was last looked whether anything was left to do.
        pins: the environment's pins then, by the table that each model was read from.
        tables: the pins then of the tables of what moves, by version, those underneath included.
        owed: cells that stay published, and were computed from cells that the publication takes away.
        taken: where such cells may come between that decision and the publication.
        carried: cells that were carried over or back, as ranges, by model.
        approvals: why each approval does not count, by the SHA-256 of its text; empty where it does.
    """

    steps: tuple[Step, ...]
    removed: tuple[str, ...] = ()
    who: str = ""
    why: str = ""
    seen: int = 0
    pins: Mapping[str, int] = field(default_factory=dict[str, int])
    tables: Mapping[str, int] = field(default_factory=dict[str, int])
    owed: tuple[OwedCells, ...] = ()
    taken: TakenAway = field(default_factory=TakenAway)
    carried: Mapping[str, str] = field(default_factory=dict[str, str])
    approvals: Mapping[str, str] = field(default_factory=dict[str, str], metadata=ADDED_LATER)


def publish(run: RunContext, wanted: Intent, prepare: Callable[[], Prepared]) -> int:
    """Write the intent, take the locks, decide under them what moves, copy, and move it.

    What others left in the tables has been accounted for before, upstream first (`reconcile_tables`).

    Args:
        run: who publishes; its id holds intent and locks.
        wanted: the intent, with every table concerned.
        prepare: called under the locks; what it raises withdraws the intent.

    Returns:
        The number of the publication.

    Raises:
        TableLockedError: a live promotion, or a batch that does not end, is at one of the tables.
        PointerMovedError: a pointer is not where it was believed to be.
        PinMovedError: another environment has published more in a table that this one reads.
        EvidenceNotWrittenError: the evidence of a promotion can't be written.
    """
    with _ONE_AT_A_TIME, renewing_claims(run.store, run.run_id):
        intent = _begun(run, wanted)
        with _left_to_others(run, intent):
            if _NOTED in intent.steps:
                return _carried_out(run, intent, _locked(run, intent))
            try:
                locks = _locked(run, intent)
                for lock in locks.values():
                    reconcile(run, lock)
                steps = {_NOTED: dumps(prepare())}
            except BaseException:
                run.store.publications.withdraw_promotion(intent)
                raise
            run.store.publications.note_promotion(intent, steps)
            return _carried_out(run, replace(intent, steps=steps), locks)


def finish_publication(run: RunContext, plan_id: str) -> None:
    """Finish a publication whose process died; withdraw it if its decision was not stored.

    One that can't be carried out is given up: all is as before, and the process that came across it goes on
    with its own work.
    """
    with _ONE_AT_A_TIME, renewing_claims(run.store, run.run_id):
        begun = run.store.publications.promotion(plan_id)
        if begun is None or begun.status is not IntentStatus.OPEN:
            return
        try:
            intent = run.store.publications.begin_promotion(replace(begun, holder=run.run_id))
        except PromotionTakenOverError:  # another process has finished it meanwhile
            return
        with _left_to_others(run, intent):
            if _NOTED in intent.steps:
                _carried_out_or_given_up(run, intent)
            else:
                run.store.publications.withdraw_promotion(intent)
        if _NOTED in intent.steps:
            write_owed_evidence(run)


@contextmanager
def _left_to_others(run: RunContext, intent: Intent) -> Iterator[None]:
    """Let go of an intent that an error leaves open: the next process finishes it, or this run later."""
    try:
        yield
    except BaseException:
        run.tell(partial(run.store.publications.let_go_of_promotion, intent))
        raise


def _carried_out_or_given_up(run: RunContext, intent: Intent) -> None:
    try:
        _carried_out(run, intent, _locked(run, intent))
    except Exception as error:
        last = run.store.publications.promotion(intent.plan_id)
        if last is None or last.status is not IntentStatus.WITHDRAWN:
            raise
        _log.warning("the publication of plan %s was withdrawn: %s", intent.plan_id, error)


def _begun(run: RunContext, intent: Intent) -> Intent:
    """Write the intent; dead ones of others that name one of its tables are finished first."""
    while True:
        try:
            return run.store.publications.begin_promotion(replace(intent, holder=run.run_id))
        except PromotionPendingError as pending:
            finish_publication(run, pending.plan_id)


def _locked(run: RunContext, intent: Intent) -> dict[str, CommitLock]:
    with run.at_work.at(Phase.PUBLISHING, "waiting for its turn at the tables"):
        return {version: take(run, version, run.run_id) for version in sorted(intent.versions)}


def _carried_out(run: RunContext, intent: Intent, locks: Mapping[str, CommitLock]) -> int:
    prepared: Prepared = loads(intent.steps[_NOTED], _STORED)
    try:
        write_before_publishing(run, intent)
        moves = _all_moved(run, intent, prepared, locks)
    except Exception:  # whatever a copy raises, it would raise for all who come after
        _give_up(run, intent, locks)
        raise
    publication = Publication(
        intent=intent.number,
        holder=run.run_id,
        plan_id=intent.plan_id,
        environment=intent.environment,
        kind=intent.kind,
        moves=moves,
        removed=prepared.removed,
        who=prepared.who,
        why=prepared.why,
        seen=prepared.seen,
        pins=prepared.pins,
        tables=prepared.tables,
        owed=prepared.owed,
        taken=prepared.taken,
        carried=prepared.carried,
        approvals=prepared.approvals,
        promise=timedelta(days=run.project.terms.promise_days),
    )
    describe_moves(run, moves)
    try:
        with run.at_work.at(Phase.RECORDING, "the pointers"):
            number = run.store.publications.publish(publication, locks.values())
    except (PinMovedError, PointerMovedError, UnknownVersionError, VersionCollectingError):
        _give_up(run, intent, locks)
        raise
    rewrite_views(run, intent.environment)
    return number


def _give_up(run: RunContext, intent: Intent, locks: Mapping[str, CommitLock]) -> None:
    """Take back the copies of a publication that can't be carried out, and close its intent.

    Else its tables would stay closed for good.
    """
    for version, lock in locks.items():
        known_head = run.store.versions.known_head(version)
        if known_head >= 0 and head(run.store.versions.version_path(version)) > known_head:
            take_back(run, lock)
    run.store.publications.withdraw_promotion(intent)


def _together(prepared: Prepared) -> Iterator[Step]:
    """Let each copy name every table that the publication copies into."""
    named = tuple(sorted(step.move.pointer.version for step in prepared.steps if step.rewrite))
    for step in prepared.steps:
        copy = step.rewrite
        yield step if copy is None else replace(step, rewrite=replace(copy, together=named))


def _all_moved(
    run: RunContext, intent: Intent, prepared: Prepared, locks: Mapping[str, CommitLock]
) -> tuple[Move, ...]:
    moves: list[Move] = []
    with run.at_work.at(Phase.PUBLISHING, of=len(prepared.steps)) as telling:
        for step in _together(prepared):
            telling.next(step.move.pointer.model)
            moves.append(_moved(run, intent, step, locks))
    return tuple(moves)


def _moved(run: RunContext, intent: Intent, step: Step, locks: Mapping[str, CommitLock]) -> Move:
    """Make a step's copy, if it has one, and let the pointer name its commit."""
    if step.rewrite is None:
        return step.move
    lock = locks[step.move.pointer.version]
    at = rewritten(run, intent, step.move.pointer, step.rewrite, lock)
    return replace(step.move, pointer=replace(step.move.pointer, delta_version=at))


_STORED = (
    Prepared, Step, Rewrite, Move, Copy, Layer, Pointer, OwedCells, TakenAway, IntervalSet,
)  # fmt: skip
