"""S7: thirty days of orders, two batches at once, with a crash in the middle; and an outage that heals by itself."""

from __future__ import annotations

import importlib
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pyarrow as pa
from deltalake import write_deltalake

from backfill_assets.orchestration.resources import StateResource
from backfill_assets.testing import dying_at, leases_over, shared_spark, temporary_project

if TYPE_CHECKING:
    from backfill_assets.testing import TemporaryProject

PACKAGE = Path(__file__).parent / "shop"
MODEL = "shop.orders"
APRIL = [date(2024, 4, 1) + timedelta(days=number) for number in range(30)]
MAY = [date(2024, 5, 1) + timedelta(days=number) for number in range(10)]
OUTAGE = MAY[3:6]
ORDERS = 20
"""A day."""
DIES_IN_BATCH = 5
ASSETS = "__ASSET_JOB"
"""Dagster's job over assets: the one that a request without a job's name is for."""


def land(project: TemporaryProject, days: list[date]) -> None:
    """Land the orders of some days."""
    sold = [
        (day.toordinal() * 100 + number, 100 + number, day)
        for day in days
        for number in range(ORDERS)
    ]
    names = ("order_id", "amount", "ordered_on")
    columns = dict(zip(names, map(list, zip(*sold, strict=True)), strict=True))
    write_deltalake(project.data / "sources/raw_orders", pa.table(columns), mode="append")


def tick(instance: dg.DagsterInstance) -> list[str]:
    """Let Dagster's sensor look once, and run what it asks for, as its daemon does; give what was asked for."""
    repository = importlib.import_module("shop.catalog").defs.get_repository_def()
    sensor = repository.get_sensor_def("gap_fill_sensor")
    with dg.build_sensor_context(
        instance=instance,
        repository_def=repository,
        resources={"backfill_state": StateResource()},
        sensor_name=sensor.name,
    ) as context:
        asked = sensor.evaluate_tick(context).run_requests or []
    for request in asked:
        repository.get_job(request.job_name or ASSETS).execute_in_process(
            asset_selection=request.asset_selection,
            tags=request.tags,
            run_config=request.run_config,
            instance=instance,
        )
    return [
        f"a run that fills {request.tags['backfill/model']} {request.tags['backfill/cells']}"
        for request in asked
    ]


def tell(project: TemporaryProject) -> None:
    """Play the story, and print what a person sees."""
    plan = crashed(project)
    with leases_over():
        resumed(project, plan)
        outage(project)


def crashed(project: TemporaryProject) -> str:
    """Plan thirty days, and lose the machine in the middle."""
    land(project, APRIL)
    print("# Thirty days are planned: ten batches of three days, two at once.\n")
    planned = project.do("plan", "--end", str(APRIL[-1]), "--reason", "orders of April", code=2)
    print(planned.transcript)
    print(f"# The machine dies while it computes batch {DIES_IN_BATCH}.\n")
    with dying_at("compute", batch=DIES_IN_BATCH):
        print(project.do("apply", planned.plan_id, code=137).transcript)
    print(project.do("status").transcript)
    return planned.plan_id


def resumed(project: TemporaryProject, plan: str) -> None:
    """Do the rest, by the same command."""
    print("# A minute later what it had claimed is free. The same command does exactly the rest.\n")
    print(project.do("apply", plan).transcript)
    print(project.do("promote", plan, "--yes").transcript)


def outage(project: TemporaryProject) -> None:
    """Go on into May, without three days; then they come."""
    land(project, [day for day in MAY if day not in OUTAGE])
    print(
        "# May: the feed was out for three days. The nightly run fills the others, and says what lacks.\n"
    )
    print(project.do("run", code=1).transcript)
    print(project.do("why", MODEL, str(OUTAGE[0])).transcript)
    land(project, OUTAGE)
    print("# The feed comes back. Nobody does anything: the sensor sees it, and asks for a run.\n")
    with dg.DagsterInstance.ephemeral() as instance:
        print("gap_fill_sensor asks for", *tick(instance), end="\n\n")
    print(project.do("status").transcript)


if __name__ == "__main__":
    with shared_spark(), temporary_project(PACKAGE, catalog="shop.catalog") as project:
        tell(project)
