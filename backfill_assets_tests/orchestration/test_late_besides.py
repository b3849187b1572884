"""Which models the job of late data leaves alone, and for whom."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from backfill_assets import build_definitions
from backfill_assets.engine.automatic.late_plan import Refreshed
from backfill_assets.orchestration.released_runs import REASON_TAG
from backfill_assets.orchestration.resources import StateResource
from backfill_assets_tests.builders import a_source
from backfill_assets_tests.engine.queue_world import QueueWorld
from backfill_assets_tests.orchestration.shop import NoSpark, failure
from backfill_assets_tests.orchestration.test_jobs import SUMS, VISITS

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from backfill_assets.engine.project.run_context import RunContext


@pytest.mark.parametrize("tags", [{REASON_TAG: "late"}, {}])
def test_the_sensor_leaves_alone_what_is_not_automatic_and_a_person_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tags: dict[str, str]
):
    monkeypatch.setenv("BACKFILL_DATA_DIR", str(tmp_path))
    asked: list[str] = []

    def noted(_: RunContext, besides: Collection[str] = (), _why: str = "") -> Refreshed:
        asked.extend(besides)
        return Refreshed()

    monkeypatch.setattr("backfill_assets.orchestration.jobs.refresh_late", noted)
    models = [VISITS, replace(SUMS, automation="report")]
    QueueWorld.of(tmp_path, *models).run()
    job = build_definitions(models=models, sources=[a_source()]).resolve_job_def("refresh_late")

    done = job.execute_in_process(
        resources={"backfill_spark": NoSpark(spark_config={}), "backfill_state": StateResource()},
        instance=dg.DagsterInstance.ephemeral(str(tmp_path)),
        tags=tags,
        raise_on_error=False,
    )

    assert done.success, failure(done)
    assert asked == (["web.sums"] if tags else [])
