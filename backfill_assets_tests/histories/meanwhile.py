"""What others do while a process is at work: a batch is in flight, or a publication is decided and not done."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.batch import opening_batch
from backfill_assets.engine.batch.commit_turn import commit_turn
from backfill_assets.engine.plans import publishing
from backfill_assets.errors import BackfillAssetsError
from backfill_assets_tests.engine.dying import before_call
from backfill_assets_tests.histories import verbs
from backfill_assets_tests.histories.checks import ChangedError
from backfill_assets_tests.histories.edits import MINUTE, days_pass
from backfill_assets_tests.state.building import open_promotions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backfill_assets_tests.histories.history import History

_PUBLISHING = (verbs.promote, verbs.roll_back, verbs.undo)
_FIRST_BATCHES = 3
_MEANWHILE = "  meanwhile"


def publication_beside_a_batch(history: History) -> None:
    """Let a run fill gaps; while one of its batches is in flight, a plan is published or taken back."""
    days_pass(history)
    verb = history.random.choice(publications(history))
    history.say(f"a run fills gaps, and meanwhile: {verb.__name__}")
    with _before_a_commit(history, lambda: _tried(history, verb)):
        history.world.fill(history.graph)


def run_beside_a_publication(history: History) -> None:
    """Let a plan be published or taken back; once that is decided, a run fills the models that are not locked."""
    verb = history.random.choice(publications(history))
    environment = history.random.choice(history.environments)
    said = len(history.said)
    with pytest.MonkeyPatch.context() as patch:
        before_call(publishing, "describe_moves", lambda: _fill_rest(history, environment), patch)
        try:
            verb(history)
        except ChangedError:
            if not any(line.startswith(_MEANWHILE) for line in history.said[said:]):
                raise  # no run was there that could have changed it


BESIDE_PUBLICATIONS = (publication_beside_a_batch, run_beside_a_publication)


def publications(history: History) -> list[Callable[[History], None]]:
    """Give the verbs that may publish something in prod now."""
    return [verb for verb in _PUBLISHING if verbs.is_possible(history, verb)]


def _fill_rest(history: History, environment: str) -> None:
    """Run the models whose tables the publication does not hold; of a dead one it would wait for its turn."""
    publications = open_promotions(history.world.store)
    if len(publications) > 1:
        return
    locked = {version for one in publications for version in one.versions}
    pointers = history.world.store.environments.pointers(environment)
    free = [name for name in history.graph.order if name in pointers]
    free = [name for name in free if pointers[name].version not in locked]
    history.say(f"{_MEANWHILE} a run in {environment} fills {', '.join(free) or 'nothing'}")
    if free:
        history.world.clock.now += MINUTE
        other = replace(history.world, environment=environment, runs=history.world.runs + 500)
        _tried(history, lambda _: other.fill(history.graph, *free))


def _tried(history: History, verb: Callable[[History], Any]) -> None:
    try:
        verb(history)
    except BackfillAssetsError as error:
        history.say(f"  that is refused, {type(error).__name__}: {error}")


@contextmanager
def _before_a_commit(history: History, meanwhile: Callable[[], None]) -> Iterator[None]:
    """Do something once, between a batch's audit and its turn at the table.

    What would wait for the batch gives up at once, and has lost its place in the queue for a slot afterwards.
    """
    left = history.random.randrange(_FIRST_BATCHES)
    usual = history.world.effects

    def turn(*given: Any) -> Any:  # noqa: ANN401
        nonlocal left
        left -= 1
        if left < 0 and history.world.effects is not usual:
            history.world.effects = usual
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(opening_batch._Wait, "__call__", lambda *_: True)
                meanwhile()
            history.world.clock.now += MINUTE
        return commit_turn(*given)

    batches, history.world.batches_at_once = history.world.batches_at_once, 1
    try:
        with history.world.doing(turn=turn):
            yield
    finally:
        history.world.batches_at_once = batches
