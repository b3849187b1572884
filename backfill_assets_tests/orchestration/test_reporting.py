"""What a step tells of while a plan is built in a workspace."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from backfill_assets.engine.project.events import Event, Failed, Noted
from backfill_assets.orchestration.reporting import Reporter
from backfill_assets.snapshots.environment import PROD
from backfill_assets_tests.builders import a_model, days


@pytest.fixture
def reporter() -> Reporter:
    return Reporter(Mock(), a_model("web.visits"), Mock(), PROD)


@pytest.mark.parametrize("reader", ["web.visits", "web.sums"])
def test_what_was_found_in_a_source_is_told_whichever_model_of_the_plan_reads_it(
    reporter: Reporter, reader: str
):
    event: Event = Noted(reader, "web.events", "it was made anew")

    reporter.rebuilding(event)

    reporter.context.log.warning.assert_called_once_with("it was made anew")  # pyright: ignore[reportAttributeAccessIssue]


def test_a_failure_of_another_model_of_the_plan_is_told_by_its_own_step(reporter: Reporter):
    reporter.rebuilding(Failed("web.sums", "b1", days(1), "no"))

    assert reporter.lacking == []
