"""S7: thirty days at concurrency 2 with a resume; days that an outage left out are found and filled by itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from backfill_assets.testing import leases_over
from backfill_assets_tests.examples.batches import batches_of, days_in, most_at_once, span
from backfill_assets_tests.examples.pages import page_of, steady

if TYPE_CHECKING:
    from types import ModuleType

    from backfill_assets.testing import TemporaryProject

pytestmark = [pytest.mark.spark, pytest.mark.story]


def test_thirty_days_survive_a_crash_and_an_outage_is_filled_without_a_person(
    script: ModuleType, project: TemporaryProject, capsys: pytest.CaptureFixture[str]
):
    plan = script.crashed(project)
    before = batches_of(project, script.MODEL)
    assert 3 <= len(before) <= 4, (
        "of the first five batches one died, and one may have been at work"
    )
    ready = project.do("status", "--json").json["models"][0]["ready"]
    assert ready == 0, "readers see nothing of a plan that is not promoted"

    with leases_over():
        script.resumed(project, plan)
        april = batches_of(project, script.MODEL)
        assert days_in(april) == [3] * 10
        assert len({span(batch) for batch in april}) == 10, "no batch was committed twice"
        kept = {batch["batch_id"] for batch in before}
        assert kept <= {batch["batch_id"] for batch in april}, (
            "what was committed was not built again"
        )
        # The second process may record what the first had committed: each by itself.
        runs = {batch["run_id"] for batch in april}
        assert len(runs) == 2
        for run in runs:
            assert most_at_once(batch for batch in april if batch["run_id"] == run) == 2

        script.outage(project)

    rows = project.published(script.MODEL).to_pylist()
    by_day = Counter(row["ordered_on"] for row in rows)
    assert by_day == dict.fromkeys([*script.APRIL, *script.MAY], script.ORDERS)
    filled = batches_of(project, script.MODEL)
    assert [span(batch) for batch in filled if batch["who"] == "dagster"] == [
        span({"start": "2024-05-04T00:00:00+00:00", "end": "2024-05-07T00:00:00+00:00"})
    ]
    assert steady(capsys.readouterr().out) == steady(page_of("s07"))
