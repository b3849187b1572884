"""Environments as the state keeps them, and workspaces, which plans open and drop as a whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.snapshots.environment import Environment, Pointer, workspace_name
from backfill_assets.snapshots.publication import IntentStatus
from backfill_assets.snapshots.stored_plan import NOT_ENDED, PlanEventKind
from backfill_assets.state import owed, pointers, versions
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.claims import CellsClaimedError
from backfill_assets.state.counter import next_number
from backfill_assets.state.cutoffs import save_cutoffs
from backfill_assets.state.moves import plans_that_moved
from backfill_assets.state.plans import NewEvent, find_plan, tell, wrong_status
from backfill_assets.state.promotions import PromotionPendingError, open_intents
from backfill_assets.state.rows import read_as, values_of
from backfill_assets.state.tables import (
    BATCHES,
    CLAIMS,
    CUTOFFS,
    ENVIRONMENTS,
    FAILED_STARTS,
    HOLDS,
    OWED,
    POINTERS,
    PROMOTIONS,
    PUBLISHED_AUDITS,
    RESULTS,
)
from backfill_assets.state.versions import NewVersion, owned_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.snapshots.workspace import WorkspaceModel, WorkspaceRequest
    from backfill_assets.state.database import Database

_NAMED = sa.select(ENVIRONMENTS).where(ENVIRONMENTS.c.name == sa.bindparam("named"))


class UnknownEnvironmentError(BackfillAssetsError):
    """No environment has this name."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name, self.known = name, known
        super().__init__(
            f"environment '{name}' does not exist; there is {', '.join(known)}. Use one of them"
        )


def _environment_needed(name: str, why: str) -> RequestError:
    return RequestError(
        found=f"environment '{name}' can't be dropped: {why}. Only an unprotected environment that "
        "no other environment follows can be dropped",
        do="abandon or promote its open plans first",
    )


@dataclass(frozen=True, slots=True)
class Finalized:
    """What was last published in an environment.

    Attributes:
        at: when.
        plan_id: by which plan.
        removed: models that it does not run any more.
    """

    at: datetime
    plan_id: str
    removed: tuple[str, ...]


