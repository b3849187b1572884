"""A process that dies at any effect that a verb has on the state and on the tables, and what holds then.

Nothing of a dead process reaches anything afterwards, not even its clean-up. Its claims, locks and intents stay until
the lease is over; then the next verb finds them.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.engine.dying import Killed
from backfill_assets_tests.faults.effects import Effects
from backfill_assets_tests.histories import adopting, launching, promises, queueing, verbs
from backfill_assets_tests.histories.checks import ChangedError, differ_only
from backfill_assets_tests.state.building import open_promotions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from backfill_assets_tests.histories.history import History

MORTAL = (
    verbs.fill,
    verbs.fill_in_dev,
    verbs.refresh,
    verbs.apply,
    verbs.promote,
    verbs.roll_back,
    verbs.roll_back_in_dev,
    verbs.roll_back_to,
    verbs.undo,
    verbs.undo_in_dev,
    verbs.abandon,
    promises.collect_rest,
    verbs.whole_plan,
    verbs.plan_for_dev,
    verbs.drop_dev,
    verbs.take_from_dev_to_prod,
    queueing.queue,
    queueing.serve_queue,
    adopting.adopt_a_table,
    launching.launch_by_hand,
)
"""The verbs whose process may die."""

_PUBLISH_AT_ONCE = (
    verbs.promote,
    verbs.roll_back,
    verbs.undo,
    verbs.abandon,
    promises.collect_rest,
)
"""Those that change what prod publishes as a whole or not at all."""

_ENDED = (PlanStatus.PROMOTED, PlanStatus.ROLLED_BACK, PlanStatus.UNDONE)
_LAST_MOMENT = 250


@dataclass
class Death:
    """What a process has before it dies.

    Attributes:
        left: how many moments of its effects it still lives through.
        at: the moment at which it has died; empty while it lives.
    """

    left: int
    at: str = ""

    def met(self, name: str, number: int, when: str) -> None:
        """Live through a moment, or die there.

        Raises:
            Killed: the process is dead.
        """
        self.left -= 1
        if self.left < 0:
            self.at = self.at or f"{when} {name} {number}"
            raise Killed


def any_moment(random: Random) -> int:
    """Choose a moment; early ones are as likely as late ones, of which verbs have any number."""
    return int(_LAST_MOMENT ** random.random())


def dying(history: History, verb: Callable[[History], None], moment: int) -> bool:
    """Let the process of a verb die at a moment, and its lease end. Tell whether it got there.

    The same command is then given again, or anything else comes next.
    """
    before, ended, state = history.contents(), _ended(history), history.random.getstate()
    death = Death(moment)
    try:
        with _one_batch_at_once(history), Effects(death.met).watching():
            verb(history)
    except Killed:
        history.say(f"  its process dies {death.at}")
    else:
        return False
    after, new = history.contents(), _ended(history) - ended
    if verb in _PUBLISH_AT_ONCE and not new:
        late = (
            promises.recorded_late(history, before, after) if verb is promises.collect_rest else {}
        )
        differ_only(before.cells, after.cells, late, f"the death {death.at}")
    if verb is verbs.promote:
        for plan_id, _ in new:
            history.note_promoted(plan_id, before, after)
    note_promoted(history)
    history.world.clock.pass_lease()
    if history.random.random() < 0.5:
        history.random.setstate(state)
        history.say("the same again")
        with finishing(history):
            verb(history)
    return True


@contextmanager
def finishing(history: History) -> Iterator[None]:
    """Let a verb first finish what dead publications have begun: then others than its own cells may change."""
    begun, known = _begun(history), set(history.promoted)
    try:
        yield
    except ChangedError:
        if begun <= _begun(history):
            raise
    finally:
        if finished := begun - _begun(history):
            history.say(f"  the publications of {', '.join(finished)} are finished")
            note_promoted(history)
            for plan_id in history.promoted.keys() - known:
                del history.promoted[plan_id]


def note_promoted(history: History) -> None:
    """Note what plans have kept that nothing else was noted of."""
    for plan in history.plans_for(PROD, PlanStatus.PROMOTED):
        verbs.note_kept(history, plan.environment, plan)


def _begun(history: History) -> set[str]:
    return {one.plan_id for one in open_promotions(history.world.store)}


def _ended(history: History) -> set[tuple[str, PlanStatus]]:
    stored = history.world.store.plans.latest()
    return {(one.plan_id, one.status) for one in stored if one.status in _ENDED}


@contextmanager
def _one_batch_at_once(history: History) -> Iterator[None]:
    """Let batches come one after the other, so that a moment is the same one each time."""
    usual, history.world.batches_at_once = history.world.batches_at_once, 1
    try:
        yield
    finally:
        history.world.batches_at_once = usual
