from __future__ import annotations

import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.models.fingerprint import fingerprints
from backfill_assets.models.spark_tuning import TUNABLE, spark_tuning, tuned
from backfill_assets.snapshots.snapshot import Snapshot, stored_model
from backfill_assets_tests.builders import a_graph, a_model

SHUFFLE, BROADCAST = "spark.sql.shuffle.partitions", "spark.sql.autoBroadcastJoinThreshold"


def test_settings_are_kept_as_spark_takes_them():
    written = {SHUFFLE: 64, "spark.sql.adaptive.enabled": False, BROADCAST: " 10m "}

    assert spark_tuning("model 'a.b'", written) == {
        SHUFFLE: "64", "spark.sql.adaptive.enabled": "false", BROADCAST: "10m",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("spark.executor.memory", "set it where Spark is started"),
        ("spark.driver.memory", "set it where Spark is started"),
        (
            "spark.scheduler.pool",
            "belongs to a thread of Spark's driver.*`backfill limit` bound how",
        ),
        ("spark.sql.session.timeZone", "it changes more than the speed"),
        ("spark.sql.ansi.enabled", "it changes more than the speed"),
        ("spark.sql.files.ignoreCorruptFiles", "it changes more than the speed"),
        ("spark.sql.warehouse.dir", "it changes more than the speed"),
        ("spark.databricks.delta.commitInfo.userMetadata", "it changes more than the speed"),
        ("spark.databricks.delta.autoCompact.enabled", "it changes more than the speed"),
        ("shuffle.partitions", "it is not a setting of Spark"),
        ("", "it is not a setting of Spark"),
    ],
)
@pytest.mark.parametrize("profile", ["spark", "spark_off_peak"])
def test_a_model_with_a_setting_that_is_not_for_a_batch_does_not_load(
    key: str, why: str, profile: str
):
    with pytest.raises(DeclarationError, match=why) as refused:
        a_model("web.a", **{profile: {key: "1"}})
    assert str(refused.value).startswith("model 'web.a' sets")
    assert "Expected a setting that changes only the speed, such as spark." in str(refused.value)


def test_a_setting_that_is_misspelt_is_told_what_may_be_meant():
    with pytest.raises(DeclarationError, match=f"such as {SHUFFLE}"):
        spark_tuning("the plan", {"spark.sql.shuffle.partition": "64"})


@pytest.mark.parametrize("value", ["", "  ", None, ["64"]])
def test_a_setting_without_a_value_is_refused(value: object):
    with pytest.raises(DeclarationError, match="which can't be set for a single batch"):
        spark_tuning("model 'a.b'", {SHUFFLE: value})


def test_off_peak_wins_over_the_model_and_the_plan_over_both():
    model = a_model(
        "web.a",
        spark={SHUFFLE: 8, BROADCAST: "10m"},
        spark_off_peak={SHUFFLE: 64, "spark.sql.adaptive.enabled": True},
    )

    assert tuned(model, {}, off_peak=False) == {SHUFFLE: "8", BROADCAST: "10m"}
    assert tuned(model, {BROADCAST: "-1"}, off_peak=True) == {
        SHUFFLE: "64", BROADCAST: "-1", "spark.sql.adaptive.enabled": "true",
    }  # fmt: skip


def test_settings_are_part_of_the_description_alone_and_of_the_stored_snapshot():
    plain, fast = a_model("web.a"), a_model("web.a", spark={SHUFFLE: 64})
    before, after = (fingerprints(a_graph(model))["web.a"] for model in (plain, fast))

    assert (before.logic, before.upstream) == (after.logic, after.upstream)
    assert before.metadata != after.metadata
    assert stored_model(Snapshot(fast, after).definition()) == fast


def test_the_list_is_in_order_and_names_each_once():
    assert list(TUNABLE) == sorted(set(TUNABLE))