class Environments(Aggregate[D]):
    """Environments and the workspaces of plans, with their pointers and what they owe.

    Each method is one transaction.
    """

    def get(self, name: str) -> Environment:
        """Read an environment; `UnknownEnvironmentError` lists those that exist."""
        row = self._row(_NAMED.params(named=name))
        return self._database.read(environment, name) if row is None else read_as(Environment, row)

    def by_name(self) -> list[Environment]:
        """Read all environments by name, the workspaces of plans included."""
        return self._database.read(environments)

    def exists(self, name: str) -> bool:
        """Whether there is an environment of that name, or the workspace of a plan."""
        return any(each.name == name for each in self.by_name())

    def finalized(self, environment: str) -> Finalized | None:
        """Read what was last published in an environment; None where nothing was."""
        row = self._row(_NAMED.params(named=environment))
        if row is None or row.finalized_at is None:
            return None
        return Finalized(row.finalized_at, row.finalized_by, row.removed or ())

    def expirations(self, lifetime: timedelta) -> dict[str, datetime]:
        """Give until when each environment that expires lives: for a time after its last change.

        Its last change is the last publication there, the last commit that a pointer of its own followed, or
        the last that was heard of a batch that is at work there.

        Args:
            lifetime: that time; an environment that was begun with a longer one lives on until then.
        """
        of, moved = ENVIRONMENTS.c, sa.func.max(POINTERS.c.moved_at).label("moved_at")
        query = (
            sa.select(of.name, of.expires_at, of.finalized_at, moved)
            .outerjoin(POINTERS, POINTERS.c.environment == of.name)
            .where(of.expires_at.is_not(None))
            .group_by(of.name, of.expires_at, of.finalized_at)
        )
        at_work = (
            sa.select(BATCHES.c.environment, sa.func.max(CLAIMS.c.heartbeat_at).label("heard_at"))
            .join(CLAIMS, CLAIMS.c.batch_id == BATCHES.c.batch_id)
            .group_by(BATCHES.c.environment)
        )
        heard = {row.environment: row.heard_at for row in self._rows(at_work)}
        return {
            row.name: max(
                [row.expires_at]
                + [
                    at + lifetime
                    for at in (row.finalized_at, row.moved_at, heard.get(row.name))
                    if at is not None
                ]
            )
            for row in self._rows(query)
        }

    def pointers(self, environment: str) -> dict[str, Pointer]:
        """Read where an environment reads each model: its own pointers, else those it follows.

        `Pointer.environment` says whose each is. Pins of the tables under another are those that
        the environments which read them have now.
        """
        return self._database.read(pointers.pointers, environment)

    def own_pointers(self, environment: str) -> dict[str, Pointer]:
        """Read the pointers that are an environment's own, by model, as they are stored."""
        return self._database.read(pointers.own_pointers, environment)

    def never_filled(self, environment: str) -> frozenset[str]:
        """Name the models whose pointer in an environment was never of use.

        No cell of the table was ever published, no batch is at work on it, no plan moved the pointer, and
        no other environment has a table of the model.
        """
        heard_after = self._clock() - self._lease
        return self._database.read(pointers.never_filled, environment, heard_after)

    def owed_marks(self, environment: str) -> list[list[str | int]]:
        """Name what is owed: the table and the cells of each mark, ready or not; cheaper than a view."""
        return self._database.read(owed.named, environment)

    def save_environment(self: Environments[Database], environment: Environment) -> None:
        """Create an environment, or change all of its settings."""
        self._database.write(save_environment, environment)

    def drop_environment(self: Environments[Database], name: str) -> None:
        """Forget an environment and its pointers; its tables stay until they are collected.

        The plans that have changed it are told: nothing of them is left to take back, and what they
        changed is no history of another environment that gets its name.

        Raises:
            UnknownEnvironmentError: there is none of this name.
            RequestError: it is protected, the workspace of a plan, another one follows it, or it is
                being published to.
        """
        now = self._clock()
        busy = sa.select(PROMOTIONS.c.plan_id).where(
            PROMOTIONS.c.environment == name, PROMOTIONS.c.status == IntentStatus.OPEN
        )

        def work(connection: sa.Connection) -> None:
            dropped = environment(connection, name)
            if dropped.protected:
                raise _environment_needed(name, "it is protected")
            if dropped.is_workspace:
                raise _environment_needed(
                    name, "a plan builds in it and gives back what it took over"
                )
            followers = [each.name for each in environments(connection) if each.follows == name]
            if followers:
                raise _environment_needed(name, f"{', '.join(followers)} follow it")
            for plan_id in connection.execute(busy.limit(1)).scalars():
                begun = f"work of plan {plan_id} is not finished"
                raise _environment_needed(name, begun)
            forget_environment(connection, name, now)
            for plan_id in plans_that_moved(connection, name):
                if find_plan(connection, plan_id) is not None:
                    tell(connection, NewEvent(plan_id, PlanEventKind.DROPPED, "", ""), now)

        self._database.write(work)

    def open_workspace(self: Environments[Database], request: WorkspaceRequest) -> Environment:
        """Open a plan's workspace: environment, pointers, owners, owed marks; at once or not at all.

        Opening one that is open already adds what is missing and changes nothing else, so a plan
        that is applied again resumes.

        Raises:
            UnknownEnvironmentError: the environment to follow is not there.
            RequestError: a table that it would write belongs to another environment.
            VersionCollectingError: one is being deleted.
            RequestError: the plan's life is over.
        """
        now, name = self._clock(), workspace_name(request.plan_id)

        def work(connection: sa.Connection) -> Environment:
            _check_alive(connection, request.plan_id)
            followed = environment(connection, request.environment)
            for each in request.models:
                _check_owner(connection, each.pointer.version, name, followed)
            opened = find_environment(connection, name) or _create_workspace(
                connection, request, name
            )
            own = pointers.own_pointers(connection, name)
            for each in request.models:
                if each.pointer.model not in own:
                    model = replace(each, path=self.place(each.path))
                    _point(connection, request.plan_id, model, now)
            return opened

        return self._database.write(work)

    def taken(self, environment: Environment, versions: Iterable[str]) -> frozenset[str]:
        """Name the versions that other environments alone write, so that no plan for this one can build there."""
        return self._database.read(
            lambda connection: frozenset(
                version
                for version in versions
                if (holder := _other_holder(connection, version, environment)) is not None
                and not holder.is_workspace  # a plan that ends before long
            )
        )

    def drop_workspace(self: Environments[Database], plan_id: str) -> None:
        """Forget a plan's workspace, its pointers and what it owed; tables stay for collection.

        Does nothing where there is none.

        Raises:
            CellsClaimedError: a live batch is building in it.
            PromotionPendingError: its promotion has begun; finish it instead.
        """
        now, name = self._clock(), workspace_name(plan_id)
        here = sa.select(BATCHES.c.batch_id).where(BATCHES.c.environment == name)
        live = sa.select(CLAIMS).where(
            CLAIMS.c.batch_id.in_(here), CLAIMS.c.heartbeat_at > now - self._lease
        )

        def work(connection: sa.Connection) -> None:
            own = [each.version for each in pointers.own_pointers(connection, name).values()]
            for intent in open_intents(connection):
                if intent.plan_id == plan_id:
                    raise PromotionPendingError(intent, ", ".join(intent.versions))
            for claim in connection.execute(live.limit(1)):
                raise CellsClaimedError(claim)
            forget_environment(connection, name, now)
            _return_tables(connection, name, own)
            owed.forget_owed(connection, plan_id)

        self._database.write(work)

    def ensure_pointer(self: Environments[Database], pointer: Pointer, path: str) -> Pointer:
        """Create a model's first pointer, and its version at `path`; move none but one that was never filled.

        Returns:
            The pointer as it is now.
        """
        place = self.place(path)
        return self._database.write(
            lambda connection: pointers.ensure_pointer(
                connection, pointer, place, self._clock(), self._lease
            )
        )

    def mark_owed_everywhere(
        self: Environments[Database],
        model: str,
        cells: IntervalSet,
        reason: str,
        *,
        plan_id: str | None = None,
    ) -> tuple[str, ...]:
        """Remember cells that must be rebuilt in every version of a model, and say in which."""
        mark = owed.Mark(reason, plan_id, None)
        return self._database.write(owed.mark_owed_everywhere, model, cells, mark)


