from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from backfill_assets.errors import DeclarationError, RequestError
from backfill_assets.intervals import Daily, Hourly, Whole
from backfill_assets.models.audit import complete, reconciles, references
from backfill_assets.models.codec import dumps
from backfill_assets.models.column import Column
from backfill_assets.models.graph import build_graph, stored_graph
from backfill_assets.models.kind import (
    IncrementalByTimeRange,
    IncrementalByUniqueKey,
    KeepsDeleted,
    SoftDelete,
    Tombstone,
)
from backfill_assets.models.model import Model
from backfill_assets.models.source import TimeColumns
from backfill_assets.models.upstream import Upstream, own_cells
from backfill_assets.snapshots.snapshot import stored_model
from backfill_assets_tests.builders import COLUMNS, a_graph, a_model, a_source, a_whole

if TYPE_CHECKING:
    from backfill_assets.intervals import Cadence

FOUR = (
    a_model("web.a"),
    a_model("web.b", upstreams=["web.a", "web.events"]),
    a_model("web.c", upstreams=["web.b", Upstream("web.c", lookback=1)]),
    a_whole("web.d", upstreams=["web.a", "web.c"]),
)


@given(st.permutations(FOUR))
def test_the_order_of_dependency_does_not_depend_on_the_order_of_declaration(models: list):
    graph = a_graph(*models)

    assert graph.order == a_graph(*FOUR).order
    for name in graph.order:
        before = graph.order[: graph.order.index(name)]
        reads = {up.name for up in graph.models[name].reads} & {*graph.models} - {name}
        assert reads <= {*before}


def test_an_unknown_upstream_is_told_the_nearest_name():
    with pytest.raises(DeclarationError, match=r"'web.event' \(named by 'web.visits'\).*'web.ev"):
        a_graph(a_model(upstreams=["web.event"]))
    with pytest.raises(RequestError, match=r"known are web.visits"):
        a_graph(a_model()).model("shop.orders")


def test_a_circle_is_told_as_one():
    circle = (a_model("web.a", upstreams=["web.b"]), a_model("web.b", upstreams=["web.a"]))
    with pytest.raises(DeclarationError, match=r"in a circle: web.. -> web.. -> web..;"):
        a_graph(*circle)


def test_a_name_is_declared_once_among_models_and_sources():
    with pytest.raises(DeclarationError, match=r"'web.visits' is declared twice"):
        a_graph(a_model(), a_model())
    with pytest.raises(DeclarationError, match="is declared twice; every declaration has its"):
        build_graph([a_model("web.events", upstreams=[])], [a_source()])
    with pytest.raises(DeclarationError, match="is declared twice; every declaration has its"):
        build_graph([], [a_source(), a_source()])


def test_a_query_reads_only_what_its_model_declares():
    sneaky = a_model(
        upstreams=["web.events"],
        sql="SELECT e.ds, e.id, o.cost FROM web.events e JOIN shop.orders o USING (id) "
        "WHERE e.ds >= :start_ds AND e.ds < :end_ds",
    )
    with pytest.raises(DeclarationError, match=r"reads shop.orders, which .* `upstreams`"):
        a_graph(sneaky)
    with pytest.raises(
        DeclarationError, match=r"reads delta./tmp/x.*, which the model does not declare"
    ):
        a_graph(a_whole("web.all", upstreams=[], sql="SELECT * FROM delta.`/tmp/x`"))


WHERE = "FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (f"SELECT ds, id, cost AS kost {WHERE}", "does not give cost, and gives, undeclared, kost"),
        (f"SELECT ds, id {WHERE}", "does not give cost"),
        (f"SELECT ds, id, cost, 1 AS n {WHERE}", "gives, undeclared, n"),
        (f"SELECT ds, id, cost AS Cost {WHERE}", "does not give cost, and gives, undeclared, Cost"),
        (f"SELECT DS, id, cost {WHERE}", "does not give ds, and gives, undeclared, DS"),
        (f"SELECT ds, id, cost, 1 AS id {WHERE}", "gives more than once id"),
        (f"SELECT ds, id {WHERE} UNION ALL SELECT ds, id {WHERE}", "does not give cost"),
    ],
)
def test_a_query_that_gives_other_columns_than_are_declared_does_not_load(sql: str, words: str):
    with pytest.raises(DeclarationError, match=f"the query of 'web.visits' {words}; expected"):
        a_graph(a_model(sql=sql))


