"""After any sequence of edits and verbs, what is published is what follows from the sources, or is said not to."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

import pytest

from backfill_assets.state.store import Store
from backfill_assets_tests.engine.world import LEASE, Clock, World
from backfill_assets_tests.fake_warehouse import fake_warehouse
from backfill_assets_tests.histories.checks import evidence_is_whole
from backfill_assets_tests.histories.history import History
from backfill_assets_tests.histories.steps import NOW, STEPS, begin, settle, step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FEW = (4, 5, 6, 7)
"""Seeds of the usual tests: with hours, receipts, weights and deliveries; in some of them a process dies."""

_ENOUGH = 30
"""So many histories together do everything."""

MANY = range(100, 100 + int(os.environ.get("HISTORIES", "100")))


@pytest.fixture(scope="module")
def done() -> Iterator[Counter[str]]:
    """Count what histories have done; many of them together do everything."""
    counted = Counter[str]()
    yield counted
    print(dict(counted))  # noqa: T201 - the long run's numbers
    if counted["histories"] >= _ENOUGH:
        assert counted.keys() >= {one.__name__ for one in STEPS}


def played(seed: int, steps: int, folder: Path) -> History:
    """Play the history of a seed; where something is wrong, the error tells the seed and the steps so far."""
    clock = Clock(NOW)
    with (
        fake_warehouse() as session,
        Store.open(
            f"sqlite:///{folder / 'state.db'}",
            clock=clock,
            lease_seconds=LEASE.total_seconds(),
            data_root=str(folder),
        ) as store,
    ):
        history = History.of(seed, World(cast("Any", session), folder, store, clock))
        try:
            begin(history)
            for _ in range(steps):
                step(history)
            settle(history)
            evidence_is_whole(folder)
        except Exception as error:
            error.add_note(history.told())
            raise
        return history


@pytest.mark.parametrize("seed", FEW)
def test_what_is_published_follows_from_the_sources_after_every_step(
    seed: int, tmp_path: Path, done: Counter[str]
):
    done.update(histories=1, **played(seed, 12, tmp_path).done)


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY)
def test_what_is_published_follows_from_the_sources_after_many_steps(
    seed: int, tmp_path: Path, done: Counter[str]
):
    history = played(seed, 25, tmp_path)
    done.update(histories=1, **history.done, **history.refused)
