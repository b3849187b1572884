from __future__ import annotations

import pytest

from backfill_assets.models.audit import (
    Audit,
    fresh,
    not_null,
    reconciles,
    references,
    row_count_within,
    row_rule,
    unique,
)
from backfill_assets.models.audit_words import audit_words
from backfill_assets.models.audits_of import audits_of
from backfill_assets.pipelines.catalog import MODELS

BLOCKS = "A failure keeps the batch from being committed."


@pytest.mark.parametrize(
    ("audit", "said"),
    [
        (row_rule("paid", "amount >= 0"), f"Every row obeys amount >= 0. {BLOCKS}"),
        (
            not_null("shop", allowed=0.01, warn=True),
            "Every row obeys `shop` IS NOT NULL, but for at most 1.000% of a cell's rows. A failure only warns.",
        ),
        (unique("ds", "shop"), f"No two rows of the table share ds, shop. {BLOCKS}"),
        (
            row_count_within(0.1),
            f"A rebuilt cell keeps its number of rows within 10.000%. {BLOCKS}",
        ),
        (
            fresh("at", "6h"),
            f"In each cell, the newest value of at lies at most 6h before the end of the cell. {BLOCKS}",
        ),
        (
            references("shop", "toy.shops", "id"),
            f"Every value of shop exists in toy.shops.id. {BLOCKS}",
        ),
        (
            reconciles("orders", "toy.sales", "*", tolerance=0.005),
            f"Over the same cells sum(orders) equals number of rows of toy.sales, within 0.500%. {BLOCKS}",
        ),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_an_audit_says_what_it_demands_and_what_a_failure_does(audit: Audit, said: str):
    assert audit_words(audit) == said


def test_every_column_and_audit_of_the_shipped_models_is_described():
    silent = [
        f"{model.name}.{column.name}"
        for model in MODELS
        for column in model.schema
        if not column.description
    ]

    assert silent == []
    assert all(audit_words(audit) for model in MODELS for audit in audits_of(model))
