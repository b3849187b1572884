# ruff: noqa: S608 - the SQL is the tests' own
from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals import Daily, Hourly, Monthly
from backfill_assets.models.column import Column
from backfill_assets.models.python.function_query import FunctionQuery
from backfill_assets.models.source import Source, TimeColumns
from backfill_assets.models.sql.bounds import check_bounds
from backfill_assets.models.upstream import Upstream
from backfill_assets_tests.builders import a_model, a_source, a_whole

if TYPE_CHECKING:
    from backfill_assets.intervals import Cadence

DAYS = Daily(start="2024-01-01")
BERLIN, NEW_YORK = (
    Daily(start="2024-01-01", tz=tz) for tz in ("Europe/Berlin", "America/New_York")
)
HOURS = Hourly(start="2024-01-01")
LOCAL = "to_date(from_utc_timestamp({}, 'Europe/Berlin'))"


def a_table(name: str, cut: str | None, **columns: str) -> Source:
    declared = [Column(column, dtype) for column, dtype in columns.items()]
    return a_source(name, columns=declared, times=TimeColumns(event=cut))


READ = {
    source.name: source
    for source in (
        a_table(
            "web.events", "event_date", event_date="date", ingested_at="date", first_seen="date"
        ),
        a_table("web.prices", None, valid_from="date", valid_to="date"),
        a_table("web.orders", "placed", placed="date", updated="date"),
        a_table("web.clicks", "at", at="timestamp", day="date"),
        a_table("web.clocks", "at", at="timestamp_ntz"),
    )
}


def check(sql: str, *upstreams: str | Upstream, cadence: Cadence = DAYS) -> None:
    model = a_model(sql=sql, upstreams=upstreams or ["web.events"], cadence=cadence)
    check_bounds(model, {upstream.name: READ[upstream.name] for upstream in model.reads})


def where(condition: str) -> str:
    return f"SELECT event_date AS ds, id, cost FROM web.events WHERE {condition}"


@pytest.mark.parametrize(
    "condition",
    [
        "event_date >= :start_ds AND event_date < :end_ds",
        ":start_ds <= event_date AND :end_ds > event_date",
        "event_date >= :start_ds - INTERVAL 3 DAYS AND event_date < :end_ds",
        "event_date >= DATE_SUB(:start_ds, 3) AND event_date < :end_ds",
        "event_date > DATE_SUB(:start_ds, 1) AND event_date < :end_ds",
        "CAST(event_date AS TIMESTAMP) >= :start_ts AND CAST(event_date AS TIMESTAMP) < :end_ts",
        "NOT event_date < :start_ds AND NOT (event_date >= :end_ds)",
        "event_date BETWEEN '2020-01-01' AND '2030-01-01' AND event_date < :end_ds AND event_date >= :start_ds",
    ],
)
def test_bounds_on_the_declared_column_load_however_they_are_written(condition: str):
    check(where(condition))


@pytest.mark.parametrize(
    "condition",
    [
        "ingested_at >= :start_ds AND ingested_at < :end_ds",
        "event_date >= :start_ds AND ingested_at < :end_ds",
        "CAST(ingested_at AS DATE) >= :start_ds AND CAST(ingested_at AS DATE) < :end_ds",
        ":start_ds <= ingested_at AND :end_ds > ingested_at",
    ],
)
def test_bounds_on_another_column_are_refused_and_the_message_shows_the_fix(condition: str):
    with pytest.raises(DeclarationError, match="but its upstreams are cut by") as caught:
        check(where(condition))

    assert "bounds its interval on 'ingested_at'" in str(caught.value)
    assert "event_date >= :start_ds AND event_date < :end_ds" in str(caught.value)
    assert "once more, under another name, with TimeColumns(event='ingested_at')" in str(
        caught.value
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT Event_Date AS ds, id, cost FROM web.events WHERE EVENT_DATE >= :start_ds AND `Event_Date` < :end_ds",
        "WITH E AS (SELECT event_date AS Day, id, cost FROM web.events) SELECT day AS ds, id, cost FROM e WHERE E.DAY >= :start_ds AND e.day < :end_ds",
    ],
)
def test_a_column_is_bounded_in_any_case_as_spark_reads_it(sql: str):
    check(sql)


