# ruff: noqa: S608 - the SQL is the tests' own
from __future__ import annotations

import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.models.python.function_query import FunctionQuery
from backfill_assets.models.sql.bounds import (
    check_bounds,
)
from backfill_assets.models.upstream import Upstream
from backfill_assets_tests.builders import a_model, a_whole

CUTS: dict[str, str | None] = {
    "web.events": "event_date",
    "web.prices": None,
    "web.orders": "placed",
}


def check(sql: str, *upstreams: str | Upstream) -> None:
    check_bounds(a_model(sql=sql, upstreams=upstreams or ["web.events"]), CUTS)


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
    assert "time_column='ingested_at'" in str(caught.value)


def test_an_upstream_may_declare_that_it_is_cut_by_another_column():
    check(
        where("ingested_at >= :start_ds AND ingested_at < :end_ds"),
        Upstream("web.events", time_column="ingested_at"),
    )


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
    check_bounds(a_whole("web.all"), CUTS)
    check_bounds(
        a_model(query=FunctionQuery("f", "def f(inputs, interval):\n    return 1\n")), CUTS
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
