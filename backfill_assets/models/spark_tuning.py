"""Spark settings that a batch may have of its own: those that change its pace, never its rows.

They are set on the batch's session while it runs. Settings that Spark reads only at its start (memory,
cores, executors) are refused, and so is the scheduler's pool, which is a thread's. Settings that change
the meaning of a query are the same for all batches, so no declaration holds them.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from backfill_assets.errors import DeclarationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.models.model import Model

TUNABLE = (
    "spark.databricks.delta.merge.repartitionBeforeWrite.enabled",
    "spark.databricks.delta.optimizeWrite.binSize",
    "spark.databricks.delta.optimizeWrite.enabled",
    "spark.databricks.delta.optimizeWrite.maxShufflePartitions",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes",
    "spark.sql.adaptive.autoBroadcastJoinThreshold",
    "spark.sql.adaptive.coalescePartitions.enabled",
    "spark.sql.adaptive.coalescePartitions.initialPartitionNum",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst",
    "spark.sql.adaptive.enabled",
    "spark.sql.adaptive.localShuffleReader.enabled",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold",
    "spark.sql.adaptive.skewJoin.enabled",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes",
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.broadcastTimeout",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.maxRecordsPerFile",
    "spark.sql.files.minPartitionNum",
    "spark.sql.files.openCostInBytes",
    "spark.sql.inMemoryColumnarStorage.batchSize",
    "spark.sql.inMemoryColumnarStorage.compressed",
    "spark.sql.join.preferSortMergeJoin",
    "spark.sql.parquet.compression.codec",
    "spark.sql.shuffle.partitions",
)
"""Every setting that a batch may have of its own."""


_KNOWN_BEST = ("spark.sql.shuffle.partitions", "spark.sql.autoBroadcastJoinThreshold")


def _spark_setting(of: str, key: str, value: object, why: str) -> DeclarationError:
    like = get_close_matches(key, TUNABLE, cutoff=0.7) or _KNOWN_BEST
    return DeclarationError(
        found=f"{of} sets Spark's '{key}' to {value!r}, which can't be set for a single batch: {why}. "
        f"Expected a setting that changes only the speed, such as {', '.join(like)}",
        do="`backfill_assets.models.spark_tuning.TUNABLE` lists all of them",
    )


def spark_tuning(of: str, written: Mapping[str, object]) -> dict[str, str]:
    """Read Spark settings as they were written.

    Args:
        of: who, for the message: ``model 'a.b'``.
        written: by name; texts, numbers or booleans.

    Raises:
        DeclarationError: one of them is not for a batch, or has no value.
    """
    return {key: _value(of, key, written[key]) for key in sorted(written)}


def tuned(model: Model, plan: Mapping[str, str], *, off_peak: bool) -> dict[str, str]:
    """Give the settings of a batch: its model's, then those for off-peak hours, then its plan's."""
    return {**model.spark_settings, **(model.off_peak_settings if off_peak else {}), **plan}


def _value(of: str, key: str, value: object) -> str:
    if key not in TUNABLE:
        raise _spark_setting(of, key, value, _why_not(key))
    text = str(value).lower() if isinstance(value, bool) else str(value).strip()
    if not isinstance(value, str | int | float) or not text:
        raise _spark_setting(of, key, value, "the value is not a text, number or boolean")
    return text


def _why_not(key: str) -> str:
    if key.startswith(("spark.sql.", "spark.databricks.")):
        return "it changes more than the speed, or it applies to all batches"
    if key == "spark.scheduler.pool":
        return (
            "a pool belongs to a thread of Spark's driver, not to the session of a batch, and a client "
            "of Spark Connect can't name one; `batch_concurrency` and `backfill limit` bound how many "
            "batches share Spark"
        )
    if key.startswith("spark."):
        return (
            "Spark reads it once, when it starts; set it where Spark is started, and start one of its "
            "own for a plan that needs more (docs/queue.md)"
        )
    return "it is not a setting of Spark"
