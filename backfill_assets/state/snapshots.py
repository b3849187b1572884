"""Snapshots as the state keeps them: everything that running one later needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.snapshots.snapshot import stored_model
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.rows import read_as
from backfill_assets.state.tables import SNAPSHOTS
from backfill_assets.state.texts import keep_texts, put_together, taken_apart

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.model import Model
    from backfill_assets.state.database import Database


class UnknownSnapshotError(BackfillAssetsError):
    """No snapshot was ever saved under this fingerprint."""

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        super().__init__(
            f"no snapshot with fingerprint '{fingerprint}' is in the state; expected one that a "
            "pointer or a batch names. Save the loaded models' snapshots first"
        )


@dataclass(frozen=True)
class StoredSnapshot:
    """One saved snapshot.

    Attributes:
        fingerprint: of the whole declaration; its key.
        model: what it is a snapshot of.
        version: the table that it builds.
        definition: the model as text, to be run later.
        logic: the part of the fingerprint that hashes what is computed.
        upstream: the part that hashes what it reads.
        metadata: the part that hashes what changes no row.
        sources: what it relies on of its sources, as text; None where that was never kept.
    """

    fingerprint: str
    model: str
    version: str
    definition: str
    logic: str
    upstream: str
    metadata: str
    sources: str | None = None

    @cached_property
    def declared(self) -> Model:
        """The model, as it was declared."""
        return stored_model(self.definition)


class Snapshots(Aggregate[D]):
    """Snapshots: what running a model later needs.

    Each method is one transaction.
    """

    def get(self, fingerprint_id: str) -> StoredSnapshot:
        """Read a snapshot; `UnknownSnapshotError` when it was never saved."""
        return self._database.read(snapshot, fingerprint_id)

    def find(self, fingerprint_id: str) -> StoredSnapshot | None:
        """Read a snapshot; None when it was never saved."""
        return self._database.read(find_snapshot, fingerprint_id)

    def model(self, fingerprint_id: str) -> Model | None:
        """Read the model of a snapshot; None where none was saved under this fingerprint."""
        return self._database.read(model, fingerprint_id)

    def last_model(self, name: str) -> Model | None:
        """Read a model as it was saved last; None where it never was."""
        return self._database.read(last_model, name)

    def last_cadence(self, name: str) -> Cadence | None:
        """Read the cadence that a model had when it was saved last; None where it never was."""
        found = self.last_model(name)
        return None if found is None else found.cadence

    def save_snapshot(  # noqa: PLR0913 - the columns of one row
        self: Snapshots[Database],
        *,
        fingerprint_id: str,
        model: str,
        version: str,
        definition: str,
        logic: str,
        upstream: str,
        metadata: str,
        sources: str | None = None,
    ) -> None:
        """Keep what running a snapshot later needs; one that is there already stays, saved as of now.

        Until a pointer names it, that instant keeps it from being collected.
        """
        now = self._clock()
        values = {
            "fingerprint": fingerprint_id, "model": model, "version": version, "logic": logic,
            "upstream": upstream, "metadata": metadata, "sources": sources, "saved_at": now,
        }  # fmt: skip

        def work(connection: sa.Connection) -> None:
            same = SNAPSHOTS.c.fingerprint == fingerprint_id
            again = connection.execute(sa.update(SNAPSHOTS).where(same).values(saved_at=now))
            if not again.rowcount:
                named, texts = taken_apart(definition)
                keep_texts(connection, texts)
                connection.execute(sa.insert(SNAPSHOTS).values({**values, "definition": named}))

        self._database.write(work)


def snapshot(connection: sa.Connection, fingerprint: str) -> StoredSnapshot:
    """Read a snapshot.

    Raises:
        UnknownSnapshotError: none was saved under this fingerprint.
        RequestError: the state lacks the text of one of its modules or files.
    """
    found = find_snapshot(connection, fingerprint)
    if found is None:
        raise UnknownSnapshotError(fingerprint)
    return found


def find_snapshot(connection: sa.Connection, fingerprint: str) -> StoredSnapshot | None:
    """Read a snapshot, or None.

    Raises:
        RequestError: the state lacks the text of one of its modules or files.
    """
    query = sa.select(SNAPSHOTS).where(SNAPSHOTS.c.fingerprint == fingerprint)
    row = connection.execute(query).first()
    return None if row is None else _read(connection, row)


def _read(connection: sa.Connection, row: sa.Row[Any]) -> StoredSnapshot:
    return read_as(StoredSnapshot, row, definition=put_together(connection, row.definition))


def computing_otherwise(connection: sa.Connection, made_by: Mapping[str, str]) -> dict[str, Model]:
    """Read those definitions that compute rows otherwise than the ones that run in their place.

    Args:
        connection: to the state.
        made_by: fingerprints, each with that of the definition which runs now.
    """
    if not made_by:
        return {}
    column = SNAPSHOTS.c.fingerprint
    named = column.in_({*made_by, *made_by.values()})
    rows = connection.execute(sa.select(column, SNAPSHOTS.c.logic).where(named))
    logic = {row.fingerprint: row.logic for row in rows}
    others = {each for each, now in made_by.items() if logic.get(each) != logic.get(now)}
    if not others:
        return {}
    found = connection.execute(sa.select(SNAPSHOTS).where(column.in_(others)))
    return {row.fingerprint: _read(connection, row).declared for row in found}


def last_model(connection: sa.Connection, name: str) -> Model | None:
    """Read a model as it was saved last."""
    of_model = sa.select(SNAPSHOTS.c.fingerprint).where(SNAPSHOTS.c.model == name)
    last = connection.execute(of_model.order_by(SNAPSHOTS.c.saved_at.desc()).limit(1)).scalar()
    return None if last is None else model(connection, last)


def model(connection: sa.Connection, fingerprint: str) -> Model | None:
    """Read the model of a snapshot; None where none was saved under this fingerprint."""
    found = find_snapshot(connection, fingerprint)
    return None if found is None else found.declared
