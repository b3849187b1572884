"""Rebuild the state from the tables' own commits: each says all about its batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets.snapshots.batch import BatchCommit
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets.state.rebuild import LoggedCommit, TableHead
from backfill_assets.warehouse.commit import restored_to
from backfill_assets.warehouse.tables import head, last_token, logged_commits

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.state.store import Store


def rebuild_state(store: Store, loaded: Graph, *, data_root: str) -> dict[str, int]:
    """Replay every table's log into an empty state.

    Snapshots whose models are loaded are stored again; pointers come back at the version that each
    environment built last.

    Returns:
        Per version, how many batches its log holds.

    Raises:
        StateNotEmptyError: the state holds something.
        CorruptTableError: a table's log is damaged.
    """
    tables = {path.name: str(path) for path in sorted(Path(data_root, "tables").glob("*/*"))}
    commits = {version: _batches(version, path) for version, path in tables.items()}
    heads = {
        version: TableHead(head(path), last_token(path, version))
        for version, path in tables.items()
    }
    store.rebuild([one for found in commits.values() for one in found], heads=heads)
    for snapshot in snapshots_of(loaded).values():
        store.save_snapshot(
            fingerprint_id=snapshot.fingerprint.id,
            model=snapshot.model.name,
            version=snapshot.version,
            definition=snapshot.definition(),
            logic=snapshot.fingerprint.logic,
            upstream=snapshot.fingerprint.upstream,
            metadata=snapshot.fingerprint.metadata,
        )
    return {version: len(found) for version, found in commits.items()}


def _batches(version: str, path: str) -> list[LoggedCommit]:
    """Read the batches of a log, but for those that a later restore took back."""
    logged_all = logged_commits(path, -1)
    taken_back = {
        number
        for one in logged_all
        if (kept := restored_to(one.metadata)) is not None
        for number in range(kept + 1, one.delta_version)
    }
    return [
        LoggedCommit(
            version,
            path,
            logged.delta_version,
            commit,
            committed_at=logged.committed_at,
            bytes_written=logged.bytes_added,
        )
        for logged in logged_all
        if logged.delta_version not in taken_back
        and (commit := BatchCommit.from_json(logged.metadata)) is not None
    ]
