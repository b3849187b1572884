"""The session of a command: when it is started, and when it is not tried again."""

from __future__ import annotations

from pathlib import Path

import pytest

from backfill_assets.cli.project import LazySpark
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.settings import Settings
from backfill_assets.warehouse.spark.connect import SparkUnreachableError
from backfill_assets.warehouse.spark.session import MissingJarsError

GONE = SparkUnreachableError("sc://nowhere:1", 60.0, "no answer")


@pytest.mark.parametrize(
    ("error", "starts"), [(MissingJarsError(Path(".spark-jars")), 1), (GONE, 3)]
)
def test_a_start_is_tried_again_only_where_that_may_help(
    error: BackfillAssetsError, starts: int, monkeypatch: pytest.MonkeyPatch
):
    started: list[object] = []

    def start(settings: object) -> None:
        started.append(settings)
        raise error

    monkeypatch.setattr("backfill_assets.warehouse.spark.shared_session.start_session", start)
    spark = LazySpark(Settings())

    for _ in range(3):
        with pytest.raises(type(error)) as told:
            spark()
        assert told.value is error

    assert len(started) == starts
