"""Runs whose process is gone: the monitor is told, and their cells and pools come free."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest
from dagster._core.events import EngineEventData
from dagster._core.launcher import WorkerStatus
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._core.test_utils import create_run_for_test

from backfill_assets.orchestration import launcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CHECKOUT = Path(__file__).parents[2]
OURS, THEIRS = {"socket": "/run/code"}, {"host": "code.example.org", "port": 4000}


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    (tmp_path / "dagster.yaml").write_text((CHECKOUT / "dagster.yaml").read_text())
    with dg.DagsterInstance.from_config(str(tmp_path)) as opened:
        yield opened


def health(
    instance: dg.DagsterInstance, pid: int | None, server: Mapping[str, object]
) -> WorkerStatus:
    """What the monitor hears of a run that has started."""
    run = create_run_for_test(instance, tags={GRPC_INFO_TAG: json.dumps(server)})
    started = dg.DagsterEvent(dg.DagsterEventType.RUN_START.value, run.job_name)
    instance.report_dagster_event(started, run.run_id)
    if pid is not None:
        data = EngineEventData({"pid": dg.MetadataValue.text(str(pid))})
        instance.report_engine_event("Started process for run", run, data)
    return instance.run_launcher.check_run_worker_health(run).status


def ended() -> int:
    """The number of a process that is no more."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def test_a_run_whose_process_is_gone_has_failed(instance: dg.DagsterInstance):
    assert instance.run_launcher.supports_check_run_worker_health
    assert health(instance, ended(), OURS) is WorkerStatus.FAILED


def test_a_run_whose_process_is_there_goes_on(instance: dg.DagsterInstance):
    assert health(instance, os.getpid(), OURS) is WorkerStatus.RUNNING


def test_a_process_that_began_after_the_run_is_another_one_with_its_number(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(launcher, "_SLACK", -1e9)
    assert health(instance, os.getpid(), OURS) is WorkerStatus.FAILED


def test_a_run_on_another_machine_is_left_to_those_who_see_it(instance: dg.DagsterInstance):
    assert health(instance, ended(), THEIRS) is WorkerStatus.RUNNING


def test_a_run_that_has_not_said_yet_who_it_is_is_left_alone(instance: dg.DagsterInstance):
    assert health(instance, None, OURS) is WorkerStatus.RUNNING