def test_a_renamed_column_in_another_case_is_followed_to_the_one_that_it_is():
    sql = (
        "WITH E AS (SELECT ingested_at AS Day, id, cost FROM web.events) "
        "SELECT day AS ds, id, cost FROM e WHERE DAY >= :start_ds AND day < :end_ds"
    )
    with pytest.raises(DeclarationError, match="bounds its interval on 'ingested_at'"):
        check(sql)


def test_bounds_on_a_column_of_a_whole_upstream_count_where_that_is_declared():
    sql = (
        "SELECT valid_from AS ds, id, cost FROM web.prices "
        "WHERE valid_from >= :start_ds AND valid_from < :end_ds"
    )

    check(sql, Upstream("web.prices", time_column="valid_from"))
    with pytest.raises(DeclarationError, match="no start bound"):
        check(sql, "web.prices")


@pytest.mark.parametrize(
    ("condition", "fix"),
    [
        (
            "event_date BETWEEN :start_ds AND :end_ds",
            "`event_date >= :start_ds AND event_date < :end_ds`",
        ),
        (
            "event_date BETWEEN :start_ds AND DATE_SUB(:end_ds, 1)",
            "`event_date >= :start_ds AND event_date < :end_ds`",
        ),
        ("event_date >= :start_ds AND event_date <= :end_ds", "`event_date < :end_ds`"),
        ("event_date >= :start_ds AND :end_ds >= event_date", "`event_date < :end_ds`"),
        ("event_date >= :start_ds AND NOT event_date > :end_ds", "`event_date < :end_ds`"),
        ("event_date >= :start_ts AND event_date <= :end_ts", "`event_date < :end_ts`"),
        (
            "event_date >= :start_ds AND event_date <= DATE_SUB(:end_ds, 1)",
            "`event_date < :end_ds`",
        ),
    ],
)
def test_an_included_end_is_refused_and_the_message_shows_the_fix(condition: str, fix: str):
    with pytest.raises(
        DeclarationError, match="which includes its end, but an interval's"
    ) as caught:
        check(where(condition))

    assert str(caught.value).endswith(f"write {fix}")


def test_an_excluded_start_is_refused_and_the_message_shows_the_fix():
    with pytest.raises(DeclarationError, match="write `event_date >= :start_ds`"):
        check(where("event_date > :start_ds AND event_date < :end_ds"))


@pytest.mark.parametrize(
    ("condition", "missing"),
    [
        ("id > 0", "start"),
        ("event_date < :end_ds", "start"),
        ("event_date >= :start_ds", "end"),
        ("event_date = :start_ds", "start"),
        ("event_date >= :start_ds AND event_date >= :end_ds", "end"),
        ("CASE WHEN event_date >= :start_ds AND event_date < :end_ds THEN id END > 0", "start"),
    ],
)
def test_a_query_without_a_bound_is_refused_by_its_name(condition: str, missing: str):
    with pytest.raises(DeclarationError, match=f"no {missing} bound; add `event_date >="):
        check(where(condition))


def test_bounds_inside_a_cte_count():
    check(f"WITH seen AS ({where('event_date >= :start_ds AND event_date < :end_ds')}) "
          "SELECT ds, id, cost FROM seen")  # fmt: skip


def test_bounds_outside_are_followed_into_the_cte_that_renames_the_column():
    renamed = "WITH seen AS (SELECT {} AS happened, id, cost FROM web.events) "
    outside = "SELECT happened AS ds, id, cost FROM seen WHERE happened >= :start_ds AND happened < :end_ds"

    check(renamed.format("event_date") + outside)
    check(renamed.format("DATE_TRUNC('DAY', event_date)") + outside)
    with pytest.raises(DeclarationError, match="but its upstreams are cut by"):
        check(renamed.format("ingested_at") + outside)
    with pytest.raises(DeclarationError, match="but its upstreams are cut by"):
        check(renamed.format("DATE(ingested_at)") + outside)


