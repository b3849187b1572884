"""`backfill hold` and `release` say what a consumer reads, and every look says who is held."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.reading import published

if TYPE_CHECKING:
    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

SALES, READ = "toy.sales", "toy.sales_of_three_days"


def test_a_hold_is_told_by_status_and_the_plan_until_it_is_released(
    shop: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BACKFILL_CATALOG", "backfill_assets_tests.toy_read")
    shop.fill(SALES, "2024-01-28", "2024-02-03")
    shop.fill(READ, "2024-01-28", "2024-02-02")
    held = backfill("hold", "counter report", "--reason", "month end")
    assert held.lines[-1] == "counter report: held; it reads environment held_counter_report."
    again = backfill("hold", "counter report", "--json")
    assert (again.code, again.out) == (1, "")
    assert "is held already, since" in again.err

    status = backfill("status")
    assert f"held counter report reads {READ} as prod published them" in " ".join(
        status.out.split()
    )
    (row,) = backfill("status", "--json").json["holds"]
    assert (row["reads"], row["reason"]) == ("held_counter_report", "month end")
    assert row["overdue"] is False
    (row,) = backfill("map", READ, "--json").json["holds"]
    assert row["models"] == [READ]
    planned = backfill("plan", "--restate", f"{READ}:2024-02-01..2024-02-01")
    assert "Not touched: counter report, held on" in planned.out
    found = backfill("resolve", READ, "--consumer", "counter report", "--json").json
    assert found["environment"] == "held_counter_report"
    for verb in (("resolve", READ), ("views", "--for", "duckdb")):
        held, misspelt = (
            backfill(*verb, "--consumer", name) for name in ("counter report", "counter reports")
        )
        assert "is not held" not in held.err
        assert held.code == misspelt.code
        assert "consumer 'counter reports' is not held and reads what is published" in misspelt.err
        assert "held: counter report" in misspelt.err

    shop.fill(READ, "2024-02-03", "2024-02-03")
    released = backfill("release", "counter report")
    assert released.lines == [
        f"now reads different data: {READ} 2024-02-03",
        "counter report: reads prod again; 1 model changed for it.",
    ]
    assert published(consumer="counter report").env == "prod"
    assert backfill("release", "counter report").code == 1


def test_the_environment_of_a_hold_lacks_nothing_of_other_models_and_is_ended_by_its_release(
    shop: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BACKFILL_CATALOG", "backfill_assets_tests.toy_read")
    shop.fill(SALES, "2024-01-28", "2024-02-03")
    shop.fill(READ, "2024-01-28", "2024-02-02")
    backfill("hold", "counter report")
    held = ("--env", "held_counter_report")

    status = backfill("status", *held)
    assert [row["model"] for row in backfill("status", *held, "--json").json["models"]] == [READ]
    assert status.lines[-2] == "Next: backfill release 'counter report'"
    assert [row["model"] for row in backfill("map", *held, "--json").json["models"]] == [READ]
    dropped = backfill("envs", "drop", "held_counter_report", "--yes")
    assert (dropped.code, "`backfill release 'counter report'` ends" in dropped.err) == (1, True)


def test_an_unknown_consumer_and_an_instant_that_can_not_be_read_are_errors(
    shop: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BACKFILL_CATALOG", "backfill_assets_tests.toy_read")
    unknown = backfill("hold", "counter reports")
    assert (unknown.code, unknown.out) == (1, "")
    assert "did you mean 'counter report'" in unknown.err
    assert (
        "--until 'friday' can't be read"
        in backfill("hold", "counter report", "--until", "friday").err
    )
