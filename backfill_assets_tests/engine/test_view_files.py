"""A file of views gives, in the engine that executes it, exactly what an environment publishes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from deltalake import write_deltalake

from backfill_assets.engine.plans.plan_verbs import promote_plan, rollback_plan
from backfill_assets.engine.project.events import Noted
from backfill_assets.engine.project.view_files import views_text, write_whole
from backfill_assets.errors import RequestError
from backfill_assets.intervals import Hourly, Interval, IntervalSet
from backfill_assets.models.column import Column
from backfill_assets.models.kind import IncrementalByTimeRange
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets.warehouse.files.tables import Table
from backfill_assets.warehouse.files.view_sql import Dialect, View, view_file
from backfill_assets_tests.builders import a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import COSTS, MORE, OLD, ROWS, VISITS, changed
from backfill_assets_tests.engine.world import row

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from backfill_assets_tests.engine.world import World

BAD = row(8, 1, 99.0)


def by_duckdb(sql: str, name: str, *columns: str) -> list[tuple[Any, ...]]:
    """Execute a file of views in an empty database, and read one of them."""
    with duckdb.connect() as connection:
        connection.execute(sql)
        selected = ", ".join(columns) or "*"
        return sorted(connection.sql(f"SELECT {selected} FROM {name}").fetchall())  # noqa: S608


def totals(world: World, name: str = COSTS, environment: str = PROD) -> list[int]:
    return totals_of(views_text(world.store, environment, Dialect.DUCKDB)[0], name)


def totals_of(sql: str, name: str = COSTS) -> list[int]:
    return [int(total) for _, total in by_duckdb(sql, name, "ds", "total")]


def test_duckdb_reads_what_is_published(world: World):
    world.begin(OLD, *ROWS)
    sql, models = views_text(world.store, PROD, Dialect.DUCKDB)
    assert models == (COSTS, VISITS)
    assert by_duckdb(sql, VISITS, "ds", "id", "cost") == world.rows(VISITS, "ds", "id", "cost")
    assert totals(world) == [7, 8, 9, 10]


def test_an_environment_whose_tables_lie_over_others_reads_each_cell_from_its_own_table(
    world: World,
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    world.land(a_source(), *changed(BAD))
    Plans(world).published(OLD, "dev", restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    assert world.store.environments.own_pointers("dev")[COSTS].under
    assert totals(world, f"web__dev.{COSTS.split('.')[1]}", "dev") == [7, 99, 9, 10]
    assert totals(world) == [7, 8, 9, 10]


def test_hours_that_share_a_file_are_read_from_the_table_that_answers_for_them(tmp_path: Path):
    hours = a_model(
        query=SqlQuery("SELECT at, v FROM web.events WHERE at >= :start_ts AND at < :end_ts"),
        kind=IncrementalByTimeRange("at"),
        cadence=Hourly(start="2024-01-01"),
        columns=[Column("at", "timestamp"), Column("v", "bigint"), Column("later", "string")],
        unique_key=["at"],
    )
    at = [datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in range(3)]
    lower, upper = str(tmp_path / "it's lower"), str(tmp_path / "upper")
    write_deltalake(lower, pa.table({"at": at, "v": [0, 1, 2], "_cell": at}))
    # What the upper table holds of other hours does not count.
    write_deltalake(upper, pa.table({"at": at[1:], "v": [10, 20], "_cell": at[1:]}))
    second = IntervalSet.of([Interval(at[1], at[2])])
    table = Table(upper, 0, second, under=(Table(lower, 0),))
    sql = view_file(Dialect.DUCKDB, PROD, {VISITS: View(hours, table)})
    assert by_duckdb(sql, VISITS, "v", "later") == [(0, None), (2, None), (10, None)]


def test_a_table_without_files_is_a_view_without_rows(tmp_path: Path):
    model, path = a_model(), str(tmp_path / "empty")
    write_deltalake(path, pa.table({"ds": pa.array([], pa.date32())}))
    sql = view_file(Dialect.DUCKDB, PROD, {VISITS: View(model, Table(path, 0))})
    assert by_duckdb(sql, VISITS, *(column.name for column in model.schema)) == []


def test_every_publication_of_prod_writes_the_file_that_is_asked_for(world: World, tmp_path: Path):
    out = tmp_path / "views.sql"
    plans = Plans(world)
    asked = {"view_files": (("duckdb", str(out)),)}
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(BAD))
    plan = plans.make(OLD, restate=(Restatement(VISITS),))
    plans.apply(OLD, plan)
    assert not out.exists()
    promote_plan(plans.project(OLD, **asked), plan)
    assert totals_of(out.read_text()) == [7, 99, 9, 10]
    rollback_plan(plans.project(OLD, **asked), plan)
    assert totals_of(out.read_text()) == [7, 8, 9, 10]


def test_a_file_that_cannot_be_written_keeps_nothing_from_being_published(
    world: World, tmp_path: Path
):
    heard: list[Any] = []
    plans = Plans(world)
    world.begin(OLD, *ROWS)
    plan = plans.make(MORE)
    plans.apply(MORE, plan)
    missing = str(tmp_path / "nowhere" / "views.sql")
    given = {"view_files": (("duckdb", missing),), "listener": heard.append}
    promote_plan(plans.project(MORE, **given), plan)
    (noted,) = [event for event in heard if isinstance(event, Noted)]
    assert f"{missing} can't be written: No such file or directory" in noted.note


def test_a_reader_finds_the_old_file_or_the_new_one(tmp_path: Path):
    out = tmp_path / "views.sql"
    write_whole(out, "old")
    before = out.stat().st_ino
    write_whole(out, "new")
    assert (out.read_text(), [*tmp_path.iterdir()]) == ("new", [out])
    assert out.stat().st_ino != before, "another file has taken its place"


def test_an_environment_that_has_published_nothing_has_no_views(world: World):
    with pytest.raises(RequestError, match="environment 'prod' has published nothing"):
        views_text(world.store, PROD, Dialect.DUCKDB)


def test_the_views_for_trino_are_its_sql(world: World):
    world.begin(OLD, *ROWS)
    sql, _ = views_text(world.store, PROD, Dialect.TRINO)
    statements = [line for line in sql.split(";\n") if line and not line.startswith("CALL")]
    assert len([sqlglot.parse_one(statement, dialect="trino") for statement in statements]) == 3
    assert sql.count("CALL delta.system.register_table(") == 2
    assert sql.count("FOR VERSION AS OF") == 2


@pytest.mark.spark
def test_spark_reads_what_is_published(world: World, spark: SparkSession):
    world.begin(OLD, *ROWS)
    sql, _ = views_text(world.store, PROD, Dialect.SPARK)
    for statement in sql.split(";\n"):
        if statement.strip():
            spark.sql(statement)
    found = spark.sql(f"SELECT total FROM {COSTS} ORDER BY ds").collect()  # noqa: S608
    spark.sql("DROP SCHEMA web CASCADE")
    assert [int(one["total"]) for one in found] == [7, 8, 9, 10]
