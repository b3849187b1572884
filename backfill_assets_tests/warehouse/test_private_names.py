"""What of PySpark has no public name is looked for before a driver is started."""

from __future__ import annotations

import pytest

from backfill_assets.errors import PrivateNameError
from backfill_assets.warehouse.spark.private_names import TRIED, check_names


def test_a_name_that_pyspark_no_longer_has_is_told_before_a_driver_is_started(
    monkeypatch: pytest.MonkeyPatch,
):
    check_names()
    monkeypatch.delattr("pyspark.SparkContext._gateway")

    with pytest.raises(PrivateNameError) as told:
        check_names()

    assert "SparkContext has no _gateway" in str(told.value)
    assert f"install pyspark=={TRIED}" in str(told.value)