def environment(connection: sa.Connection, name: str) -> Environment:
    """Read an environment.

    Raises:
        UnknownEnvironmentError: there is none of this name.
    """
    stored = find_environment(connection, name)
    if stored is None:
        names = (each.name for each in environments(connection) if not each.is_workspace)
        raise UnknownEnvironmentError(name, tuple(names))
    return stored


def find_environment(connection: sa.Connection, name: str) -> Environment | None:
    """Read an environment, or None."""
    row = connection.execute(_NAMED, {"named": name}).first()
    return None if row is None else read_as(Environment, row)


def environments(connection: sa.Connection) -> list[Environment]:
    """Read all environments, workspaces included, by name."""
    rows = connection.execute(sa.select(ENVIRONMENTS).order_by(ENVIRONMENTS.c.name))
    return [read_as(Environment, row) for row in rows]


def save_environment(connection: sa.Connection, saved: Environment) -> None:
    """Create an environment, or change all of its settings."""
    values = values_of(saved)
    changed = sa.update(ENVIRONMENTS).where(ENVIRONMENTS.c.name == saved.name).values(values)
    if connection.execute(changed).rowcount == 0:
        connection.execute(sa.insert(ENVIRONMENTS).values(values))


def finalize(
    connection: sa.Connection, name: str, plan_id: str, removed: tuple[str, ...], now: datetime
) -> None:
    """Write that a plan was published here."""
    done = sa.update(ENVIRONMENTS).where(ENVIRONMENTS.c.name == name)
    connection.execute(done.values(finalized_at=now, finalized_by=plan_id, removed=removed or None))


def forget_environment(connection: sa.Connection, name: str, now: datetime) -> None:
    """Remove an environment, its pointers and what is known of it alone, whatever it is.

    Another one may have its name later, and is none of what this one was.
    """
    for table in (CUTOFFS, OWED, FAILED_STARTS, PUBLISHED_AUDITS, RESULTS):
        connection.execute(sa.delete(table).where(table.c.environment == name))
    pointers.remove_pointers(connection, name, now)
    connection.execute(sa.delete(ENVIRONMENTS).where(ENVIRONMENTS.c.name == name))


def _check_alive(connection: sa.Connection, plan_id: str) -> None:
    plan, alive = find_plan(connection, plan_id), NOT_ENDED
    if plan is not None and plan.status not in alive:
        raise wrong_status(plan_id, plan.status, alive)


def _return_tables(connection: sa.Connection, name: str, own: list[str]) -> None:
    """Return tables that the workspace had taken over to the environments that read them."""
    # Holds write nothing.
    holds = {*connection.execute(sa.select(HOLDS.c.environment)).scalars()}
    readers = {
        each.version: each.environment
        for each in pointers.all_pointers(connection)
        if each.environment not in holds
    }
    for version in own:
        if version in readers and versions.find_owner(connection, version) == name:
            versions.set_owner(connection, version, readers[version])


def _create_workspace(
    connection: sa.Connection, request: WorkspaceRequest, name: str
) -> Environment:
    opened = next_number(connection)
    made = Environment(name, protected=False, follows=request.environment, opened=opened)
    save_environment(connection, made)
    for each in request.owed:
        mark = owed.Mark(each.reason, request.plan_id, request.environment)
        owed.mark_owed(connection, each.version, each.cells, mark)
    save_cutoffs(connection, request.plan_id, request.cutoffs, opened)
    return made


def _point(connection: sa.Connection, plan_id: str, model: WorkspaceModel, now: datetime) -> None:
    at = replace(model.pointer, environment=workspace_name(plan_id))
    new_version = NewVersion(at.version, at.model, model.path, at.environment, plan_id)
    versions.ensure_version(connection, new_version)
    versions.set_owner(connection, at.version, at.environment)
    pin = versions.known_head(connection, at.version)
    pointers.put_pointer(connection, replace(at, delta_version=pin), now)


def _check_owner(connection: sa.Connection, version: str, name: str, followed: Environment) -> None:
    """Make sure that a table may become the workspace's own.

    It may when the table has no owner, when the environment whose history the plan changes does, or when an
    unprotected one does and the plan is for a protected one.
    """
    holder = _other_holder(connection, version, followed)
    if holder is not None and holder.name != name:
        raise owned_elsewhere(version, holder.name, name)


def _other_holder(
    connection: sa.Connection, version: str, followed: Environment
) -> Environment | None:
    """Find the other environment that alone writes a table, and keeps it from plans for this one."""
    owner = versions.find_owner(connection, version)
    if owner in (None, followed.name):
        return None
    holder = find_environment(connection, owner)
    if holder is None or (followed.protected and not holder.protected and not holder.is_workspace):
        return None
    return holder
