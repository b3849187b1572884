"""Who may change a protected environment, whether they use the command or the launchpad."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.project.operators import refuse_unauthorized
from backfill_assets.errors import RequestError
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.person import unverified_person, verified_person
from backfill_assets_tests.engine.queue_world import QueueWorld

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets.state.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    world = QueueWorld.of(tmp_path)
    world.run()
    return world.store


def test_only_those_who_are_named_change_what_is_protected(store: Store):
    refuse_unauthorized(store, PROD, verified_person("ann"), ("ann", "bob"))
    with pytest.raises(RequestError, match=r"eve may not change prod.*ann, bob"):
        refuse_unauthorized(store, PROD, verified_person("eve"), ("ann", "bob"))


def test_a_name_that_was_typed_is_no_identity(store: Store):
    for who in (
        unverified_person("the launchpad", typed="ann"),
        verified_person("eve", typed="ann"),
    ):
        with pytest.raises(RequestError, match=r"\(typed: ann\) may not change prod"):
            refuse_unauthorized(store, PROD, who, ("ann", "bob"))


def test_where_nobody_is_named_everybody_may(store: Store):
    refuse_unauthorized(store, PROD, verified_person("eve"), ())
    refuse_unauthorized(store, PROD, unverified_person("the launchpad"), ())


def test_what_is_not_there_is_not_protected(store: Store):
    refuse_unauthorized(store, "dev_eve", verified_person("eve"), ("ann",))
