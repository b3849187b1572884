from __future__ import annotations

from typing import TYPE_CHECKING, cast

import dagster as dg
import pytest

from backfill_assets.cli.telling import tell_quietly
from backfill_assets_tests.toy import raw_sales

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets.cli.operating import Operating
    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared


@pytest.fixture
def dagster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dg.AssetKey:
    """An event log of its own, and the asset that is looked at in it."""
    home = tmp_path / "dagster"
    home.mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    return dg.AssetKey(["toy", "sales"])


def test_only_what_dagster_was_not_told_is_reported(
    shop: Prepared, backfill: Backfill, dagster: dg.AssetKey
):
    shop.fill("toy.sales", "2024-01-28", "2024-01-31")

    assert backfill("report").out == "prod: 4 cells reported to Dagster.\n"
    assert backfill("report").out == "prod: 0 cells reported to Dagster.\n"


def test_a_cell_whose_content_has_changed_is_reported_again(
    shop: Prepared, backfill: Backfill, dagster: dg.AssetKey
):
    shop.fill("toy.sales", "2024-01-28", "2024-01-31")
    backfill("report")
    batch = shop.change("toy.sales", "2024-01-29", "2024-01-30")

    assert backfill("report", "--json").json["reported"] == 2
    with dg.DagsterInstance.get() as instance:
        told = instance.fetch_materializations(
            dg.AssetRecordsFilter(dagster, asset_partitions=["2024-01-29"]), limit=1
        ).records[0]
    assert told.asset_materialization
    assert told.asset_materialization.metadata["batch"].value == batch


def test_an_instance_that_can_not_be_opened_is_named_with_the_reason(
    shop: Prepared, backfill: Backfill, dagster: dg.AssetKey, tmp_path: Path
):
    asked = "storage:\n  postgres:\n    postgres_url:\n      env: NOT_THERE_URL\n"
    (tmp_path / "dagster" / "dagster.yaml").write_text(asked)

    ended = backfill("report")

    assert ended.code == 1
    assert f"Dagster's instance in {tmp_path / 'dagster'} can't be opened" in ended.err
    assert "NOT_THERE_URL" in ended.err


def test_the_one_cell_of_a_whole_model_is_reported_once(
    shop: Prepared, backfill: Backfill, dagster: dg.AssetKey
):
    shop.fill("toy.shops", "whole", "whole")

    assert [backfill("report", "--json").json["reported"] for _ in range(2)] == [1, 0]


def test_dagster_shows_prod_and_is_told_of_no_other_environment(
    dagster: dg.AssetKey, capsys: pytest.CaptureFixture[str]
):
    nothing = cast("Operating", None)  # whoever looks at it fails, and says so

    tell_quietly(nothing, "dev_refunds")
    assert not capsys.readouterr().err

    tell_quietly(nothing, "prod")
    assert "Dagster was not told" in capsys.readouterr().err


def test_a_source_is_reported_where_it_stood_when_it_was_looked_at_last_once(
    shop: Prepared, backfill: Backfill, dagster: dg.AssetKey
):
    shop.land_nothing(raw_sales)
    shop.look(raw_sales)
    for _ in range(2):
        backfill("report")

    key = dg.AssetKey(["toy", "raw_sales"])
    with dg.DagsterInstance.get() as instance:
        landed = instance.fetch_materializations(key, limit=5).records
        observed = instance.fetch_observations(key, limit=5).records

    assert (len(landed), len(observed)) == (1, 1)
    assert landed[0].asset_materialization
    said = {name: at.value for name, at in landed[0].asset_materialization.metadata.items()}
    assert said["delta_version"] == 0
    assert str(said["looked_at"]).startswith("20")
