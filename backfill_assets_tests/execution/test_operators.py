"""Who may change a protected environment, whether they use the command or the launchpad."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.execution.operators import NotAnOperatorError, refuse_strangers
from backfill_assets.snapshots.environment import PROD
from backfill_assets_tests.execution.queue_world import QueueWorld

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets.state.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    world = QueueWorld.of(tmp_path)
    world.run()
    return world.store


def test_only_those_who_are_named_change_what_is_protected(store: Store):
    refuse_strangers(store, PROD, "ann", ("ann", "bob"))
    with pytest.raises(NotAnOperatorError, match=r"eve may not change prod.*ann, bob"):
        refuse_strangers(store, PROD, "eve", ("ann", "bob"))


def test_where_nobody_is_named_everybody_may(store: Store):
    refuse_strangers(store, PROD, "eve", ())


def test_what_is_not_there_is_not_protected(store: Store):
    refuse_strangers(store, "dev_eve", "eve", ("ann",))
