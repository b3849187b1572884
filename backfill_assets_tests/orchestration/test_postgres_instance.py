"""Dagster's own storage in PostgreSQL: the instance opens, and keeps a run with its tags."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest
import yaml

if TYPE_CHECKING:
    from backfill_assets_tests.postgres import Server

CHECKOUT = Path(__file__).parents[2]


@dg.asset
def one() -> int:
    return 1


def test_a_run_is_kept_with_its_tags_and_events_by_whoever_opens_the_instance_next(
    postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    url = postgres.create("dagster").replace("postgresql://", "postgresql+psycopg2://")
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", url)
    shutil.copy(CHECKOUT / "dagster.postgres.yaml", tmp_path / "dagster.yaml")
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        done = dg.materialize([one], instance=instance, tags={"backfill/plan": "p1"})
        assert done.success
    with dg.DagsterInstance.from_config(str(tmp_path)) as again:
        (run,) = again.get_runs()
        assert run.tags["backfill/plan"] == "p1"
        assert run.status is dg.DagsterRunStatus.SUCCESS
        assert again.get_latest_materialization_event(one.key) is not None
        assert "PostgresRunStorage" in type(again.run_storage).__name__
    assert [path.name for path in tmp_path.rglob("*.db")] == []


def test_the_two_instances_differ_in_their_storage_alone():
    here, there = (
        yaml.safe_load((CHECKOUT / name).read_text())
        for name in ("dagster.yaml", "dagster.postgres.yaml")
    )
    assert there.pop("storage") == {"postgres": {"postgres_url": {"env": "DAGSTER_POSTGRES_URL"}}}
    assert here == there
