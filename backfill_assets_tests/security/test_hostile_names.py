"""Names, texts and paths that are meant to break out of a statement: they work, or are refused."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from backfill_assets.engine.plans.making import plan_of
from backfill_assets.engine.project.events import Failed
from backfill_assets.errors import DeclarationError, RequestError
from backfill_assets.intervals import Daily
from backfill_assets.models.column import Column
from backfill_assets.models.graph import Graph
from backfill_assets.models.kind import IncrementalByUniqueKey
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.planning.plan.request import PlanRequest, Restatement
from backfill_assets.planning.plan.request_rules import is_condition
from backfill_assets.state.store import Store
from backfill_assets.warehouse.spark.session import batch_session
from backfill_assets_tests.builders import a_graph, a_model, a_source, days
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import LEASE, World, ended, kept, on, read, row, told
from backfill_assets_tests.making import project_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from backfill_assets_tests.engine.world import Clock

VISITS = "web.visits"
CADENCE = Daily(start="2024-01-09")
HOSTILE = (
    "web.visits; DROP TABLE x",
    "web.`visits`",
    "web.visits'--",
    "../../etc.passwd",
    "web.visits\n",
    "web.vi sits",
    "Web.visits",
    "web.visits.more",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_model_and_a_source_can_not_be_called_so(name: str):
    with pytest.raises(DeclarationError, match="is not a usable name; expected two"):
        a_model(name)
    with pytest.raises(DeclarationError, match="is not a usable name; expected two"):
        a_source(name)


@pytest.mark.parametrize("name", ["dev; drop", "../prod", "dev'x", "plan:p1", "a" * 41, "dev\n"])
def test_an_environment_can_not_be_called_so(name: str, tmp_path: Path, clock: Clock):
    store = Store.open(f"sqlite:///{tmp_path}/state.db", clock=clock)
    project = project_of(store, a_graph(), clock=clock, data_root=tmp_path)

    with pytest.raises(RequestError, match="a name has up to 40 lower-case letters, digits and"):
        plan_of(project, PlanRequest(environment=name))
    store.close()


@pytest.mark.parametrize(
    "where",
    [
        "cost = 1) OR (TRUE",
        "cost = 1; DROP TABLE x",
        "TRUE --",
        "TRUE /* more */",
        "cost IN (SELECT cost FROM web.other)",
        "SELECT 1",
        "DROP TABLE x",
        "id = :id",
        "",
    ],
)
def test_a_condition_that_is_more_than_one_is_none(where: str):
    assert not is_condition(where)


@pytest.mark.parametrize(
    "where",
    ["cost = 1", "name = 'it''s' OR `id` BETWEEN 1 AND 2", "TRUE", "lower(name) LIKE 'a;b--%'"],
)
def test_a_condition_is_one(where: str):
    assert is_condition(where)


@pytest.fixture
def elsewhere(spark: SparkSession, tmp_path: Path, clock: Clock) -> Iterator[World]:
    """A world in a folder whose name means something to every shell and every parser."""
    root = tmp_path / "it's a `b`; DROP TABLE x -- $HOME ü"
    root.mkdir()
    url = f"sqlite:///{root / 'state.db'}"
    with Store.open(
        url, clock=clock, lease_seconds=LEASE.total_seconds(), data_root=str(root)
    ) as store:
        yield World(spark, root, store, clock)


@pytest.mark.spark
def test_a_folder_of_any_name_is_written_planned_compared_and_restored(elsewhere: World):
    world, plans = elsewhere, Plans(elsewhere)
    graph = a_graph(a_model(cadence=CADENCE))
    world.land(a_source(), row(9), row(10))
    assert told(world.fill(graph)[VISITS]) == ["committed"]
    world.scribble(VISITS, row(9, 7, 7.0))  # a stranger's rows are taken back
    world.land(a_source(), row(9, 1, 5.0), row(10))
    plan = plans.published(
        graph, restate=(Restatement(VISITS, "2024-01-09", "2024-01-09"),), where="cost < 1000"
    )
    assert plan.request.where
    assert world.rows(VISITS) == kept(row(9, 1, 5.0), row(10))


NASTY = ("a`b", "it's", 'say"x"', "x--", "$x", "back\\slash", "a.b", "/*")


def nasty(names: tuple[str, ...], kind: Any = None) -> Graph:  # noqa: ANN401
    """A model whose columns are called so; the source has plain names."""
    columns = (Column("ds", "date"), *(Column(name, "string") for name in names))
    quoted = ", ".join(
        "c{} AS `{}`".format(at, name.replace("`", "``")) for at, name in enumerate(names)
    )
    sql = f"SELECT ds, {quoted} FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"  # noqa: S608
    given: dict[str, Any] = {} if kind is None else {"kind": kind}
    model = a_model(
        query=SqlQuery(sql),
        columns=columns,
        unique_key=["ds", *names[:1]],
        cadence=CADENCE,
        **given,
    )
    plain = (Column("ds", "date"), *(Column(f"c{at}", "string") for at, _ in enumerate(names)))
    return a_graph(model, sources=[a_source(columns=plain)])


def land(world: World, names: tuple[str, ...], *values: str) -> None:
    listed = [
        {"ds": on(9), **{f"c{at}": f"{value}{at}" for at, _ in enumerate(names)}}
        for value in values
    ]
    write_deltalake(str(world.root / "web/events"), pa.Table.from_pylist(listed), mode="overwrite")


VALUES = ("'; DROP TABLE x --", "`", "\\'", "$" + "{spark.app.name}", '"}', "\n", "")


@pytest.mark.spark
@pytest.mark.parametrize("kind", [None, IncrementalByUniqueKey("ds")], ids=["replaced", "merged"])
def test_columns_of_any_name_and_values_of_any_text_arrive_as_they_are(world: World, kind: Any):  # noqa: ANN401
    world.clock.now = world.clock.now.replace(day=10)
    graph = nasty(NASTY, kind)
    land(world, NASTY, *VALUES)
    events = world.fill(graph)[VISITS]
    assert [event.error for event in ended(events, Failed)] == []
    land(world, NASTY, *VALUES, "more")
    Plans(world).published(graph, restate=(Restatement(VISITS),))
    found = read(world.path(VISITS), NASTY, world.pointer(VISITS).delta_version)
    expected = [tuple(f"{value}{at}" for at, _ in enumerate(NASTY)) for value in (*VALUES, "more")]
    assert sorted(found) == sorted(expected)


@pytest.mark.spark
@pytest.mark.parametrize("name", ["a;b", "a=b"])
def test_a_field_that_delta_can_not_hold_fails_its_batch_and_nothing_is_written(
    world: World, name: str
):
    sql = f"SELECT ds, named_struct('{name}', 1) AS c FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"  # noqa: S608
    columns = [Column("ds", "date"), Column("c", f"struct<`{name}`:int>")]
    model = a_model(query=SqlQuery(sql), columns=columns, unique_key=["ds"], cadence=CADENCE)
    source = a_source(columns=[Column("ds", "date"), Column("c0", "string")])
    land(world, ("c",), "x")
    (failed,) = ended(world.fill(a_graph(model, sources=[source]), cells=days(9))[VISITS], Failed)
    assert f"the column or field {name!r} has a name that a Delta table can't store" in failed.error
    assert world.head(VISITS) == -1


@pytest.mark.spark
def test_a_condition_that_breaks_out_is_refused_before_anything_is_planned(world: World):
    graph = a_graph(a_model(cadence=CADENCE))
    world.land(a_source(), row(9))
    world.fill(graph)
    with pytest.raises(RequestError, match="--where"):
        Plans(world).make(graph, restate=(Restatement(VISITS),), where="TRUE) OR (TRUE")
    assert world.rows(VISITS, "cost") == [(Decimal("1.00"),)]


@pytest.mark.spark
def test_a_query_is_run_as_it_is_written(spark: SparkSession):
    written = "$" + "{env:HOME} $" + "{system:user.name} $" + "{spark.app.name}"
    (found,) = batch_session(spark).sql(f"SELECT '{written}' AS text").collect()
    assert found["text"] == written
