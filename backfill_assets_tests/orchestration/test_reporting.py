"""What a step tells of while a plan is built in a workspace."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import dagster as dg
import pytest

from backfill_assets.engine.project.events import Event, Failed, SourceNote
from backfill_assets.models.audit import Severity, row_rule
from backfill_assets.models.audit_result import AuditResult
from backfill_assets.orchestration.reporting import Reporter, check_result
from backfill_assets.snapshots.environment import PROD
from backfill_assets_tests.builders import a_model, days


@pytest.fixture
def reporter() -> Reporter:
    return Reporter(Mock(), a_model("web.visits"), Mock(), PROD)


@pytest.mark.parametrize("reader", ["web.visits", "web.sums"])
def test_what_was_found_in_a_source_is_told_whichever_model_of_the_plan_reads_it(
    reporter: Reporter, reader: str
):
    event: Event = SourceNote(reader, "it was made anew")

    reporter.rebuilding(event)

    reporter.context.log.warning.assert_called_once_with("it was made anew")  # pyright: ignore[reportAttributeAccessIssue]


def test_a_failure_of_another_model_of_the_plan_is_told_by_its_own_step(reporter: Reporter):
    reporter.rebuilding(Failed("web.sums", "b1", days(1), "no"))

    assert reporter.lacking == []


def result(found: str, failing: int) -> AuditResult:
    """What one batch's audit found."""
    return AuditResult(
        audit="paid",
        severity=Severity.BLOCKING,
        passed=not failing,
        found=found,
        allowed="0 rows",
        failing_rows=failing,
        cells=("2024-01-01",),
        sample=(),
    )


def test_a_check_over_several_batches_says_as_many_rows_as_its_numbers_count():
    results = [result("2 of 9 rows", 2), result("0 of 9 rows", 0), result("1 of 9 rows", 1)]

    check = check_result(dg.AssetKey("a"), "paid", results)

    assert check.description == (
        "failed in 2 batches, 3 failing rows in all; in the first: found 2 of 9 rows, allowed 0 rows"
    )
    assert (check.metadata["failing_rows"].value, check.metadata["batches"].value) == (3, 2)


def test_a_check_over_several_batches_names_the_failing_cells_and_rows_of_all_of_them():
    first = replace(result("2 of 9 rows", 2), cells=("2024-01-01",), sample=("{row 1}",))
    last = replace(result("1 of 9 rows", 1), cells=("2024-01-09",), sample=("{row 9}",))

    check = check_result(dg.AssetKey("a"), "paid", [first, result("0 of 9 rows", 0), last])

    assert check.metadata["failing_cells"].value == "2024-01-01, 2024-01-09"
    assert str(check.metadata["sample"].value).split() == ["{row", "1}", "{row", "9}"]


def test_a_check_that_blocks_is_an_error_though_cells_from_before_were_only_warned_of():
    warned = replace(result("2 of 9 rows", 2), severity=Severity.WARNING)

    check = check_result(dg.AssetKey("a"), "paid", [warned, result("1 of 9 rows", 1)])

    assert check.severity is dg.AssetCheckSeverity.ERROR
    assert str(check.description).endswith("in the first: found 1 of 9 rows, allowed 0 rows")


def test_a_check_that_passed_says_over_how_many_batches():
    nine, eight = result("0 of 9 rows", 0), result("0 of 8 rows", 0)

    alone = check_result(dg.AssetKey("a"), "paid", [nine])
    both = check_result(dg.AssetKey("a"), "paid", [nine, eight])

    assert alone.description == "found 0 of 9 rows, allowed 0 rows"
    assert (
        both.description == "passed in 2 batches; in the first: found 0 of 9 rows, allowed 0 rows"
    )


def test_an_audit_of_any_name_is_told_as_its_check():
    model = a_model(audits=[row_rule("paid, in full", "cost > 0")])
    specs = [dg.AssetCheckSpec("paid__in_full", asset="a")]
    reporter = Reporter(Mock(assets_def=Mock(check_specs=specs)), model, Mock(), PROD)
    reporter.results = [replace(result("2 of 9 rows", 2), audit="paid, in full")]

    (check,) = reporter.check_results()

    assert not check.passed
    assert check.description == "found 2 of 9 rows, allowed 0 rows"
