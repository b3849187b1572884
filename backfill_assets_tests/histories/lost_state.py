"""The state is lost, and made again from the tables' own logs: what they hold is published as before, and no less is owed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.upkeep.state_rebuild import read_logs, rebuild_state
from backfill_assets.snapshots.environment import PROD
from backfill_assets_tests.histories.checks import differ_only
from backfill_assets_tests.histories.published import WrongError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime

    from backfill_assets.engine.upkeep.state_rebuild import Logs
    from backfill_assets_tests.histories.history import History
    from backfill_assets_tests.histories.published import Contents


def rebuild_lost_state(history: History) -> None:
    """Lose the state, and rebuild it. Plans, other environments, holds and results are gone with it."""
    looked, before = history.look(), history.contents()
    needy = {name: looked.unfinished(name) for name in looked.works}
    tables, late = _tables(history), {name: history.in_flight(name) for name in before.cells}
    history.say("the state is lost, and rebuilt from the tables")
    unsure = _rebuilt(history)
    history.say(f"  unsure: {', '.join(unsure) or 'nothing'}")
    history.forget_plans()
    history.mixed[PROD] |= {*unsure}
    now = _tables(history)
    same = {name for name, version in now.items() if tables.get(name) == version}
    history.say(f"  read from another table: {', '.join({*tables} - same) or 'nothing'}")
    after = history.contents()
    _publishes_the_same(before, after, same, late)
    _owes_no_less(history, needy, same, late)


def can_be_rebuilt(history: History) -> bool:
    """Whether no cell is owed, which the state alone knows."""
    return not any(work.owed for work in history.look().works.values())


def _tables(history: History) -> dict[str, str]:
    pointers = history.world.store.environments.pointers(PROD)
    return {name: pointer.version for name, pointer in pointers.items()}


def _rebuilt(history: History) -> tuple[str, ...]:
    """Open an empty state beside the lost one, which nothing writes any more."""
    logs = _by_this_clock(history, read_logs(history.graph, str(history.world.root)))
    history.states += 1
    history.open_state()
    return rebuild_state(history.world.store, history.graph, logs).unsure


def _by_this_clock(history: History, logs: Logs) -> Logs:
    """Let commits be of when they were recorded: Delta writes the machine's time into logs, not the history's."""
    world = history.world
    ended = {batch.batch_id: batch.finished_at for batch in world.store.batches.latest()}
    return replace(
        logs,
        commits={
            version: [
                replace(one, committed_at=ended.get(one.commit.batch_id) or world.clock.now)
                for one in commits
            ]
            for version, commits in logs.commits.items()
        },
    )


def _publishes_the_same(
    before: Contents,
    after: Contents,
    same: Collection[str],
    late: Mapping[str, Collection[datetime]],
) -> None:
    """Every table that is read as before holds what it held; what a dead process has committed may be recorded."""
    differ_only(
        {name: before.of(name) for name in same},
        {name: after.of(name) for name in same},
        dict(late),
        "the rebuild of the state",
    )


def _owes_no_less(
    history: History,
    needy: Mapping[str, set[datetime]],
    same: Collection[str],
    late: Mapping[str, Collection[datetime]],
) -> None:
    """What was missing or stale still is, in tables that are read as before."""
    looked = history.look()
    for name in needy.keys() & same & looked.works.keys():
        if done := needy[name] - looked.unfinished(name) - {*late.get(name, ())}:
            raise WrongError(
                f"after the rebuild of the state {name} needs no work in {sorted(done)}"
            )
