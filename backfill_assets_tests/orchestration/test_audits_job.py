"""The job `audits`: every audit once more over what is published, without rebuilding anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg
import pytest

from backfill_assets_tests.orchestration.shop import checks
from backfill_assets_tests.planting import plant, publish_head
from backfill_assets_tests.toy import MODELS

if TYPE_CHECKING:
    from backfill_assets_tests.orchestration.shop import Shop

pytestmark = pytest.mark.spark


def test_published_data_passes_and_a_planted_failure_fails_the_job(shop: Shop):
    shop.fill("toy.sales", cells="2024-01-28...2024-01-31")

    passing = shop.audit()

    assert passing.success
    assert len(passing.get_asset_check_evaluations()) == sum(
        len(checks(passing, model.name)) for model in MODELS
    )
    sold = checks(passing, "toy.sales")["published_amount_not_negative"]
    assert sold.passed
    assert sold.metadata["batches"].value == 1
    empty = checks(passing, "toy.shops")["published_unique_grain"]  # nothing of it is published
    assert not empty.passed
    assert empty.severity is dg.AssetCheckSeverity.WARN
    assert "no published cell was audited" in (empty.description or "")

    plant(shop.root, "toy.sales", "2024-01-29")
    assert shop.audit().success  # what is not published is nobody's concern

    publish_head(shop.root, "toy.sales")
    failing = shop.audit()

    assert not failing.success
    found = checks(failing, "toy.sales")["published_amount_not_negative"]
    assert not found.passed
    assert "found 2 of" in (found.description or "")
    assert found.metadata["cells"].value == "2024-01-29"
