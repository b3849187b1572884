"""Adopt commits that a table's log holds and the state does not know: which count, and as of when.

A state that was restored from an older backup meets them, and its counter may be behind the numbers
that they name. So the counter rises above every number that is seen, and a commit is given a number
of this state's own: the last one at which all that it has read was still as it has read it. A commit
whose inputs this state can't vouch for does not count, and neither does the copy of a promotion that
the state does not know: adopted table by table, readers would see a part of its plan. Whatever counts,
cells that are owed stay owed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.snapshots.publication import PROMOTED
from backfill_assets.state import (
    batch_rows,
    counter,
    overtaking,
    owed,
    pointers,
    recording,
    sources,
)
from backfill_assets.state.tables import BATCHES, READY_RECORDS
from backfill_assets.state.versions import NO_COMMIT

if TYPE_CHECKING:
    from backfill_assets.snapshots.batch import BatchCommit
    from backfill_assets.snapshots.ready import InputPin
    from backfill_assets.state.batch_rows import Ending
    from backfill_assets.state.locks import CommitLock

_RECORDS = READY_RECORDS.c


def adopt(connection: sa.Connection, commit: BatchCommit, lock: CommitLock, ending: Ending) -> bool:
    """Record a commit that was found in a log, if it may count.

    Returns:
        Whether it counts. The caller takes a commit that does not count back.

    Raises:
        LostLeaseError: the lock was taken over.
        RequestError: a later commit of the table is recorded already.
    """
    if _is_known(connection, commit):
        recording.record(connection, commit, lock, ending)
        return True
    counter.rise_to(connection, commit.built_at)
    built_at = _built_at(connection, commit)
    if built_at is None:
        return False
    numbered = replace(commit, built_at=built_at)
    recording.record(connection, numbered, lock, ending)
    # When it pinned its inputs is not known here, so any publication may have come since.
    overtaking.owe_what_read_gone_cells(connection, numbered, 0)
    return True


def _is_known(connection: sa.Connection, commit: BatchCommit) -> bool:
    """Whether this state has opened the commit's batch, so that its number is one of its own."""
    row = batch_rows.find_batch(connection, commit.batch_id)
    return row is not None and row.built_at >= commit.built_at


def _built_at(connection: sa.Connection, commit: BatchCommit) -> int | None:
    """Number a commit anew; None for one that does not count."""
    own = pointers.pointer(connection, commit.environment, commit.model)
    if commit.reason == PROMOTED or own is None or own.version != commit.version:
        return None
    built_at = counter.last_number(connection)
    for pin in commit.inputs:
        if not (_is_read(connection, commit, pin) if pin.version else _is_seen(connection, pin)):
            return None
        built_at = min(built_at, _moved_since(connection, pin, built_at))
    # Its batch may have begun before they were owed: the two cases can't be told apart.
    return min((built_at, *owed.owed_since(connection, commit)))


def _is_read(connection: sa.Connection, commit: BatchCommit, pin: InputPin) -> bool:
    """Whether the environment reads this table of a model, and knows the pin.

    A pin that is not known is that of a commit which did not count, or is not adopted yet.
    """
    at = pointers.pointer(connection, commit.environment, pin.upstream)
    if at is None or pin.version not in (at.version, *(layer.version for layer in at.under)):
        return False
    return pin.delta_version == NO_COMMIT or _is_recorded(connection, pin)


def _is_recorded(connection: sa.Connection, pin: InputPin) -> bool:
    at = pin.delta_version
    of_cells = sa.select(_RECORDS.starts).where(
        _RECORDS.version == pin.version, sa.or_(_RECORDS.valid_from == at, _RECORDS.valid_to == at)
    )
    of_batches = sa.select(BATCHES.c.starts).where(
        BATCHES.c.version == pin.version, BATCHES.c.delta_version == at
    )
    return any(connection.execute(query.limit(1)).first() for query in (of_cells, of_batches))


def _is_seen(connection: sa.Connection, pin: InputPin) -> bool:
    """Whether a source was read at its observed head or later: changes since are still to be observed."""
    observed_source = sources.find_observed(connection, pin.upstream)
    if observed_source is None:
        return True
    return observed_source.is_read_by(pin) and observed_source.head <= pin.delta_version


def _moved_since(connection: sa.Connection, pin: InputPin, latest: int) -> int:
    """Give the smallest number of what was built into a table after a pin."""
    built = sa.select(sa.func.min(_RECORDS.built_at)).where(
        _RECORDS.version == pin.version, _RECORDS.valid_from > pin.delta_version
    )
    first = connection.execute(built).scalar()
    return latest if first is None else min(latest, first)
