"""Rebuild the state from the tables' own commits: each says all about its batch."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from backfill_assets.engine.project.opening import save_snapshot
from backfill_assets.snapshots.batch import BatchCommit
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.publication import PROMOTED
from backfill_assets.snapshots.snapshot import snapshots_of, stored_model
from backfill_assets.state.rebuild import LoggedCommit, TableHead
from backfill_assets.warehouse.files.housekeeping import created_by, is_ours, restored_to
from backfill_assets.warehouse.files.tables import written_tables
from backfill_assets.warehouse.log.delta_log import last_token, logged_commits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.state.store import Store
    from backfill_assets.warehouse.log.delta_log import LoggedCommit as Logged


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The end of a table's log that does not count, because it begins with half a publication.

    Attributes:
        version: whose table.
        delta_version: Delta's number of the first commit that does not count.
        commits: how many commits do not count.
        plan_id: the plan whose publication is not complete; None for one without a plan.
        missing: the versions whose tables do not hold the publication.
    """

    version: str
    delta_version: int
    commits: int
    plan_id: str | None
    missing: tuple[str, ...]

    def __str__(self) -> str:
        """Say what was found and what to do about it."""
        plan = f"plan {self.plan_id}" if self.plan_id else "a publication"
        return (
            f"{self.version}: its log from delta_version {self.delta_version} on is not counted "
            f"(commits: {self.commits}), because {plan} is published there but not in "
            f"{', '.join(self.missing)}. The next batch of the table takes these commits back. If "
            "the other tables were lost, restore their folders from a backup and rebuild into an "
            "empty state again; otherwise run `backfill plan` and publish the change anew"
        )


@dataclass(frozen=True, slots=True)
class RebuiltState:
    """What a rebuild found.

    Attributes:
        batches: per version, how many batches of its log count.
        left_out: the ends of logs that do not count.
        unsure: models that prod runs by the definition that their tables were made for, though their last batches
            ran another one, or under another one upstream: it is not loaded, and no log holds it.
    """

    batches: dict[str, int]
    left_out: tuple[LeftOut, ...]
    unsure: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Logs:
    """What the logs of all tables say.

    Attributes:
        tables: the path of each, by version.
        accounted: the commits of each that its state accounted for.
        known: those of them that count.
        commits: the batches among these.
        seen: the largest number that any log names.
    """

    tables: Mapping[str, str]
    accounted: Mapping[str, list[Logged]]
    known: Mapping[str, list[Logged]]
    commits: Mapping[str, list[LoggedCommit]]
    seen: int


def read_logs(loaded: Graph, data_root: str) -> Logs:
    """Read every table's log.

    Raises:
        CorruptTableError: one is damaged.
        TablesNotListedError: the folder can't be read, or the store does not answer.
    """
    tables = written_tables(data_root)
    accounted = {version: _known(path, version) for version, path in tables.items()}
    known = _whole(accounted)
    commits = {
        version: _batches(version, path, known[version], loaded) for version, path in tables.items()
    }
    numbers = (_number(commit) for path in tables.values() for commit in logged_commits(path, -1))
    return Logs(tables, accounted, known, commits, max(numbers, default=0))


def rebuild_state(store: Store, loaded: Graph, logs: Logs) -> RebuiltState:
    """Replay every table's log into an empty state.

    Snapshots whose models are loaded are stored again; prod's pointers come back at the version that it
    built last. Other environments do not come back.

    Raises:
        RequestError: the state holds something.
    """
    known, commits = logs.known, logs.commits
    heads = {
        version: TableHead(
            known[version][-1].delta_version if known[version] else -1, last_token(path, version)
        )
        for version, path in logs.tables.items()
    }
    store.rebuild(
        [commit for of_table in commits.values() for commit in of_table],
        heads=heads,
        seen=logs.seen,
    )
    snapshots, unsure = snapshots_of(loaded).values(), set[str]()
    for snapshot in snapshots:
        save_snapshot(store, snapshot)
    loaded_ids = {snapshot.fingerprint.id for snapshot in snapshots}
    for version, path in logs.tables.items():
        unsure |= _save_creator(store, path, commits[version]) - loaded_ids
    return RebuiltState(
        {version: len(of_table) for version, of_table in commits.items()},
        _left_out(logs.accounted, known),
        tuple(
            name
            for name, at in sorted(store.environments.pointers(PROD).items())
            if at.fingerprint in unsure
        ),
    )


