"""The job that brings late rows in: what it builds, publishes, and shows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import dagster as dg

from backfill_assets.engine.automatic.scan import ready_work
from backfill_assets.engine.automatic.scan_memory import ScanMemory
from backfill_assets.models.graph import build_graph
from backfill_assets.orchestration.resources import StateResource
from backfill_assets.snapshots.loaded import Loaded
from backfill_assets_tests.orchestration.shop import failure, keys, shown
from backfill_assets_tests.toy import DAYS, MODELS, SOURCES
from backfill_assets_tests.toy_definitions import defs as without_windows
from backfill_assets_tests.toy_queue_definitions import defs

if TYPE_CHECKING:
    from backfill_assets_tests.orchestration.shop import Shop

ALL = f"{DAYS[0]}...{DAYS[-1]}"
READER = "toy.sales_of_three_days"


def test_late_rows_reach_the_last_model_in_one_plan_and_dagster_is_told_of_what_changed(shop: Shop):
    filled = replace(shop, defs=defs).fill("toy.sales", READER, cells=ALL)
    assert filled.success, failure(filled)
    assert len(keys(filled, READER)) == len(DAYS)
    shop.sell(DAYS[3], "north", 500)

    done = defs.resolve_job_def("refresh_late").execute_in_process(
        resources=shop.resources(), instance=shop.instance, raise_on_error=False
    )

    assert done.success, failure(done)
    [said] = cast(
        "list[dict[str, Any]]",
        [
            {key: entry.value for key, entry in event.step_output_data.metadata.items()}
            for event in done.all_events
            if event.event_type_value == "STEP_OUTPUT"
        ],
    )
    assert said["cells"]["toy.sales"] == 1
    assert said["needs_a_plan"] == {}
    assert said["changed_cells"] == 4
    newest = shop.instance.get_latest_materialization_event(dg.AssetKey(READER.split(".")))
    assert newest is not None
    assert newest.asset_materialization is not None
    assert newest.asset_materialization.partition in DAYS[3:6]
    told = {each.user_message for each in shop.instance.all_logs(done.run_id)}
    assert any(f"done    toy.sales {DAYS[3]}: " in each for each in told)


def test_late_rows_that_need_a_plan_are_told_with_the_plan_and_what_a_person_can_do(shop: Shop):
    assert shop.fill("toy.sales", READER, cells=ALL).success  # without late windows
    shop.sell(DAYS[3], "north", 500)

    done = without_windows.resolve_job_def("refresh_late").execute_in_process(
        resources=shop.resources(), instance=shop.instance, raise_on_error=False
    )

    said = shown(done)
    plan_id = said["needed_plan"]
    assert f"backfill apply {plan_id}" in said["next"]
    [line] = [
        each.user_message
        for each in shop.instance.all_logs(done.run_id)
        if each.user_message.startswith("late cells of toy.sales ")
    ]
    assert f"wait for plan {plan_id} (beyond the late window of toy.sales" in line
    assert line.endswith(said["next"])
    state = StateResource()
    project = state.project(Loaded.of(build_graph(MODELS, SOURCES)), "scan")
    assert ready_work(project, ScanMemory()).notes == (
        f"late data waits for plan {plan_id}, which is proposed: a person decides on it, `backfill show {plan_id}`",
    )
    state.store.close()
