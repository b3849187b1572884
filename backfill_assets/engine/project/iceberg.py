"""Describe tables for engines that read by name, before the state lets a pointer move to what is described.

While there is no Iceberg catalogue, nothing is written.
"""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.warehouse.files.collection import GRACE
from backfill_assets.warehouse.log.delta_log import CorruptTableError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from backfill_assets.engine.project.project import InProject
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.snapshots.publication import Move
    from backfill_assets.state.iceberg import Named

CATALOGUE = "backfill"
"""The name of the catalogue unless another is asked for."""


def describe_commit(run: InProject, model: str, version: str, delta_version: int) -> None:
    """Describe a table's new delta_version, which follows on what its name stands for until then.

    Raises:
        RequestError: there is a catalogue, and no pyiceberg.
    """
    if run.store.iceberg.catalogue() is None:
        return
    same = run.store.iceberg.newest_until(version, delta_version)  # may never have been published
    after = run.store.iceberg.published(version)
    _describe(run, (model, version, delta_version), run.clock(), same=same, after=after)


def describe_head(run: InProject, version: str, delta_version: int) -> None:
    """Describe a delta_version that holds the same rows as the one before."""
    describe_commit(run, run.store.versions.model(version), version, delta_version)


def describe_moves(run: InProject, moves: Iterable[Move]) -> None:
    """Describe where pointers will be, each as what follows on all that its name has stood for.

    All have one instant, so that a reader who asks for an instant reads all of a publication, or nothing.
    """
    if run.store.iceberg.catalogue() is None:
        return
    now = run.clock()
    for move in moves:
        if move.pointer.delta_version >= 0 and not move.pointer.under:
            _enter_move(run, move.pointer, now)


def _enter_move(run: InProject, to: Pointer, now: datetime) -> None:
    old = run.store.environments.own_pointers(to.environment).get(to.model)
    after = None if old is None else run.store.iceberg.entry(old.version, old.delta_version)
    same = run.store.iceberg.newest_until(to.version, to.delta_version)
    _describe(run, (to.model, to.version, to.delta_version), now, same=same, after=after)


def enter_missing(run: InProject) -> None:
    """Describe whatever environments read and no name can stand for yet.

    A table that is lost has no name. Whatever reads or writes it says so.
    """
    for at in run.store.iceberg.missing():
        same = run.store.iceberg.newest_until(at.version, at.delta_version)
        with suppress(CorruptTableError):
            _describe(
                run, (at.model, at.version, at.delta_version), run.clock(), same=same, after=None
            )


def enable(run: InProject, name: str = CATALOGUE) -> tuple[Named, ...]:
    """Create a catalogue of this name, with everything that environments publish.

    Raises:
        RequestError: there is no pyiceberg.
    """
    _refuse_without_library()
    run.store.iceberg.enable(name)
    enter_missing(run)
    return run.store.iceberg.names()


def drop_old(run: InProject, version: str, oldest: int) -> None:
    """Delete the descriptions of a table that nothing needs any more: without a catalogue, all of them.

    What a name has stood for within the grace period stays: readers that have looked it up still read it.
    """
    from backfill_assets.warehouse.iceberg.metadata import (  # noqa: PLC0415
        current_at,
        drop_metadata,
    )

    path, since = run.store.versions.version_path(version), run.clock() - GRACE
    then = current_at(path, run.store.iceberg.entries(version), since)
    if then is not None:
        run.store.iceberg.drop_before(version, min(then, oldest))
    drop_metadata(path, [*run.store.iceberg.entries(version).values()], since=since)


def _describe(
    run: InProject,
    table: tuple[str, str, int],
    now: datetime,
    *,
    same: str | None,
    after: str | None,
) -> None:
    _refuse_without_library()
    from backfill_assets.warehouse.iceberg.metadata import (  # noqa: PLC0415 - only with a catalogue
        write_metadata,
    )

    model, version, delta_version = table
    path = run.store.versions.version_path(version)
    location = write_metadata(path, delta_version, model=model, now=now, same=same, after=after)
    run.store.iceberg.enter(version, delta_version, location)


def _refuse_without_library() -> None:
    if find_spec("pyiceberg") is None:
        raise RequestError(
            found="there is an Iceberg catalogue, but no pyiceberg that could write it",
            do="run `pip install 'backfill-assets[iceberg]'`, or `backfill iceberg disable`",
        )
