"""Open the project that a command works on: settings, catalog, state and, when needed, Spark."""

from __future__ import annotations

import os
import pwd
import uuid
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backfill_assets.cli.manifest import load
from backfill_assets.cli.output import err, say
from backfill_assets.cli.progress import AT_WORK
from backfill_assets.cli.signing import signer_of
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.engine.project.channels import channels_of
from backfill_assets.engine.project.gate import gate_of
from backfill_assets.engine.project.plan_terms import terms_of
from backfill_assets.engine.project.project import Project
from backfill_assets.errors import BackfillAssetsError, DeclarationError
from backfill_assets.planning.plan import written_options
from backfill_assets.reading import absent_state
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.snapshots.person import Person, verified_person
from backfill_assets.state.store import Store
from backfill_assets.warehouse.spark.session import spark_settings
from backfill_assets.warehouse.spark.shared_session import SharedSession

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from backfill_assets.models.graph import Graph
    from backfill_assets.settings import Settings
    from backfill_assets.snapshots.loaded import Loaded

_QUIET = Path(__file__).with_name("log4j2.properties")


class LazySpark(SharedSession):
    """A Spark session that is started on first use, for commands that may not need one."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(spark_settings(settings, _quiet()))
        self._lacking: BackfillAssetsError | None = None

    def __call__(self) -> Any:  # noqa: ANN401 - a Spark session
        """Give the session, and report the step in which it is started.

        Raises:
            BackfillAssetsError: it can't be started; if the set-up lacks something, later calls raise
                the same error without another start.
        """
        if self._lacking is not None:
            raise self._lacking
        if self.started:
            return super().__call__()
        try:
            with AT_WORK.at(Phase.STARTING):
                return super().__call__()
        except BackfillAssetsError as error:
            from backfill_assets.engine.batch.failure_kinds import kind_of  # noqa: PLC0415 - it imports Spark

            self._lacking = error if kind_of(error) is FailureKind.SETUP else None
            raise


def _quiet() -> dict[str, str]:
    """The settings by which Spark logs errors only: its other lines are for its developers."""
    return {
        "spark.log.level": "ERROR",
        # The level above counts once Spark has started; this file counts from the first line.
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{_QUIET}",
    }


def now() -> datetime:
    """Read the clock: the only place in the CLI that does."""
    return datetime.now(UTC)


def clock_at(asked: str | None) -> Callable[[], datetime]:
    """Give the clock that a command works by: the machine's, or a clock that begins at an instant.

    Batches are recorded by it, too; leases and heartbeats go by the machine's, whatever was asked.

    Raises:
        RequestError: it is no instant with its offset.
    """
    instant = written_options.instant(asked)
    if instant is None:
        return now
    began = now()
    return lambda: instant + (now() - began)


def load_graph(settings: Settings) -> Graph:
    """Give the declarations as they are on disk, checked.

    Raises:
        CatalogError: the catalog can't be imported or lacks MODELS or SOURCES.
        DeclarationError: a declaration in it is wrong.
    """
    return load(settings).graph


def loaded_fingerprints(settings: Settings) -> Mapping[str, str]:
    """Give the fingerprint ids of the declarations as they are on disk now.

    Raises:
        CatalogError: the catalog can't be imported any more.
        DeclarationError: a declaration in it is wrong.
    """
    return load(settings).fingerprints


def open_store(settings: Settings) -> Store:
    """Open the state to write in it; create and report a new state if it does not exist.

    Raises:
        TablesWithoutStateError: there is no state, but there are tables that a state has written.
        DeclarationError: the data folder can't be made.
    """
    new = absent_state(settings)
    store = make_store(settings)
    if new is not None:
        say(f"the state at {new} is new: no table is known to it yet", to=err)
    return store


def make_store(settings: Settings) -> Store:
    """Open the state, whatever tables there are; create it and the data folder if they do not exist.

    Raises:
        DeclarationError: the folder can't be made.
    """
    if "://" not in settings.data_root:
        try:
            Path(settings.data_root).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DeclarationError(
                found=f"the data folder {settings.data_root} can't be used: "
                f"{error.strerror or str(error)}",
                do="name a folder that you may write to in BACKFILL_DATA_DIR",
            ) from error
    return _kept_store(settings)


def _kept_store(settings: Settings) -> Store:
    return Store.open(
        settings.state,
        clock=now,
        lease_seconds=settings.lease_seconds,
        data_root=settings.data_root,
    )


@contextmanager
def store_looked_at(settings: Settings) -> Iterator[Store]:
    """Open the state for reading: if it does not exist, an empty state that is not kept.

    Raises:
        TablesWithoutStateError: there is no state, but there are tables that a state has written.
    """
    if absent_state(settings) is None:
        opened = _kept_store(settings)
    else:
        opened = Store.empty(
            clock=now, lease_seconds=settings.lease_seconds, data_root=settings.data_root
        )
    with opened as store:
        yield store


@contextmanager
def opened_project(
    settings: Settings,
    loaded: Loaded,
    store: Store,
    *,
    clock: Callable[[], datetime] | None,
) -> Iterator[Project]:
    """Give the project that the settings name, and stop its Spark after it."""
    spark = LazySpark(settings)
    project = Project(
        store=store,
        loaded=loaded,
        spark=spark,
        data_root=settings.data_root,
        clock=clock or now,  # as it is when the command begins: a test may have set another
        run_id=f"cli-{uuid.uuid4().hex[:12]}",
        who=str(who_asks(settings)),
        batches_at_once=settings.max_batches,
        terms=terms_of(settings),
        code=lambda: loaded_fingerprints(settings),
        at_work=AT_WORK,
        views=settings.views,
        gate=lambda: gate_of(settings),
        sign=signer_of(settings),
        deliver=channels_of(settings.channels),
    )
    try:
        yield project
    finally:
        spark.stop()


def who_asks(settings: Settings) -> Person:
    """Name the person at work: the user of the operating system; what the settings say is a claim."""
    return verified_person(os_user(), settings.user)


def os_user() -> str:
    """Name the user whom the operating system runs this process for, whatever LOGNAME or USER say."""
    number = os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a container may run under a number that has no name
        return f"uid {number}"