@pytest.mark.parametrize("columns", ["*", "ds, id, e.*", "ds, id, MAX(cost)"])
def test_columns_that_the_text_does_not_name_are_left_to_the_first_batch(columns: str):
    a_graph(a_model(sql=f"SELECT {columns} {WHERE}".replace("web.events", "web.events e")))


def test_an_audit_names_an_upstream_and_a_column_of_it():
    with pytest.raises(DeclarationError, match=r"named by 'web.visits.reconciles_cost'"):
        a_graph(a_model(audits=[reconciles("cost", "web.nothing")]))
    with pytest.raises(DeclarationError, match=r"'nope' of 'web.events'"):
        a_graph(a_model(audits=[references("id", "web.events", "nope")]))


def test_a_declared_time_column_is_a_column_of_the_upstream():
    with pytest.raises(DeclarationError, match=r"'ingested_at' of 'web.events'"):
        a_graph(a_model(upstreams=[Upstream("web.events", time_column="ingested_at")]))


@pytest.mark.parametrize("lookback", [0, 3])
def test_a_query_is_bounded_on_no_column_that_does_not_cut_its_upstreams_cells(lookback: int):
    columns = [*COLUMNS, Column("seen", "date")]
    sql = "SELECT seen AS ds, id, cost FROM {} WHERE seen >= :start_ds AND seen < :end_ds"
    by_seen = Upstream("web.events", lookback, time_column="seen")
    bounded = a_model(upstreams=[by_seen], sql=sql.format("web.events"))

    with pytest.raises(DeclarationError, match=r"cut by 'ds'.*bounds on 'ds'.*event='seen'"):
        a_graph(bounded, sources=[a_source(columns=columns)])

    again = a_source("web.by_seen", columns=columns, times=TimeColumns(event="seen"))
    a_graph(a_model(upstreams=["web.by_seen"], sql=sql.format("web.by_seen")), sources=[again])
    a_graph(bounded, sources=[a_source(columns=columns, cadence=Whole())])
    stored_graph([bounded], [a_source(columns=columns)])


@pytest.mark.parametrize(
    ("dtype", "cadence", "expected"),
    [
        ("date", Hourly(start="2024-01-01"), "a TIMESTAMP column, or cells of a day"),
        ("timestamp_ntz", Hourly(start="2024-01-01"), "a TIMESTAMP column, or cells of a day"),
        ("string", Daily(start="2024-01-01"), "a DATE or TIMESTAMP column"),
        ("timestamp", Hourly(start="2024-01-01", tz="Australia/Lord_Howe"), "a zone whose clocks"),
    ],
)
def test_a_time_column_that_can_not_place_rows_in_cells_does_not_load(
    dtype: str, cadence: Cadence, expected: str
):
    columns = [Column("ds", dtype), *COLUMNS[1:]]
    source = a_source(cadence=cadence, columns=columns)
    model = a_model(cadence=cadence, columns=columns, upstreams=[])

    with pytest.raises(DeclarationError, match=f"'web.events.ds' is {dtype}.*expected {expected}"):
        build_graph([], [source])
    with pytest.raises(DeclarationError, match=f"'web.visits.ds' is {dtype}.*expected {expected}"):
        build_graph([model], [])
    stored_graph([model], [source])
    a_graph(sources=[a_source(cadence=Whole(), columns=columns)])


@pytest.mark.parametrize(
    ("cadence", "words"),
    [
        (Daily(start="1969-12-31"), "starts at 1969-12-31 00:00 UTC.*a start from 1970-01-01"),
        (Daily(start="1970-01-01", tz="Europe/Berlin"), "a start from 1970-01-01 23:00 UTC on"),
        (Daily(start="2024-01-01", cron="0 5 30 2 *"), "never ticks"),
        (Daily(start="2024-01-01", cron="R(0-9) 5 * * *"), "at random times"),
    ],
)
def test_a_cadence_whose_cells_would_be_missed_does_not_load(cadence: Cadence, words: str):
    source, model = a_source(cadence=cadence), a_model(cadence=cadence, upstreams=[])

    with pytest.raises(DeclarationError, match=f"source 'web.events' .*{words}"):
        build_graph([], [source])
    with pytest.raises(DeclarationError, match=f"model 'web.visits' .*{words}"):
        build_graph([model], [])
    stored_graph([model], [source])


