"""A data folder that was copied is whole: everything works on the copy, nothing touches the original."""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from backfill_assets.engine.plans.plan_verbs import rollback_plan
from backfill_assets.engine.project.events import Failed
from backfill_assets.engine.upkeep.collecting import collect
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.reading import published, resolve
from backfill_assets.render.origins import origins
from backfill_assets.render.plan_words import Naming
from backfill_assets.settings import Settings
from backfill_assets.state.store import Store
from backfill_assets_tests.builders import a_source, days
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import COSTS, MORE, OLD, ROWS, VISITS
from backfill_assets_tests.engine.world import LEASE, Clock, World, ended, on, row, told

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from backfill_assets_tests.postgres import Server


def settings_of(url: str, root: Path) -> Settings:
    return Settings(data_dir=str(root), state_url=url)


@contextmanager
def a_world(
    session: Any,  # noqa: ANN401
    url: str,
    root: Path,
    clock: Clock,
    runs: int,
) -> Iterator[World]:
    lease = LEASE.total_seconds()
    with Store.open(url, clock=clock, lease_seconds=lease, data_root=str(root)) as store:
        yield World(session, root, store, clock, runs)


def digest(folder: Path) -> str:
    """Every file with its content."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found.update(str(path).encode() + (path.read_bytes() if path.is_file() else b""))
    return found.hexdigest()


def texts(url: str, root: Path) -> str:
    """Every text of the state, and of the tables' logs; but for what deltalake notes for people."""
    engine = sa.create_engine(
        sa.make_url(url).set(drivername=url.partition(":")[0] + _DRIVER[url[:4]])
    )
    with closing(engine.connect()) as connection:
        page = sa.MetaData()
        page.reflect(connection)
        rows = [row for table in page.sorted_tables for row in connection.execute(sa.select(table))]
    engine.dispose()
    logs = root.glob("tables/*/*/_delta_log/*.json")
    actions = [json.loads(line) for log in logs for line in log.read_text().split("\n") if line]
    for each in actions:
        each.get("commitInfo", {}).pop("operationParameters", None)
    return "\n".join([*map(str, rows), *map(str, actions)])


_DRIVER = {"sqli": "", "post": "+psycopg"}


@pytest.mark.story
@pytest.mark.parametrize("state", ["sqlite", "postgresql"])
def test_all_works_on_a_copied_folder_and_the_original_is_never_touched(
    state: str,
    session: Any,  # noqa: ANN401
    tmp_path: Path,
    request: pytest.FixtureRequest,
):
    old, new, clock = tmp_path / "old", tmp_path / "it's new", Clock()
    old.mkdir()
    server: Server | None = None if state == "sqlite" else request.getfixturevalue("postgres")
    url = f"sqlite:///{old}/state.db" if server is None else server.create("original")
    with a_world(session, url, old, clock, 0) as world:
        first = filled(world)
    assert str(tmp_path) not in texts(url, old)

    shutil.copytree(old, new)
    copy = f"sqlite:///{new}/state.db" if server is None else copied(server)
    before = (digest(old), texts(url, old))
    if server is not None:  # what does not even find the original can't touch it
        shutil.rmtree(old)
    with a_world(session, copy, new, clock, 100) as world:
        works(world, first, settings_of(copy, new))
    assert str(tmp_path) not in texts(copy, new)
    if server is None:
        assert (digest(old), texts(url, old)) == before


def test_a_folder_without_the_tables_that_the_state_knows_is_named(world: World):
    world.land(a_source(), *ROWS)
    world.fill(OLD, VISITS, cells=days(7))
    shutil.rmtree(world.root / "tables")
    (failed,) = ended(world.fill(OLD, VISITS, cells=days(8))[VISITS], Failed)
    assert f"the table at {world.path(VISITS)} is missing" in failed.error
    assert "BACKFILL_DATA_DIR" in failed.error
    assert not (world.root / "tables").exists()


def copied(server: Server) -> str:
    """Copy the database of the original."""
    url = server.create("copy")
    engine = sa.create_engine(
        sa.make_url(server.url("postgres")).set(drivername="postgresql+psycopg"),
        isolation_level="AUTOCOMMIT",
    )
    with closing(engine.connect()) as connection:
        connection.execute(sa.text('DROP DATABASE "copy"'))
        connection.execute(sa.text('CREATE DATABASE "copy" TEMPLATE "original"'))
    engine.dispose()
    return url


def filled(world: World) -> Any:  # noqa: ANN401 - a plan
    """Days 7 to 9, a plan that was promoted, and one that is built and waits."""
    plans = Plans(world)
    world.clock.now -= timedelta(days=1)
    world.land(a_source(), *ROWS)
    world.fill(OLD)
    world.land(a_source(), *ROWS[:-1], row(8, 2, 80.0), ROWS[-1])
    plans.published(OLD, restate=(Restatement(VISITS, "2024-01-08", "2024-01-09"),))
    waiting = plans.make(MORE)
    plans.apply(MORE, waiting)
    return waiting


def totals(world: World) -> list[int]:
    return [int(total) for _, total in world.rows(COSTS, "ds", "total")]


def works(world: World, waiting: Any, settings: Settings) -> None:  # noqa: ANN401
    plans = Plans(world)
    assert totals(world) == [7, 88, 9]
    # A new day.
    world.clock.now += timedelta(days=1)
    events = world.fill(OLD, cells=days(10))
    assert told(events[VISITS]) == ["committed"]
    assert totals(world) == [7, 88, 9, 10]
    # What was built before the copy is promoted, and taken back.
    plans.promote(MORE, waiting)
    assert [int(two) for _, two in world.rows(VISITS, "ds", "double")] == [14, 16, 160, 18, 20]
    rollback_plan(plans.project(MORE), waiting)
    # A plan from making to promotion.
    world.land(a_source(), *ROWS[:-1], row(8, 2, 80.0), row(10, 1, 100.0))
    plan = plans.published(OLD, restate=(Restatement(VISITS, "2024-01-10", "2024-01-11"),))
    assert totals(world) == [7, 88, 9, 100]
    # Reading and explaining.
    for name in (VISITS, COSTS):
        (path, *_), *others = resolve(name, settings=settings).layers
        assert (path, others) == (world.path(name), [])
        assert path.startswith(f"{world.root}/tables/")
    rows = published(settings=settings).read(COSTS, spark=world.spark)
    assert sorted(int(record["total"]) for record in rows.collect()) == [7, 9, 88, 100]
    run = world.open(OLD)
    naming = Naming({name: model.cadence for name, model in run.graph.models.items()})
    (origin,) = origins(world.store.reading(), naming, run.view(), VISITS, days(10))
    assert origin.plan_id == plan.plan_id
    # Collecting deletes what is old here, and only here.
    world.clock.now += timedelta(days=40)
    gone = collect(world.open(OLD), timedelta(days=30)).tables
    assert gone
    assert all(table.path.startswith(f"{world.root}/tables/") for table in gone)
    assert not any((world.root / world.store.place(table.path)).exists() for table in gone)
    assert totals(world) == [7, 88, 9, 100]
    assert on(10) in {ds for ds, _ in world.rows(COSTS, "ds", "total")}