def _known(path: str, version: str) -> list[Logged]:
    """Give the commits that a state accounts for: neither a stranger's, nor what was taken back.

    A stranger's commit at the end of the log, and what follows it, is left out as well: the table's
    next holder finds it unknown and takes it back.
    """
    known: list[Logged] = []
    strange = False
    for logged in logged_commits(path, -1):
        kept = restored_to(logged.metadata)
        if kept is not None:
            known = [commit for commit in known if commit.delta_version <= kept]
            strange = False
        commit = BatchCommit.from_json(logged.metadata)
        ours = is_ours(logged.metadata) or (commit is not None and commit.version == version)
        strange = strange or not ours
        if not strange:
            known.append(logged)
    return known


def _number(logged: Logged) -> int:
    commit = BatchCommit.from_json(logged.metadata)
    return 0 if commit is None else commit.built_at


def _whole(known: dict[str, list[Logged]]) -> dict[str, list[Logged]]:
    """Leave out copies of a publication that not all of its tables hold, and what follows them.

    A table that is not there any more was collected after the publication was done.
    """
    while (cut := _cut(known)) != known:
        known = cut
    return known


def _cut(known: dict[str, list[Logged]]) -> dict[str, list[Logged]]:
    """End each table before its first copy whose publication another table does not hold."""
    held = {version: set(map(_publication, commits)) for version, commits in known.items()}
    return {
        version: list(takewhile(lambda commit: _in_all(commit, held), commits))
        for version, commits in known.items()
    }


def _left_out(
    before: Mapping[str, list[Logged]], after: Mapping[str, list[Logged]]
) -> tuple[LeftOut, ...]:
    """Name each end of a log that was cut off, with the publication that it begins with."""
    held = {version: set(map(_publication, commits)) for version, commits in after.items()}
    left_out: list[LeftOut] = []
    for version, commits in before.items():
        rest = commits[len(after[version]) :]
        copy = BatchCommit.from_json(rest[0].metadata) if rest else None
        if copy is not None:
            missing = tuple(
                other
                for other in copy.together
                if other != version and other in held and _publication(rest[0]) not in held[other]
            )
            first = rest[0].delta_version
            left_out.append(LeftOut(version, first, len(rest), copy.plan_id, missing))
    return tuple(left_out)


def _in_all(logged: Logged, held: dict[str, set[str]]) -> bool:
    commit = BatchCommit.from_json(logged.metadata)
    tables = () if commit is None else commit.together
    return all(_publication(logged) in held[version] for version in tables if version in held)


def _publication(logged: Logged) -> str:
    """Name the publication that a copy belongs to: a plan's id and the number of its intent."""
    commit = BatchCommit.from_json(logged.metadata)
    if commit is None or commit.reason != PROMOTED:
        return ""
    return f"{commit.plan_id}:{commit.built_at}"


def _batches(version: str, path: str, known: list[Logged], loaded: Graph) -> list[LoggedCommit]:
    return [
        LoggedCommit(
            version,
            path,
            logged.delta_version,
            commit if commit.exact else commit.built_by(_model(path, commit, loaded)),
            committed_at=logged.committed_at,
            # A publication's commit adds only what differs of the cells that it names.
            bytes_written=None if commit.reason == PROMOTED else logged.bytes_added,
        )
        for logged in known
        if (commit := BatchCommit.from_json(logged.metadata)) is not None
    ]


def _model(path: str, commit: BatchCommit, loaded: Graph) -> Model | None:
    """Give the model that a table was made for; where its log doesn't say, the loaded one of its name."""
    definition = _creator(path)
    return loaded.models.get(commit.model) if definition is None else stored_model(definition)


def _creator(path: str) -> str | None:
    """Read the stored model that a table was made for; None where its log has been trimmed."""
    return next(
        (
            creator
            for commit in logged_commits(path, -1)
            if (creator := created_by(commit.metadata))
        ),
        None,
    )


def _save_creator(store: Store, path: str, batches: list[LoggedCommit]) -> set[str]:
    """Store the model that a table was made for, under every fingerprint that its batches ran.

    One that is loaded is stored by now, with its own words, and stays.

    Returns:
        The fingerprints whose definition may be another one: a table that was kept has run it later.
    """
    definition = _creator(path)
    if definition is None:
        return set()
    ran = {batch.commit.fingerprint: batch.commit for batch in batches}
    for fingerprint, commit in ran.items():
        store.snapshots.save_snapshot(
            fingerprint_id=fingerprint,
            model=commit.model,
            version=commit.version,
            definition=definition,
            logic="",
            upstream="",
            metadata="",
        )
    return {*ran} - {batch.commit.fingerprint for batch in batches[:1]}
