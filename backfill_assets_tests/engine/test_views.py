"""A file of views gives every model its name, with the very rows that its readers get."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from shutil import copytree
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from backfill_assets.engine.fill.fill import fill_cells
from backfill_assets.engine.plans.plan_verbs import rollback_plan, undo_plan
from backfill_assets.engine.project.opening import open_run
from backfill_assets.engine.project.views import published_views, rewrite_views
from backfill_assets.engine.upkeep.collecting import collect
from backfill_assets.intervals import Hourly
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByTimeRange
from backfill_assets.models.source import TimeColumns
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.reading import published
from backfill_assets.settings import Dialect, Settings, ViewsFile
from backfill_assets.snapshots.environment import PROD, Environment, workspace_name
from backfill_assets.state.store import Store
from backfill_assets.warehouse.views import view_file
from backfill_assets.warehouse.views.published_views import nothing_of, null_of
from backfill_assets.warehouse.views.view_file import replace_file, views_sql
from backfill_assets_tests.builders import EVENTS, a_graph, a_model, a_source, a_whole
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import (
    CADENCE,
    COSTS,
    MORE,
    OLD,
    ROWS,
    VISITS,
    changed,
    visits,
)
from backfill_assets_tests.engine.world import World, on, row, run_targets

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

HOURS = (Column("at", "timestamp"), Column("id", "bigint"))
BY_HOUR = a_source(columns=HOURS, times=TimeColumns(event="at"))
HOURLY = a_model(
    VISITS,
    sql=f"SELECT at, id FROM {EVENTS} WHERE at >= :start_ts AND at < :end_ts",
    kind=IncrementalByTimeRange("at"),
    cadence=Hourly(start="2024-01-10T20:00:00Z"),
    columns=HOURS,
    unique_key=["at", "id"],
)
BY_HOURS = a_graph(HOURLY, sources=[BY_HOUR])
IN_DUCKDB = {"ds": "DATE", "id": "BIGINT", "cost": "DECIMAL(18,2)", "double": "DECIMAL(18,2)"}


@pytest.fixture
def plans(world: World) -> Plans:
    return Plans(world)


@dataclass
class Views:
    """A database of DuckDB, into which files of views are executed."""

    connection: duckdb.DuckDBPyConnection

    def execute(self, world: World, environment: str = PROD) -> None:
        self.connection.execute(
            views_sql(Dialect.DUCKDB, published_views(world.store, environment))
        )

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        found = self.connection.execute(f"FROM {quoted(name)}").fetchall()
        return sorted((tuple(map(plain, values)) for values in found), key=str)

    def columns(self, name: str) -> dict[str, str]:
        found = self.connection.execute(f"DESCRIBE {quoted(name)}").fetchall()
        return {column: dtype for column, dtype, *_ in found}

    @property
    def names(self) -> list[str]:
        found = self.connection.execute(
            "SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE NOT internal"
        )
        return sorted(name for (name,) in found.fetchall())


@pytest.fixture
def views() -> Views:
    connection = duckdb.connect(config={"autoload_known_extensions": False})
    connection.execute("SET TimeZone = 'Asia/Tokyo'")  # what is read must not depend on it
    return Views(connection)


def quoted(name: str) -> str:
    return ".".join(f'"{part}"' for part in name.split("."))


def plain(value: object) -> object:
    """Instants as text in UTC, whatever a reader makes of them."""
    if isinstance(value, datetime):
        instant = value if value.tzinfo else value.replace(tzinfo=UTC)
        return instant.astimezone(UTC).isoformat()
    return value


def read(world: World, model: str, environment: str = PROD) -> list[tuple[Any, ...]]:
    """What a reader of the library gets."""
    settings = Settings(data_dir=str(world.root), state_url=f"sqlite:///{world.root}/state.db")
    rows = published(environment, settings=settings).read(model, spark=world.spark).collect()
    return sorted((tuple(map(plain, values)) for values in rows), key=str)


def restated(world: World, plans: Plans, environment: str = PROD) -> Any:  # noqa: ANN401
    """Day 8 was wrong: its cost is 99."""
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    return plans.make(OLD, environment, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))


def test_every_model_is_a_view_with_the_rows_that_its_readers_get(world: World, views: Views):
    world.begin(OLD, *ROWS)
    views.execute(world)
    assert views.names == [COSTS, VISITS]
    for name in (VISITS, COSTS):
        assert views.rows(name) == read(world, name)
    assert views.columns(VISITS) == {name: IN_DUCKDB[name] for name in ("ds", "id", "cost")}


@pytest.mark.parametrize("layered", [False, True], ids=["its own table", "over that of prod"])
def test_a_model_of_one_cell_is_a_view_with_the_rows_that_its_readers_get(
    world: World,
    plans: Plans,
    views: Views,
    layered: bool,  # noqa: FBT001 - a case
):
    whole = a_graph(a_whole(VISITS))
    world.begin(whole, *ROWS)
    if layered:
        world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
        world.land(a_source(), *changed(row(8, 1, 99.0)))
        plans.published(whole, "dev", restate=(Restatement(VISITS),))
    environment, name = ("dev", f"web__dev.{VISITS[4:]}") if layered else (PROD, VISITS)

    views.execute(world, environment)

    assert len(read(world, VISITS, environment)) == len(ROWS)
    assert views.rows(name) == read(world, VISITS, environment)


def test_a_file_executed_again_swaps_all_views_to_another_moment(
    world: World, plans: Plans, views: Views
):
    world.begin(OLD, *ROWS)
    views.execute(world)
    plan = restated(world, plans)
    plans.apply(OLD, plan)
    plans.promote(OLD, plan)
    before = views.rows(VISITS)
    views.execute(world)
    assert views.rows(VISITS) == read(world, VISITS) != before
    assert views.rows(COSTS) == read(world, COSTS)


def test_what_fails_in_the_middle_leaves_every_view_as_it_was(
    world: World, plans: Plans, views: Views
):
    world.begin(OLD, *ROWS)
    views.execute(world)
    before = views.rows(COSTS)
    plans.published(MORE)
    text = views_sql(Dialect.DUCKDB, published_views(world.store, PROD))
    with pytest.raises(duckdb.Error):
        views.connection.execute(text.replace("COMMIT", "SELECT nothing_like_this"))
    views.connection.execute("ROLLBACK")
    assert views.rows(COSTS) == before
    assert "double" not in views.columns(VISITS)


def test_a_column_is_null_in_files_that_lack_it_also_where_all_do(
    world: World, plans: Plans, views: Views
):
    world.begin(OLD, *ROWS)
    plan = plans.make(MORE, forward_only=True)
    plans.apply(MORE, plan)
    plans.promote(MORE, plan)
    views.execute(world)
    assert views.rows(VISITS) == read(world, VISITS)
    assert {double for *_, double in views.rows(VISITS)} == {None}
    assert views.columns(VISITS) == IN_DUCKDB
    world.clock.now = world.clock.now.replace(day=12)
    world.land(a_source(), *ROWS, row(11, 1, 11.0))
    world.fill(MORE)
    views.execute(world)
    assert views.rows(VISITS) == read(world, VISITS)
    assert {double for ds, *_, double in views.rows(VISITS) if ds == on(11)} == {22}


def test_a_published_model_without_rows_is_an_empty_view_with_its_types(world: World, views: Views):
    world.begin(OLD)
    views.execute(world)
    assert views.rows(VISITS) == read(world, VISITS) == []
    assert views.columns(VISITS) == {name: IN_DUCKDB[name] for name in ("ds", "id", "cost")}


def at(hour: int, id_: int = 1) -> tuple[datetime, int]:
    return (datetime(2024, 1, 10, hour, 30, tzinfo=UTC), id_)


def test_hours_that_share_a_file_are_read_each_from_where_it_is_published(
    world: World, plans: Plans, views: Views
):
    world.land(BY_HOUR, at(20), at(21), at(22), at(23))
    world.fill(BY_HOURS)
    views.execute(world)
    assert views.rows(VISITS) == read(world, VISITS)
    assert views.columns(VISITS) == {"at": "TIMESTAMP WITH TIME ZONE", "id": "BIGINT"}
    world.land(BY_HOUR, at(20), at(21, 7), at(21, 8), at(23))
    hours = Restatement(VISITS, "2024-01-10T21:00:00Z", "2024-01-10T22:00:00Z")
    plan = plans.make(BY_HOURS, restate=(hours,))
    plans.apply(BY_HOURS, plan)
    workspace = workspace_name(plan.plan_id)
    assert len(published_views(world.store, workspace).views[0].table.under) > 0
    views.execute(world, workspace)
    name = f"web__{workspace}.visits"
    assert views.rows(name) == read(world, VISITS, workspace) != views.rows(VISITS)


def test_an_environment_that_follows_another_shows_its_own_days_over_the_others(
    world: World, plans: Plans, views: Views
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plans.apply(OLD, restated(world, plans, "dev"))
    views.execute(world)
    views.execute(world, "dev")
    assert views.names == [COSTS, VISITS, "web__dev.costs", "web__dev.visits"]
    for name in ("visits", "costs"):
        assert views.rows(f"web__dev.{name}") == read(world, f"web.{name}", "dev")
        assert views.rows(f"web.{name}") == read(world, f"web.{name}")
    assert views.rows("web__dev.visits") != views.rows(VISITS)


def test_a_model_that_is_not_published_any_more_loses_its_view(
    world: World, plans: Plans, views: Views
):
    only = a_graph(visits())
    world.begin(only, *ROWS)
    plan = plans.published(OLD)
    views.execute(world)
    views.connection.execute("CREATE VIEW web.own AS SELECT 1")
    assert views.names == [COSTS, "web.own", VISITS]
    rollback_plan(plans.project(OLD), plan)
    views.execute(world)
    assert views.names == ["web.own", VISITS]


def test_names_and_paths_hold_any_character(tmp_path: Path, session: Any, views: Views, clock: Any):  # noqa: ANN401
    root = tmp_path / 'it\'s; *one* of "these"'
    root.mkdir()
    odd = Column('"it`s".\\/*', "bigint")
    sql = f'SELECT ds, id AS `"it``s".\\/*` FROM {EVENTS} WHERE ds >= :start_ds AND ds < :end_ds'
    model = a_model(
        sql=sql, columns=(Column("ds", "date"), odd), unique_key=["ds", odd.name], cadence=CADENCE
    )
    with Store.open(f"sqlite:///{root / 'state.db'}", clock=clock, data_root=str(root)) as store:
        world = World(session, root, store, clock)
        world.begin(a_graph(model), *ROWS)
        # As a pattern, the name of the folder would match this one, too.
        copytree(root, root.with_name(root.name.replace("*", "some")))
        views.execute(world)
        assert views.rows(VISITS) == read(world, VISITS)
        assert list(views.columns(VISITS)) == ["ds", odd.name]


@pytest.mark.parametrize(
    ("dtype", "shown"),
    [
        ("dec", "DECIMAL(10,0)"),
        ("array<numeric>", "DECIMAL(10,0)[]"),
        ("decimal(5)", "DECIMAL(5,0)"),
        ("struct<a int not null comment 'b', `c-d`: decimal>", 'STRUCT(a INTEGER, "c-d" DECIMAL(10,0))'),
        ("map<string, struct<A: timestamp_ltz>>", "MAP(VARCHAR, STRUCT(A TIMESTAMP WITH TIME ZONE))"),
    ],
)  # fmt: skip
def test_a_column_has_its_type_in_whatever_spelling_it_is_declared(
    views: Views, dtype: str, shown: str
):
    views.connection.execute(f"CREATE VIEW one AS {nothing_of({'x': dtype}, 'duckdb')}")
    assert views.columns("one") == {"x": shown}


def test_trino_is_told_types_that_it_knows():
    assert null_of("timestamp_ltz", "trino") == "CAST(NULL AS TIMESTAMP WITH TIME ZONE)"
    assert null_of("decimal", "trino") == "CAST(NULL AS DECIMAL(10, 0))"


def statements(text: str) -> list[str]:
    return [statement for statement in text.split(";\n") if statement.strip()]


@pytest.mark.spark
def test_spark_reads_the_same_by_name(world: World, plans: Plans, spark: SparkSession):
    world.begin(OLD, *ROWS)
    plan = plans.make(MORE, forward_only=True)
    plans.apply(MORE, plan)
    plans.promote(MORE, plan)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    day = Restatement(VISITS, "2024-01-08", "2024-01-08")
    plans.apply(MORE, plans.make(MORE, "dev", restate=(day,)))
    for environment, schema in ((PROD, "web"), ("dev", "web__dev")):
        text = views_sql(Dialect.SPARK, published_views(world.store, environment))
        for statement in statements(text):
            spark.sql(statement)
        for name in ("visits", "costs"):
            rows = spark.table(f"{schema}.{name}").collect()
            found = sorted((tuple(map(plain, values)) for values in rows), key=str)
            assert found == read(world, f"web.{name}", environment)
        spark.sql(f"DROP SCHEMA {schema} CASCADE")


def test_trino_registers_each_table_once_and_reads_it_at_its_version(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plans.apply(OLD, restated(world, plans, "dev"))
    dev = published_views(world.store, "dev")
    text = views_sql(Dialect.TRINO, dev)
    parsed = [sqlglot.parse_one(statement, read="trino") for statement in statements(text)]
    calls = [tree for tree in parsed if isinstance(tree, exp.Command)]
    made = [tree for tree in parsed if isinstance(tree, exp.Create) and tree.kind == "VIEW"]
    assert [tree.this.sql("trino") for tree in made] == [
        '"web__dev"."costs"',
        '"web__dev"."visits"',
    ]
    read_at = {
        (table.db, table.name, int(table.args["version"].expression.name))
        for tree in made
        for table in tree.expression.find_all(exp.Table)
    }
    tables = {
        (version, path): layer
        for view in dev.views
        for path, version in view.versions.items()
        for layer in (view.table, *view.table.under)
        if layer.path == path
    }
    assert read_at == {
        ("web__dev", version, layer.delta_version) for (version, _), layer in tables.items()
    }
    assert len(calls) == len(tables)
    for version, path in tables:
        assert f"table_name => '{version}', table_location => 'file://{path}')" in text


def test_a_file_is_replaced_whole_or_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "views.sql"
    replace_file(file, "old")

    def full(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.replace", full)
        with pytest.raises(OSError, match="no space"):
            replace_file(file, "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]
    replace_file(file, "new")
    assert file.read_text() == "new"


def following(world: World, *files: ViewsFile) -> Plans:
    return Plans(world, given={"views": files})


def shown(file: ViewsFile, name: str) -> list[tuple[Any, ...]]:
    views = Views(duckdb.connect())
    views.connection.execute(file.path.read_text())
    return views.rows(name)


def test_a_run_that_filled_something_writes_its_files_and_one_that_found_nothing_does_not(
    world: World, tmp_path: Path
):
    file = ViewsFile(Dialect.DUCKDB, tmp_path / "views.sql")
    world.land(a_source(), *ROWS)
    run = open_run(world.project(OLD, views=(file,)), PROD)
    fill_cells(run, {VISITS: run_targets(run, VISITS)}, world.heard.append)
    assert shown(file, VISITS) == read(world, VISITS)
    file.path.unlink()
    fill_cells(run, {VISITS: run_targets(run, VISITS)}, world.heard.append)
    assert not file.path.exists()


@pytest.mark.parametrize("back", [rollback_plan, undo_plan])
def test_promotion_and_the_way_back_write_the_files_of_all_who_read_the_environment(
    world: World,
    tmp_path: Path,
    back: Any,  # noqa: ANN401
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    world.store.environments.save_environment(Environment("other", protected=False))
    prod, dev, other = (
        ViewsFile(Dialect.DUCKDB, tmp_path / f"{name}.sql", name) for name in (PROD, "dev", "other")
    )
    plans = following(world, prod, dev, other)
    plan = restated(world, plans)
    plans.apply(OLD, plan)
    assert not prod.path.exists()  # what a workspace is built is not published
    rows = read(world, VISITS)
    assert plans.promote(OLD, plan).number
    assert shown(prod, VISITS) == read(world, VISITS) != rows
    back(plans.project(OLD), plan)
    assert shown(prod, VISITS) == rows
    assert shown(dev, "web__dev.visits") == rows
    assert not other.path.exists()


def test_a_file_that_can_not_be_written_is_told_of_and_the_publication_stands(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    world.begin(OLD, *ROWS)
    file = ViewsFile(Dialect.DUCKDB, tmp_path / "nowhere" / "views.sql")
    plans = following(world, file)
    plan = restated(world, plans)
    plans.apply(OLD, plan)
    with caplog.at_level(logging.WARNING):
        assert plans.promote(OLD, plan).number
    (told,) = caplog.messages
    assert str(file.path) in told
    assert "the next publication writes them again" in told
    file.path.parent.mkdir()
    rollback_plan(plans.project(OLD), plan)
    assert shown(file, VISITS) == read(world, VISITS)


def test_who_is_overtaken_while_writing_writes_what_is_published_by_then(
    world: World, tmp_path: Path, plans: Plans, monkeypatch: pytest.MonkeyPatch
):
    world.begin(OLD, *ROWS)
    file = ViewsFile(Dialect.DUCKDB, tmp_path / "views.sql")
    plan = restated(world, plans)
    plans.apply(OLD, plan)
    slow: list[object] = []

    def meanwhile(path: Path, text: str) -> None:
        if not slow:
            slow.append(plans.promote(OLD, plan))
        view_file.replace_file(path, text)

    monkeypatch.setattr("backfill_assets.engine.project.views.replace_file", meanwhile)
    rewrite_views(open_run(world.project(OLD, views=(file,)), PROD), PROD)
    assert shown(file, VISITS) == read(world, VISITS)


def test_a_collection_writes_them_too_for_it_joins_files(world: World, tmp_path: Path):
    world.begin(OLD, *ROWS)
    file = ViewsFile(Dialect.DUCKDB, tmp_path / "views.sql")
    run = open_run(world.project(OLD, views=(file,)), PROD)
    collect(run, timedelta(days=30))
    assert shown(file, VISITS) == read(world, VISITS)