def test_another_time_in_the_clothes_of_the_declared_column_is_found_out():
    with pytest.raises(DeclarationError, match="bounds its interval on 'ingested_at'"):
        check(
            "SELECT ds, id, cost FROM (SELECT ingested_at AS ds, id, cost FROM web.events) "
            "WHERE ds >= :start_ds AND ds < :end_ds"
        )


def test_each_upstream_is_held_to_its_own_time_column():
    joined = (
        "SELECT e.event_date AS ds, id, cost FROM web.events e JOIN web.orders o USING (id) "
        "WHERE e.event_date >= :start_ds AND e.event_date < :end_ds AND o.{} >= :start_ds"
    )

    check(joined.format("placed"), "web.events", "web.orders")
    with pytest.raises(DeclarationError, match="cut by placed"):
        check(joined.format("event_date"), "web.events", "web.orders")


def test_a_whole_upstream_may_be_compared_with_the_interval_but_does_not_bound_it():
    valid = (
        "SELECT e.event_date AS ds, e.id, p.cost FROM web.events e JOIN web.prices p "
        "ON p.id = e.id AND p.valid_from < :end_ds AND p.valid_to > :start_ds"
    )
    bounded = " WHERE e.event_date >= :start_ds AND e.event_date < :end_ds"

    check(valid + bounded, "web.events", "web.prices")
    with pytest.raises(DeclarationError, match="is incremental but its query has no"):
        check(valid, "web.events", "web.prices")


def test_a_parameter_in_the_output_is_nobodys_bound():
    check(
        "SELECT event_date AS ds, id, IF(first_seen >= :start_ds, 1, 0) AS cost FROM web.events "
        "WHERE event_date >= :start_ds AND event_date < :end_ds"
    )


def test_a_calendar_reads_nothing_but_must_start_and_end():
    check_bounds(a_model(upstreams=[]), {})
    with pytest.raises(DeclarationError, match="no end bound"):
        check_bounds(a_model(upstreams=[], sql="SELECT :start_ds AS ds, 1 AS id, 2 AS cost"), {})


def test_whole_models_and_functions_are_not_bounded():
    check_bounds(a_whole("web.all"), READ)
    check_bounds(
        a_model(query=FunctionQuery("f", "def f(inputs, interval):\n    return 1\n")), READ
    )


def test_of_set_operations_and_correlated_subqueries_every_filter_is_checked():
    good = where("event_date >= :start_ds AND event_date < :end_ds")
    bad = where("ingested_at >= :start_ds AND event_date < :end_ds")

    check(f"{good} UNION ALL {good}")
    with pytest.raises(DeclarationError, match="but its upstreams are cut by"):
        check(f"{good} UNION ALL {bad}")
    with pytest.raises(DeclarationError, match="but its upstreams are cut by"):
        check(f"{good} AND EXISTS (SELECT 1 FROM web.orders o WHERE o.updated >= :start_ds)",
              "web.events", "web.orders")  # fmt: skip


def clicks(condition: str, of: str = "web.clicks") -> tuple[str, str]:
    return f"SELECT at AS ds, id, cost FROM {of} WHERE {condition}", of


@pytest.mark.parametrize(
    "condition",
    [
        "at >= :start_ds AND at < :end_ds",
        "at >= :start_ts AND at < :end_ds",
        "CAST(at AS DATE) >= :start_ds AND CAST(at AS DATE) < :end_ds",
    ],
)
def test_cells_finer_than_a_day_are_bounded_by_instants(condition: str):
    with pytest.raises(DeclarationError, match=r"is a date, the same for all cells") as caught:
        check(*clicks(condition), cadence=HOURS)

    assert "expected instants, since its cells are of one hour" in str(caught.value)
    check(*clicks("at >= :start_ts AND at < :end_ts"), cadence=HOURS)


