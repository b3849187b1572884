"""A package outside this repository builds the same thing, from what the README shows."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import dagster as dg
import pytest

from backfill_assets_tests.orchestration.shop import failure, keys, lent

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets_tests.orchestration.shop import Shop

PACKAGE = """
from backfill_assets import (
    Column, Daily, IncrementalByTimeRange, Model, Source, SqlQuery, TimeColumns,
    build_definitions, row_rule,
)

COLUMNS = (Column("ds", "date"), Column("shop", "string"), Column("amount", "decimal(18,2)"))

raw_sales = Source(
    name="acme.raw_sales",
    path="sources/raw_sales",
    cadence=Daily(start="2024-01-28"),
    columns=COLUMNS,
    times=TimeColumns(event="ds"),
)
sales = Model(
    name="acme.sales",
    query=SqlQuery(
        "SELECT ds, shop, CAST(SUM(amount) AS DECIMAL(18, 2)) AS amount FROM acme.raw_sales "
        "WHERE ds >= :start_ds AND ds < :end_ds GROUP BY ds, shop"
    ),
    kind=IncrementalByTimeRange(time_column="ds"),
    cadence=Daily(start="2024-01-28", end="2024-02-03"),
    upstreams=["acme.raw_sales"],
    grain="one row per day and shop",
    unique_key=["ds", "shop"],
    columns=COLUMNS,
    audits=[row_rule("amount_not_negative", "amount >= 0")],
    owner="team:acme",
)
MODELS, SOURCES = (sales,), (raw_sales,)
defs = build_definitions(models=MODELS, sources=SOURCES)
"""

LIST = """
import json, sys
import dagster as dg
from acme.catalog import defs
dg.Definitions.validate_loadable(defs)
graph = defs.resolve_asset_graph()
keys = graph.get_all_asset_keys()
json.dump({key.to_user_string(): [graph.get(key).is_materializable, graph.get(key).is_observable] for key in keys}, sys.stdout)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere" / "acme"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "catalog.py").write_text(PACKAGE)
    return folder.parent


def test_it_loads_alone_and_a_source_that_nobody_lands_can_be_looked_at(package: Path):
    done = subprocess.run(
        [sys.executable, "-c", LIST], cwd=package, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "acme/sales": [True, False],
        "acme/raw_sales": [False, True],
    }


@pytest.mark.spark
def test_a_cell_of_it_is_filled(shop: Shop, package: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(package))
    from acme.catalog import defs  # pyright: ignore[reportMissingImports]  # noqa: PLC0415

    result = dg.materialize(
        [*defs.assets, *defs.asset_checks],
        selection=[dg.AssetKey(["acme", "sales"])],
        partition_key="2024-01-29",
        resources=shop.resources(lent(shop.spark)),
        instance=shop.instance,
        raise_on_error=False,
    )

    assert result.success, failure(result)
    assert keys(result, "acme.sales") == ["2024-01-29"]
