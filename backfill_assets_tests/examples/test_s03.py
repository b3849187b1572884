"""S3: seven days of events get session_length_sec: in the shadow, merged per day, compared, swapped, archived."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pytest

from backfill_assets import resolve
from backfill_assets_tests.examples.batches import batches_of, days_in, most_at_once
from backfill_assets_tests.examples.pages import page_of, steady

if TYPE_CHECKING:
    from types import ModuleType

    from backfill_assets.testing import TemporaryProject

pytestmark = [pytest.mark.spark, pytest.mark.story]


def lengths(script: ModuleType) -> dict[str, int]:
    """How many seconds each session lasted, from the views themselves."""
    times = defaultdict(list)
    for view in script.views():
        times[view["session_id"]].append(view["event_time"])
    return {session: int((max(at) - min(at)).total_seconds()) for session, at in times.items()}


def watched_for_a_day(project: TemporaryProject, plan: str) -> None:
    watch = json.loads(project.do("show", plan, "--json").out)["watch"]
    since, until = (datetime.fromisoformat(watch[name]) for name in ("since", "until"))
    first, last = (datetime.fromisoformat(look["at"]) for look in watch["looks"])
    assert until - since == timedelta(hours=24)
    assert since + timedelta(hours=12) <= first < until <= last
    assert [look["found"] for look in watch["looks"]] == [[], []]
    assert watch["ended"], "the first look after 24 hours is the last one"


def test_seven_days_are_enriched_in_the_shadow_and_the_old_table_can_be_read_again(
    script: ModuleType, project: TemporaryProject, capsys: pytest.CaptureFixture[str]
):
    script.filled(project)
    before = project.published(script.MODEL)
    old, _ = resolve(script.MODEL, settings=project.settings)
    views = script.views()
    assert before.num_rows == len(views) == 350, "of two deliveries one counts"

    plan = script.built(project)

    merged = [batch for batch in batches_of(project, script.MODEL) if batch["plan_id"] == plan]
    assert days_in(merged) == [1] * 7
    assert most_at_once(merged) == 2
    assert project.published(script.MODEL).equals(before), "nothing is published before the swap"
    script.compared(project, plan)
    script.swapped(project, plan)
    script.watched(project, plan)

    rows = project.published(script.MODEL).to_pylist()
    assert {row["event_id"] for row in rows} == {view["event_id"] for view in views}
    assert len(rows) == 350
    assert all(row["event_time"] is not None for row in rows)
    session = lengths(script)
    assert all(row["session_length_sec"] == session[row["session_id"]] for row in rows)
    of_views = [session[view["session_id"]] for view in views]
    assert median(row["session_length_sec"] for row in rows) == median(of_views) == 88
    output = capsys.readouterr().out
    assert steady(output) == steady(page_of("s03"))

    watched_for_a_day(project, plan)
    assert Path(old).is_dir(), "the archive"
    project.do("rollback", plan, "--yes")
    assert project.published(script.MODEL).equals(before)