def test_a_date_in_a_query_that_is_not_analysed_bounds_no_hour():
    bounded = "at >= :start_{0} AND at < :end_{0} AND note <> 'O''Brien'"

    with pytest.raises(DeclarationError, match="no start bound; add `at >= :start_ts AND at < :"):
        check(*clicks(bounded.format("ds")), cadence=HOURS)
    check(*clicks(bounded.format("ts")), cadence=HOURS)


@pytest.mark.parametrize(
    ("of", "condition", "said"),
    [
        ("web.clicks", "at >= :start_ds AND at < :end_ds", "write :start_ts instead of :start_ds"),
        ("web.clicks", "at >= :start_ts AND at < :end_ds", "write :end_ts instead of :end_ds"),
        ("web.clicks", "at >= DATE_SUB(:start_ds, 3) AND at < :end_ts", "'at' is timestamp"),
        ("web.clicks", "at >= CAST(:start_ds AS TIMESTAMP) AND at < :end_ts", "'at' is timestamp"),
        ("web.clicks", "DATE(at) >= :start_ds AND DATE(at) < :end_ds", "'at' is timestamp"),
        ("web.clocks", "at >= :start_ts AND at < :end_ts", "'at' is timestamp_ntz"),
        (
            "web.events",
            "event_date >= :start_ts AND event_date < :end_ts",
            "is an instant, so rows",
        ),
        ("web.events", "event_date >= :start_ds AND event_date < :end_ts", "write :end_ds instead"),
    ],
)
@pytest.mark.parametrize(
    "cadence", [BERLIN, NEW_YORK, Monthly(start="2024-01-01", tz="Asia/Tokyo")]
)
def test_dates_and_instants_are_not_compared_where_days_do_not_begin_in_utc(
    of: str, condition: str, said: str, cadence: Cadence
):
    with pytest.raises(DeclarationError, match="would be in no cell") as caught:
        check(*clicks(condition, of), cadence=cadence)

    assert said in str(caught.value)
    check(*clicks(condition, of), cadence=Daily(start="2024-01-01", tz="Etc/UTC"))


@pytest.mark.parametrize(
    ("of", "condition"),
    [
        ("web.clicks", "at >= :start_ts AND at < :end_ts"),
        ("web.clicks", "at >= :start_ts - INTERVAL 3 DAYS AND at < :end_ts"),
        ("web.clicks", "at >= to_utc_timestamp(:start_ds, 'Europe/Berlin') AND at < :end_ts"),
        (
            "web.clicks",
            f"{LOCAL.format('at')} >= :start_ds AND {LOCAL.format('at')} < :end_ds",
        ),
        ("web.clocks", "at >= :start_ds AND at < :end_ds"),
        ("web.events", "event_date >= DATE_SUB(:start_ds, 3) AND event_date < :end_ds"),
        (
            "web.events",
            f"event_date >= {LOCAL.format(':start_ts')} AND event_date < :end_ds",
        ),
    ],
)
def test_bounds_of_a_columns_own_type_load_in_every_zone(of: str, condition: str):
    check(*clicks(condition, of), cadence=BERLIN)


def test_what_a_query_computes_of_a_time_on_the_way_is_not_followed():
    check(
        f"SELECT day AS ds, id, cost FROM (SELECT {LOCAL.format('at')} AS day, id, cost FROM web.clicks) "
        "WHERE day >= :start_ds AND day < :end_ds",
        "web.clicks",
        cadence=BERLIN,
    )


@pytest.mark.parametrize(
    ("of", "cadence", "fix"),
    [
        ("web.clicks", BERLIN, "at >= :start_ts AND at < :end_ts"),
        ("web.clocks", BERLIN, "at >= :start_ds AND at < :end_ds"),
        ("web.events", BERLIN, "event_date >= :start_ds AND event_date < :end_ds"),
        ("web.clicks", HOURS, "at >= :start_ts AND at < :end_ts"),
    ],
)
def test_the_bounds_that_a_message_proposes_load(of: str, cadence: Cadence, fix: str):
    with pytest.raises(DeclarationError, match="no start bound") as caught:
        check(*clicks("id > 0", of), cadence=cadence)

    assert f"add `{fix}`" in str(caught.value)
    check(*clicks(fix, of), cadence=cadence)
