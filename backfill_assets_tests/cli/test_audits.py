"""`backfill audits`: what audits of published data have found the last times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.state.published_audits import AuditedPublication
from backfill_assets_tests.cli.prepared import NEGATIVE, opened_run

if TYPE_CHECKING:
    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared


def audited(shop: Prepared) -> None:
    """Keep a failed audit of two days of sales."""
    shop.fill("toy.sales", "2024-02-01", "2024-02-02")
    with opened_run("prod") as run:
        ready = run.view().ready("toy.sales")
        of = AuditedPublication("prod", "toy.sales", "v1", 3, ready)
        run.store.published_audits.keep(of, [NEGATIVE])


def test_what_failed_is_told_with_its_cells(shop: Prepared, backfill: Backfill):
    audited(shop)

    ended = backfill("audits")

    assert ended.code == 0
    assert "failed" in ended.lines[1]
    assert "1 of 2 rows fail amount >= 0" in ended.lines[1]
    assert (
        "over 2024-02-01..2024-02-02 (2): allowed 0 rows; cells that fail: 2024-02-01" in ended.out
    )
    assert ended.lines[-1] == "prod: 1 result, 1 failed."


def test_programs_read_the_pin_that_was_audited(shop: Prepared, backfill: Backfill):
    audited(shop)

    (row,) = backfill("audits", "--select", "toy.sales", "--json").json["audits"]

    assert (row["model"], row["audit"], row["passed"]) == (
        "toy.sales",
        "amount_not_negative",
        False,
    )
    assert (row["audited"], row["delta_version"]) == ("2024-02-01..2024-02-02 (2)", 3)


def test_where_nothing_was_audited_there_is_nothing_to_list(backfill: Backfill):
    assert backfill("audits").lines == ["prod: 0 results, 0 failed."]
