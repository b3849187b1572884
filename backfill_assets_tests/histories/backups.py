"""The state is restored from an older backup: what it knew is published again, and what tables hold beyond it is accounted for."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backfill_assets.engine.upkeep.collecting import settle_read
from backfill_assets_tests.histories.checks import unchanged

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from backfill_assets_tests.histories.history import History
    from backfill_assets_tests.histories.published import Contents

_KNOWN = ("promoted", "dropped", "results", "held", "definitions", "mixed", "blank", "past")
"""What is known of a history that its state knows, too."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy of a state.

    Attributes:
        file: where it lies.
        contents: what each environment published then.
        known: what was known of the history.
    """

    file: Path
    contents: tuple[Contents, ...]
    known: Mapping[str, Any]


def back_up(history: History) -> None:
    """Copy the state, as a person does every night."""
    file = history.world.root / f"backup-{len(history.said)}.db"
    with (
        closing(sqlite3.connect(history.state_file)) as state,
        closing(sqlite3.connect(file)) as copy,
    ):
        state.backup(copy)
    contents = tuple(map(history.contents, history.environments))
    history.backup = Backup(file, contents, _known(history))
    history.say("the state is backed up")


def restore(history: History) -> None:
    """Go on with the last backup; what was committed since is looked at before anything else is done."""
    backup = history.backup
    assert backup is not None
    history.states += 1
    with (
        closing(sqlite3.connect(backup.file)) as copy,
        closing(sqlite3.connect(history.state_file)) as state,
    ):
        copy.backup(state)
    history.say("the backup is restored")
    for name, value in deepcopy(backup.known).items():
        setattr(history, name, value)
    history.open_state()
    for then in backup.contents:
        unchanged(then, history.contents(then.environment), "restoring the backup")
    settle_read(history.world.open(history.graph))


def _known(history: History) -> Mapping[str, Any]:
    return deepcopy({name: getattr(history, name) for name in _KNOWN})
