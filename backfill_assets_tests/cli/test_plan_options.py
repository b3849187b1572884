from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import DeclarationError, RequestError
from backfill_assets.planning.plan.request import Category, Restatement, Strategy
from backfill_assets.planning.plan.written_options import (
    categories,
    chosen,
    restatements,
    spark,
    strategies,
)

if TYPE_CHECKING:
    from collections.abc import Callable

RESTATED = {
    "toy.sales": Restatement("toy.sales"),
    "toy.sales:2024-01-01..2024-01-31": Restatement("toy.sales", "2024-01-01", "2024-01-31"),
    "toy.sales:2024-01-01": Restatement("toy.sales", "2024-01-01", "2024-01-01"),
    "toy.sales:..2024-01-31": Restatement("toy.sales", None, "2024-01-31"),
    "toy.sales:2024-01-01..": Restatement("toy.sales", "2024-01-01", None),
    "toy.clicks:2024-01-01T03:00:00Z..2024-01-01T05:00:00Z": Restatement(
        "toy.clicks", "2024-01-01T03:00:00Z", "2024-01-01T05:00:00Z"
    ),
}


@pytest.mark.parametrize(("asked", "meant"), RESTATED.items())
def test_a_restatement_is_a_name_and_perhaps_a_stretch(asked: str, meant: Restatement):
    assert restatements([asked]) == (meant,)


def test_selectors_are_given_one_by_one_or_with_commas():
    assert chosen(["+toy.sales, tag:tier=1", "owner:team:toy"]) == (
        "+toy.sales",
        "tag:tier=1",
        "owner:team:toy",
    )
    assert chosen(None) == ()


def test_decisions_are_read_however_their_words_are_joined():
    assert categories(["toy.sales=non-breaking", "toy.returns=FORWARD_ONLY"]) == (
        ("toy.sales", Category.NON_BREAKING),
        ("toy.returns", Category.FORWARD_ONLY),
    )
    assert strategies(["toy.sales=dual-run", "toy.returns=full rebuild"]) == (
        ("toy.sales", Strategy.DUAL_RUN),
        ("toy.returns", Strategy.FULL_REBUILD),
    )


def test_spark_settings_of_a_plan_are_read_and_the_last_of_one_name_counts():
    asked = ["spark.sql.shuffle.partitions=8", "spark.sql.shuffle.partitions = 64"]
    assert spark(asked) == (("spark.sql.shuffle.partitions", "64"),)
    assert spark(None) == ()


def test_a_spark_setting_that_a_batch_cannot_have_is_refused_in_a_plan_too():
    with pytest.raises(DeclarationError, match=r"the plan sets Spark's 'spark.executor.memory'"):
        spark(["spark.executor.memory=8g"])


WRONG = [
    (restatements, ":2024-01-01", "--restate ':2024-01-01' can't be read: expected MODEL, "),
    (restatements, "toy.sales:", "expected MODEL, MODEL:DATE or MODEL:FIRST..LAST"),
    (categories, "toy.sales", "expected MODEL=ONE of breaking, non-breaking, forward-only"),
    (categories, "=breaking", "--category '=breaking'"),
    (spark, "spark.sql.shuffle.partitions", "expected KEY=VALUE"),
    (strategies, "toy.sales=magic", "MODEL=ONE of full-rebuild, partition-repair"),
]


@pytest.mark.parametrize(("read", "asked", "said"), WRONG)
def test_what_cannot_be_read_names_the_option_and_what_it_takes(
    read: Callable[[list[str]], object], asked: str, said: str
):
    with pytest.raises(RequestError, match="can't be read: expected") as found:
        read([asked])

    assert said in str(found.value)