def test_tombstones_of_keys_that_move_do_not_load_and_what_is_stored_runs():
    columns = [*COLUMNS, Column("gone", "boolean")]
    model = a_model(
        kind=IncrementalByUniqueKey("ds", latest_by="cost", rows_move=True),
        columns=columns,
        deletes=Tombstone("gone"),
        sql="SELECT *, FALSE AS gone FROM web.events WHERE ds >= :start_ds AND ds < :end_ds",
    )
    with pytest.raises(DeclarationError, match=r"a deleted key would be back.*deletes='none'"):
        build_graph([model], [a_source()])
    stored_graph([model], [a_source()])


GONE = Column("gone", "boolean")


def marking(policy: Any, *columns: Column, **declared: Any) -> Model:  # noqa: ANN401
    """A model that merges, and gives each row as one that is not gone."""
    given: dict[str, Any] = {
        "kind": IncrementalByUniqueKey("ds"),
        "columns": [*COLUMNS, *columns],
        "sql": "SELECT *, FALSE AS gone FROM web.events WHERE ds >= :start_ds AND ds < :end_ds",
    }
    return a_model(deletes=policy, **{**given, **declared})


def test_a_model_that_replaces_its_cells_may_say_that_its_source_deletes_nothing():
    """As the sample model of the design does."""
    assert a_graph(a_model(deletes="none")).model("web.visits").delete_policy == KeepsDeleted()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            marking(SoftDelete("gone"), GONE, kind=IncrementalByTimeRange("ds")),
            r"has deletes=SoftDelete\(column='gone'\) and is IncrementalByTimeRange, which replaces",
        ),
        (
            marking(Tombstone("gone"), GONE, kind=IncrementalByTimeRange("ds")),
            "expected deletes='absent', the default, or the kind Incremen",
        ),
        (marking(SoftDelete("gone"), Column("gone", "string")), "of the type string; expected a b"),
        (marking(Tombstone("gone"), Column("gone", "int")), "'gone', which is of the type int"),
        (
            marking(SoftDelete("gone"), GONE, unique_key=["id", "gone"]),
            "which is a part of its key",
        ),
    ],
    ids=["replaced", "kept", "text", "number", "key"],
)
def test_a_policy_that_a_model_can_not_follow_does_not_load_and_what_is_stored_runs(
    model: Model, words: str
):
    with pytest.raises(DeclarationError, match=words):
        build_graph([model], [a_source()])
    stored_graph([model], [a_source()])


def test_a_marker_is_a_boolean_however_it_is_spelled_and_of_a_tombstone_also_a_text():
    a_graph(marking(SoftDelete("gone"), Column("gone", "BOOL")))
    a_graph(marking(Tombstone("gone"), Column("gone", "string")))


@pytest.mark.parametrize(
    "model",
    [
        a_model(upstreams=["web.events", "web.visits"]),
        a_model(upstreams=["web.events", Upstream("web.visits", lookback=own_cells(0))]),
        a_whole("web.visits", upstreams=[Upstream("web.visits", lookback=1)]),
    ],
    ids=["no lookback", "none of its own", "whole"],
)
def test_a_model_that_reads_the_cell_that_it_builds_does_not_load(model: Model):
    with pytest.raises(
        DeclarationError,
        match=r"no earlier cell of itself; expected Upstream\('web.visits', lookback=1",
    ):
        a_graph(model)


def test_a_word_that_says_nothing_of_an_upstream_does_not_load_and_what_is_stored_runs():
    model = a_model(upstreams=[Upstream("web.events", reopens="nevr")])  # type: ignore[arg-type]
    with pytest.raises(
        DeclarationError,
        match=r"upstream 'web.events' of model 'web.visits': found 'nevr' as reopens; expected one of 'never', 'lat",
    ):
        a_graph(model)
    stored_graph([stored_model(dumps(model))], [a_source()])


@pytest.mark.parametrize("flag", ["volatile", "forward_only", "audit_columns"])
def test_a_word_in_the_place_of_true_or_false_does_not_load_and_what_is_stored_runs(flag: str):
    model = a_model(**{flag: "no"})
    with pytest.raises(DeclarationError, match=f"'no' as {flag}; expected True or False"):
        a_graph(model)
    stored_graph([model], [a_source()])


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"kind": IncrementalByUniqueKey("ds", rows_move="no")}, "'no' as rows_move"),  # type: ignore[arg-type]
        ({"columns": [*COLUMNS[:2], replace(COLUMNS[2], nullable="no")]}, "'no' as nullable"),
        ({"columns": [*COLUMNS[:2], replace(COLUMNS[2], unique="no")]}, "'no' as unique"),
    ],
)
def test_what_is_true_or_false_of_a_part_of_a_model_is_no_word_either(
    declared: dict[str, Any], words: str
):
    with pytest.raises(DeclarationError, match=f"{words}; expected True or False"):
        a_graph(a_model(**declared))


