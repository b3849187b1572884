"""A hand-launched run in this process: what it builds, and what it tells Dagster of every cell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from backfill_assets import Daily, build_definitions
from backfill_assets.models.audit import row_rule
from backfill_assets.models.column import Column
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets_tests.orchestration.shop import (
    NoSpark,
    checks,
    failure,
    keys,
    observed,
    told,
)
from backfill_assets_tests.toy import DAYS, EMPTY_DAY, LAST, MODELS, MONTHS, SOURCES, sales

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets.models.model import Model
    from backfill_assets_tests.orchestration.shop import Shop

ALL = f"{DAYS[0]}...{DAYS[-1]}"
AUDITS = {
    *("unique_grain", "amount_not_negative", "amount_is_usual", "not_null_ds", "not_null_shop"),
}


def test_a_single_partition_is_filled_audited_and_told_once(shop: Shop):
    result = shop.fill("toy.sales", cells="2024-01-29")

    assert result.success
    [(key, said)] = told(result, "toy.sales")
    assert key == "2024-01-29"
    assert said["dagster/partition_row_count"] == 2
    assert "skipped" not in said
    found = checks(result, "toy.sales")
    assert all(evaluation.passed for evaluation in found.values())
    assert found.keys() == AUDITS | {f"published_{name}" for name in AUDITS}


def test_a_range_tells_every_cell_once_empty_ones_too_and_a_re_execution_skips_them(shop: Shop):
    launch = shop.backfill(*DAYS)
    first = shop.fill("toy.sales", cells=ALL, **launch)
    again = shop.fill("toy.sales", cells=ALL, spark=NoSpark(spark_config={}), **launch)

    assert first.success
    assert again.success
    rows = {key: said["dagster/partition_row_count"] for key, said in told(first, "toy.sales")}
    assert sorted(map(str, keys(first, "toy.sales"))) == list(DAYS)
    assert rows == {day: 0 if day == EMPTY_DAY else 2 for day in DAYS}
    built = {key: said["batch"] for key, said in told(first, "toy.sales")}
    skipped = {key: said["batch"] for key, said in told(again, "toy.sales") if said["skipped"]}
    assert skipped == built
    assert len(told(again, "toy.sales")) == len(DAYS)
    assert checks(again, "toy.sales").keys() == checks(first, "toy.sales").keys()


@pytest.mark.parametrize("cells", ["", f"{LAST}...{DAYS[0]}"])
def test_a_run_that_names_no_partition_is_refused_also_where_its_range_is_reversed(
    shop: Shop, cells: str
):
    result = shop.fill("toy.sales", cells=cells)

    assert not result.success
    assert "the run names no partition of toy.sales" in failure(result)
    [failed] = [event for event in result.all_events if event.is_step_failure]
    assert failed.step_failure_data.error is not None
    assert failed.step_failure_data.error.cause is None, "the page of the run says it once"
    assert checks(result, "toy.sales") == {}


def test_an_asset_whose_key_was_replaced_is_refused(shop: Shop):
    renamed = [
        asset.with_attributes(
            asset_key_replacements={key: key.with_prefix("mine") for key in asset.keys}
        )
        for asset in shop.defs.assets or ()
        if isinstance(asset, dg.AssetsDefinition)
    ]

    result = replace(shop, defs=dg.Definitions(assets=renamed)).fill(
        "mine.toy.sales", cells=DAYS[0]
    )

    assert not result.success
    assert "the asset of toy.sales has the key mine/toy/sales, nothing was built" in failure(result)


def test_tables_without_their_state_fail_a_run_and_its_audits_with_one_sentence(shop: Shop):
    assert shop.fill("toy.sales", cells=DAYS[0]).success
    Path(shop.root, "state.db").unlink()

    for result in (shop.fill("toy.sales", cells=DAYS[0]), shop.audit()):
        assert failure(result).startswith("there is no state at ")


def test_cells_between_those_of_a_released_run_that_fails_stay_what_they_are(shop: Shop):
    assert shop.fill("toy.sales", cells=f"{DAYS[1]}...{DAYS[2]}").success
    shop.sell(DAYS[3], "north", -1000)
    released: dict[str, Any] = {
        "backfill/reason": "backfill",
        "backfill/model": "toy.sales",
        "backfill/cells": f"{DAYS[0]},{DAYS[3]}",
    }

    result = shop.fill("toy.sales", cells=f"{DAYS[0]}...{DAYS[3]}", **released)

    assert not result.success
    assert keys(result, "toy.sales") == [DAYS[0]]
    assert shop.red("toy.sales") == [DAYS[3]]


def with_orders() -> Model:
    """The daily sales with another column, which has an audit."""
    assert isinstance(sales.logic, SqlQuery)
    counted = SqlQuery(sales.logic.sql.replace("AS amount", "AS amount, COUNT(*) AS orders"))
    columns = [*sales.schema, Column("orders", "bigint", nullable=False)]
    return replace(sales, query=counted, columns=columns)


def with_another_audit() -> Model:
    """The daily sales with another audit in the place of their own."""
    return replace(sales, audits=[row_rule("not_null_orders", "amount < 0")])


@pytest.mark.parametrize("declared", [with_orders, with_another_audit])
def test_an_edit_that_brings_other_checks_fails_no_run_before_it_is_promoted(
    shop: Shop, declared: Callable[[], Model]
):
    assert shop.fill("toy.sales", cells=DAYS[0]).success
    models = [declared() if each is sales else each for each in MODELS]

    edited = replace(shop, defs=build_definitions(models=models, sources=SOURCES))
    result = edited.fill("toy.sales", cells=DAYS[1])

    assert result.success, failure(result)
    assert keys(result, "toy.sales") == [DAYS[1]]
    found = checks(result, "toy.sales")
    warned = {name: evaluation for name, evaluation in found.items() if not evaluation.passed}
    assert warned.keys() == {"not_null_orders", "published_not_null_orders"}
    assert {evaluation.severity for evaluation in warned.values()} == {dg.AssetCheckSeverity.WARN}
    for evaluation in warned.values():
        assert "what prod runs does not have this audit" in str(evaluation.description)


def test_every_grain_is_filled_from_what_it_reads(shop: Shop):
    assert shop.fill("toy.sales", "toy.sales_of_three_days", cells=ALL).success
    months = shop.fill("toy.sales_monthly", cells="...".join(MONTHS))
    hours = shop.fill("toy.clicks", cells="2024-01-28-00:00...2024-01-28-23:00")
    clicked = shop.fill("toy.clicks_daily", cells="2024-01-28")
    shops = shop.fill("toy.shops")

    assert all(result.success for result in (months, hours, clicked, shops))
    assert keys(months, "toy.sales_monthly") == list(MONTHS)
    assert len(set(keys(hours, "toy.clicks"))) == len(keys(hours, "toy.clicks")) == 24
    assert keys(clicked, "toy.clicks_daily") == ["2024-01-28"]
    assert keys(shops, "toy.shops") == [None]
    three = shop.published("toy.sales_of_three_days", "ds", "amount")
    sold = {day: 0 if day == EMPTY_DAY else 11 * n for n, day in enumerate(DAYS, start=1)}
    assert three == [
        (day, sum(sold[before] for before in DAYS[max(n - 2, 0) : n + 1]))
        for n, day in enumerate(DAYS)
    ]
    monthly = ("month_start", "amount", "amount_before")
    january = sum(sold[day] for day in DAYS[:4])
    assert shop.published("toy.sales_monthly", *monthly) == [
        ("2024-01-01", january, None),
        ("2024-02-01", sum(sold[day] for day in DAYS[4:]), january),
    ]
    assert shop.published("toy.clicks_daily", "clicks") == [(5,)]


def test_a_source_may_be_landed_by_an_asset_of_the_project_in_the_run_that_reads_it(shop: Shop):
    @dg.asset(key=["toy", "raw_sales"])
    def landed() -> None:
        shop.sell(DAYS[0], "west", 7)

    landings = {"toy.raw_sales": landed}
    own = replace(shop, defs=build_definitions(models=MODELS, sources=SOURCES, landings=landings))

    result = own.fill("toy.raw_sales", "toy.sales", cells=DAYS[0])

    assert result.success, failure(result)
    assert (DAYS[0], "west", 7) in own.published("toy.sales", "ds", "shop", "amount")


def test_days_of_a_zone_are_filled_from_materialized_days_of_another(shop: Shop):
    berlin = replace(
        sales,
        name="toy.sales_in_berlin",
        query=SqlQuery(
            "SELECT ds, shop, amount FROM toy.sales WHERE ds >= :start_ds AND ds < :end_ds"
        ),
        cadence=Daily(start=DAYS[1], end=LAST, tz="Europe/Berlin"),
        upstreams=["toy.sales"],
    )
    zones = replace(shop, defs=build_definitions(models=[*MODELS, berlin], sources=SOURCES))
    assert zones.fill("toy.sales", cells=ALL).success

    one = zones.fill("toy.sales_in_berlin", cells=DAYS[1])
    others = zones.fill("toy.sales_in_berlin", cells=f"{DAYS[2]}...{LAST}")

    assert one.success, failure(one)
    assert others.success, failure(others)
    assert keys(others, "toy.sales_in_berlin") == [*DAYS[2:]]
    dg.Definitions.validate_loadable(zones.defs)
    sold = shop.published("toy.sales", "ds", "shop", "amount")
    assert zones.published("toy.sales_in_berlin", "ds", "shop", "amount") == [
        row for row in sold if row[0] != DAYS[0]
    ]


def test_a_failing_blocking_audit_keeps_the_good_batches_and_says_what_is_wrong(shop: Shop):
    launch = shop.backfill(*DAYS)
    shop.sell("2024-02-01", "north", -1000)

    result = shop.fill("toy.sales", "toy.sales_of_three_days", cells=ALL, **launch)

    assert not result.success
    assert sorted(map(str, keys(result, "toy.sales"))) == list(DAYS[:4])
    for word in ("toy.sales", "2024-02-01", "amount_not_negative", "found 1 of", "allowed 0 rows"):
        assert word in failure(result)
    assert keys(result, "toy.sales_of_three_days") == []  # in one run, a failure stops what follows
    found = checks(result, "toy.sales")
    assert not found["amount_not_negative"].passed
    assert found["amount_not_negative"].blocking
    assert found["amount_is_usual"].passed

    shop.correct("2024-02-01")
    again = shop.fill("toy.sales", cells=ALL, **launch)

    assert again.success
    said = {key: "skipped" in metadata for key, metadata in told(again, "toy.sales")}
    assert said == {day: day in DAYS[:4] for day in DAYS}


def test_a_failing_warning_is_shown_and_stops_nothing(shop: Shop):
    launch = shop.backfill(*DAYS)
    shop.sell("2024-02-01", "east", 5000)

    result = shop.fill("toy.sales", cells=ALL, **launch)

    assert result.success
    assert len(keys(result, "toy.sales")) == len(DAYS)
    found = checks(result, "toy.sales")["amount_is_usual"]
    assert not found.passed
    assert found.severity is dg.AssetCheckSeverity.WARN
    again = checks(shop.fill("toy.sales", cells=ALL, **launch), "toy.sales")["amount_is_usual"]
    assert not again.passed  # a skipped cell is still told of


def test_a_published_check_rests_on_what_is_published_also_while_another_cell_waits(shop: Shop):
    shop.sell("2024-02-01", "east", 5000)
    first = shop.fill("toy.sales", cells=ALL)
    shop.sell("2024-01-30", "west", 7)
    waiting = shop.fill("toy.sales", cells=ALL)  # its plan waits

    for result in (first, waiting):
        assert result.success
        found = checks(result, "toy.sales")
        assert not found["published_amount_is_usual"].passed
        assert "found 1 of" in (found["published_amount_is_usual"].description or "")
        assert found["published_amount_not_negative"].passed


def test_a_cell_whose_input_lacks_fails_with_the_name_of_what_it_waits_for(shop: Shop):
    shop.fill("toy.sales", cells="2024-01-28")

    result = shop.fill("toy.sales_of_three_days", cells="2024-01-28...2024-01-29")

    assert not result.success
    assert keys(result, "toy.sales_of_three_days") == ["2024-01-28"]
    assert "2024-01-29: waits for toy.sales 2024-01-29" in failure(result)


def test_a_stale_cell_that_its_launch_built_is_observed_and_not_rewritten(shop: Shop):
    launch = shop.backfill(*DAYS)
    shop.fill("toy.sales_of_three_days", "toy.sales", cells=ALL, **launch)
    before = shop.published("toy.sales_of_three_days", "ds", "amount")
    shop.sell("2024-02-03", "north", 5)
    shop.refresh("toy.sales", "2024-02-03")

    nothing = NoSpark(spark_config={})
    result = shop.fill("toy.sales_of_three_days", cells=ALL, spark=nothing, **launch)

    assert result.success, failure(result)
    [(key, said)] = observed(result, "toy.sales_of_three_days")
    assert key == "2024-02-03"
    assert said == {"stale": True, "changed_upstream": "toy.sales"}
    assert sorted(map(str, keys(result, "toy.sales_of_three_days"))) == list(DAYS[:-1])
    assert shop.published("toy.sales_of_three_days", "ds", "amount") == before


def test_a_missing_source_fails_with_one_sentence(shop: Shop, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BACKFILL_DATA_DIR", f"{shop.root}/elsewhere")

    result = shop.fill("toy.sales", cells=ALL)

    assert not result.success
    assert "toy.raw_sales" in failure(result)
    assert keys(result, "toy.sales") == []
