from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.testing import time_passed

if TYPE_CHECKING:
    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

WHY = "audit 'amount_not_negative' of 'toy.sales' failed"


def test_json_has_every_field_that_is_kept_of_a_batch(shop: Prepared, backfill: Backfill):
    batch = shop.fill("toy.sales", "2024-01-28", "2024-01-30")

    (row,) = backfill("batches", "--json").json

    assert row["batch_id"] == batch
    assert (row["cells"], row["rows"], row["bytes"]) == ("2024-01-28..2024-01-30 (3)", 30, 100)
    assert (row["attempt"], row["status"], row["error"]) == (1, "committed", None)
    assert row["started_at"]
    assert row["finished_at"]
    assert row["run_id"].startswith("cli-")
    assert len(row["code_version"]) >= 12
    assert "plan_id" in row


def test_the_newest_comes_first_and_the_count_last(shop: Prepared, backfill: Backfill):
    shop.fill("toy.sales", "2024-01-28", "2024-01-29")
    newest = shop.fill("toy.sales", "2024-01-30", "2024-01-30")

    lines = backfill("batches", "--limit", "1").lines

    assert lines[1].startswith(newest[:8])
    assert lines[-1] == "1 batch."


def test_only_failed_ones_are_listed_on_request_with_their_errors(
    shop: Prepared, backfill: Backfill
):
    shop.fill("toy.sales", "2024-01-28", "2024-01-29")
    failed = shop.fail("toy.sales", "2024-01-31", "2024-02-01", WHY)

    lines = backfill("batches", "--failed").lines

    assert lines[2:] == [
        f"{failed[:8]} toy.sales 2024-01-31..2024-02-01 (2): {WHY}",
        f"Next: backfill batches {failed[:8]}",
        "1 failure.",
    ]


def test_one_batch_is_shown_with_its_audits_and_failing_rows(shop: Prepared, backfill: Backfill):
    failed = shop.fail("toy.sales", "2024-01-31", "2024-02-01", WHY)

    said = backfill("batches", failed[:6]).out

    assert "amount_not_negative: FAILED (blocking): found 1 of 2 rows fail amount >= 0" in said
    assert '{"ds":"2024-02-01","shop":"north","amount":-5.00}' in said


def test_failing_rows_are_in_the_json_of_one_batch(shop: Prepared, backfill: Backfill):
    failed = shop.fail("toy.sales", "2024-01-31", "2024-02-01", WHY)

    (audit,) = backfill("batches", failed, "--json").json["audits"]

    assert (audit["audit"], audit["failing_rows"]) == ("amount_not_negative", 1)
    assert len(audit["sample"]) == 1


def test_a_batch_that_nobody_knows_is_an_error(backfill: Backfill):
    ended = backfill("batches", "beef")

    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "error: no batch begins with 'beef'; `backfill batches` lists them\n"


def test_a_state_without_batches_lists_none(backfill: Backfill):
    assert backfill("batches").out == "0 batches.\n"
    assert backfill("batches", "--json").json == []


def test_a_failure_whose_cells_were_built_since_is_left_out_unless_all_are_asked_for(
    shop: Prepared, backfill: Backfill
):
    overtaken = shop.fail("toy.sales", "2024-01-28", "2024-01-29", WHY)
    open_ = shop.fail("toy.sales", "2024-01-31", "2024-02-01", WHY)
    shop.fill("toy.sales", "2024-01-28", "2024-01-31")

    listed = backfill("batches", "--failed")
    everything = backfill("batches", "--failed", "--all", "--json").json

    assert overtaken[:8] not in listed.out
    assert listed.lines[-1] == ("1 failure; 1 more whose cells were built since: --all.")
    assert [row["batch_id"] for row in everything] == [open_, overtaken]


def test_a_batch_of_a_dead_process_is_silent_once_its_lease_is_over(
    shop: Prepared, backfill: Backfill
):
    shop.fill("toy.sales", "2024-01-28", "2024-01-29")
    begun = shop.begin("toy.sales", "2024-01-31", "2024-02-01")

    def statuses() -> list[str]:
        return [row["status"] for row in backfill("batches", "--json").json]

    assert statuses() == ["running", "committed"]
    with time_passed(timedelta(hours=1)):
        assert statuses() == ["silent", "committed"]
        assert backfill("batches", begun, "--json").json["status"] == "silent"
        assert "silent" in backfill("batches").lines[1]


def test_what_kept_a_batch_from_beginning_is_listed_until_its_cells_are_built(
    shop: Prepared, backfill: Backfill
):
    backfill("run", "--select", "toy.sales")

    (row,) = backfill("batches", "--failed", "--json").json
    said = backfill("batches", "--failed").lines
    shop.fill("toy.sales", "2024-01-28", "2024-02-03")

    assert (row["batch_id"], row["status"], row["failure"]) == ("", "not begun", "input")
    assert (row["cells"], row["who"]) == ("2024-01-28..2024-02-03 (7)", "ada")
    assert any(line.startswith("not begun toy.sales 2024-01-28..2024-02-03 (7): ") for line in said)
    assert backfill("batches", "--failed").lines == [
        "0 failures; 1 more whose cells were built since: --all."
    ]


def test_failures_have_the_fields_of_batches(shop: Prepared, backfill: Backfill):
    shop.fill("toy.sales", "2024-01-28", "2024-01-28")
    backfill("run", "--select", "toy.shops")

    (batch,) = backfill("batches", "--model", "toy.sales", "--json").json
    (failure,) = backfill("batches", "--failed", "--json").json

    assert list(batch) == list(failure)