def test_a_column_whose_name_no_table_can_store_does_not_load_and_a_source_may_have_it():
    column = Column("order no", "bigint")
    sql = "SELECT *, 1 AS `order no` FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"
    with pytest.raises(
        DeclarationError, match=r"'order no' of model 'web.visits' has a name that a"
    ):
        a_graph(a_model(columns=[*COLUMNS, column], sql=sql))

    a_graph(sources=[a_source(columns=[*COLUMNS, column])])


def test_a_source_whose_columns_spark_can_not_tell_apart_does_not_load():
    with pytest.raises(
        DeclarationError, match=r"source 'web.events': found columns named id more t"
    ):
        a_graph(sources=[a_source(columns=[*COLUMNS, Column("ID", "bigint")])])


def test_every_time_of_a_source_is_a_column_of_it_and_a_snapshot_may_rely_on_fewer():
    source = a_source(times=TimeColumns(event="ds", ingested="landed"))
    with pytest.raises(DeclarationError, match="names 'landed' as its ingested time, but declares"):
        a_graph(sources=[source])
    stored_graph([], [source])


@pytest.mark.parametrize("cron", ["0 5 29 2 *", "0 5 * 2 mon#5", "0 5 * * fri", "@monthly"])
def test_a_cron_that_seldom_ticks_loads(cron: str):
    a_graph(sources=[a_source(cadence=Daily(start="1970-01-01", cron=cron))])


def test_nodes_are_found_by_name():
    graph = a_graph(a_model())

    assert graph.node("web.events") is graph.sources["web.events"]
    assert graph.model("web.visits") is graph.node("web.visits")
    with pytest.raises(RequestError, match="there is no model or source"):
        graph.model("web.events")


@pytest.mark.parametrize(
    ("cost", "cadence", "said"),
    [
        (
            "current_time()",
            Daily(start="2024-01-01"),
            "so a rebuild would differ without a reason;",
        ),
        ("id", Hourly(start="2024-01-01"), "is a date, the same for all cells of a day"),
    ],
)
def test_what_an_environment_has_stored_is_run_though_it_would_not_load_today(
    cost: str, cadence: Cadence, said: str
):
    sql = f"SELECT ds, id, {cost} AS cost {WHERE}"
    model = a_model(sql=sql, cadence=cadence)
    with pytest.raises(DeclarationError, match=said):
        build_graph([model], [a_source("web.events")])

    assert stored_graph([model], [a_source("web.events")]).models == {model.name: model}


def test_a_query_with_a_name_that_may_be_two_things_does_not_load():
    model = a_model(
        sql="SELECT ds, id, web.events.cost FROM web.events JOIN web.events AS web USING (id) "
        "WHERE ds >= :start_ds AND ds < :end_ds"
    )
    with pytest.raises(DeclarationError, match=r"line 1, column 16: 'web.events.cost'"):
        build_graph([model], [a_source("web.events")])


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"late_window": 10**9}, "found 1000000000 cells as late_window"),
        ({"upstreams": [Upstream("web.events", lookback=36_501)]}, "as lookback of 'web.events'"),
        (
            {"upstreams": [Upstream("web.events", lookback=own_cells(36_501))]},
            "as lookback of 'web.events', which last 36501 days or more; expected at most 36500 days",
        ),
        ({"audits": [complete("id", seen=10**9)]}, "as seen of audit 'complete_id'"),
    ],
    ids=["late window", "lookback", "own cells", "audit"],
)
def test_a_count_of_cells_that_reaches_back_before_all_dates_is_refused(
    declared: dict[str, Any], said: str
):
    with pytest.raises(DeclarationError, match=re.escape(said)):
        a_graph(a_model(**declared))


@pytest.mark.parametrize("lookback", [None, "3", 2.5])
def test_a_lookback_that_is_no_number_of_cells_is_refused(lookback: Any):  # noqa: ANN401
    said = re.escape(f"found {lookback!r} as lookback; expected a number of cells")
    with pytest.raises(DeclarationError, match=f"upstream 'web.events': {said}"):
        Upstream("web.events", lookback=lookback)
    with pytest.raises(DeclarationError, match="as count; expected a number of cells"):
        own_cells(lookback)


def test_a_century_of_cells_is_taken():
    a_graph(a_model(late_window=36_500, upstreams=[Upstream("web.events", lookback=36_500)]))
