"""A run knows who launched it by what the webserver attests, never by what was typed."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import dagster as dg
import pytest
from dagster._core.remote_origin import (
    ManagedGrpcPythonEnvCodeLocationOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from backfill_assets.orchestration.identity import ATTESTATION_TAG, PRINCIPAL_TAG, identity_tags
from backfill_assets.orchestration.launches import who_launched
from backfill_assets.orchestration.run_coordinator import IdentifyingRunCoordinator
from backfill_assets.snapshots.person import names_in

BOB = "bob@shop.example"
FORGED = {PRINCIPAL_TAG: BOB, ATTESTATION_TAG: "0" * 64}


@dg.op
def nothing() -> None: ...


@dg.job
def empty() -> None:
    nothing()


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "identity.key"
    path.touch(mode=0o600)
    path.write_bytes(os.urandom(64))
    monkeypatch.setenv("BACKFILL_IDENTITY_HEADER", "X-Forwarded-Email")
    monkeypatch.setenv("BACKFILL_IDENTITY_KEY", str(path))
    return path


def launched(header: str | None, tags: dict[str, str]) -> dg.DagsterRun:
    """Give a run as the coordinator queues it: with a header, or by the daemon, and with tags that were typed."""
    with dg.DagsterInstance.ephemeral() as instance:
        coordinator = IdentifyingRunCoordinator()
        coordinator.register_instance(instance)
        # One that has started is not queued again: only its tags are looked at.
        run = instance.create_run_for_job(empty, tags=tags, status=dg.DagsterRunStatus.STARTED)
        asked: Any = SimpleNamespace(
            dagster_run=run,
            workspace=SimpleNamespace(instance=instance),
            get_request_header=lambda name: header if name == "X-Forwarded-Email" else None,
        )
        coordinator.submit_run(cast("dg.SubmitRunContext", asked))
        found = instance.get_run_by_id(run.run_id)
        assert found is not None
        return found


def test_a_run_knows_the_person_whom_the_proxy_names(key: Path):
    who = who_launched(launched(BOB, {}), typed="ann")

    assert (who.identity, str(who)) == (BOB, f"{BOB} (typed: ann)")


@pytest.mark.parametrize("header", [None, "", " ", "eve@shop.example"])
def test_what_is_typed_into_a_launch_proves_no_one(key: Path, header: str | None):
    who = who_launched(launched(header, FORGED))

    assert who.identity == (header or "").strip() or who.identity is None
    assert who.identity != BOB


@pytest.mark.parametrize(
    ("tags", "through"),
    [
        (
            {"dagster/from_automation_condition": "true", "dagster/sensor_name": "default"},
            "an automation condition",
        ),
        ({"dagster/schedule_name": "nightly"}, "a schedule"),
        ({"dagster/sensor_name": "new_files"}, "a sensor"),
    ],
)
def test_a_run_that_the_projects_own_automation_asked_for_says_so_and_proves_no_one(
    key: Path, tags: dict[str, str], through: str
):
    who = who_launched(launched(None, tags))

    assert (who.identity, str(who)) == (None, f"unknown, through {through}")
    assert names_in(str(who)) == frozenset()


def test_a_run_that_is_executed_where_it_was_asked_for_came_through_a_command_of_dagster():
    run = empty.execute_in_process().dagster_run
    assert str(who_launched(run)) == "unknown, through a command of Dagster"


def test_a_run_that_a_code_location_is_asked_for_came_through_the_launchpad():
    target = LoadableTargetOrigin(module_name="shop.definitions")
    location = ManagedGrpcPythonEnvCodeLocationOrigin(target)
    job = RemoteRepositoryOrigin(location, "__repository__").get_job_origin("empty")
    with dg.DagsterInstance.ephemeral() as instance:
        run = instance.create_run_for_job(empty, remote_job_origin=job)

    assert str(who_launched(run)) == "unknown, through the launchpad"


def test_tags_of_another_run_prove_no_one_even_without_the_coordinator(key: Path):
    of_another = dict(identity_tags(BOB, "another run"))
    with dg.DagsterInstance.ephemeral() as instance:
        run = instance.create_run_for_job(empty, tags=of_another)
        forged = instance.create_run_for_job(empty, tags=FORGED)

    assert who_launched(run).identity is None
    assert who_launched(forged).identity is None


def test_without_a_key_no_one_is_known(key: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("BACKFILL_IDENTITY_KEY")

    assert who_launched(launched(BOB, {})).identity is None
