"""What of Dagster has no public name is looked for at the start."""

import runpy

import dagster as dg
import pytest

from backfill_assets.errors import PrivateNameError
from backfill_assets.orchestration import private_names
from backfill_assets.orchestration.private_names import TRIED, check_attributes


def test_a_name_that_dagster_no_longer_has_is_told_at_the_start(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr("dagster._core.launcher.WorkerStatus")

    with pytest.raises(PrivateNameError) as told:
        runpy.run_path(private_names.__file__)

    assert "WorkerStatus" in str(told.value)
    assert f"install dagster=={TRIED}" in str(told.value)


def test_an_attribute_that_dagster_no_longer_has_is_told_at_the_start():
    with pytest.raises(PrivateNameError, match="DagsterInstance has no _gone"):
        check_attributes({dg.DagsterInstance: ("_get_event_batch_size", "_gone")})
