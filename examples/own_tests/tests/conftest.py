"""The fixtures of `backfill_assets.testing`, and a shop whose history is filled."""

from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

pytest_plugins = ["backfill_assets.testing.plugin"]

PACKAGE = Path(__file__).parent.parent / "shop"


@pytest.fixture
def landed(backfill_project):
    """A project whose source has two orders a day."""
    with backfill_project(PACKAGE, catalog="shop.catalog") as project:
        days = [date(2024, 3, 4) + timedelta(days=number) for number in range(14)]
        orders = pa.table({"ordered_on": days * 2, "amount": list(range(100, 128))})
        write_deltalake(project.data / "sources/raw_orders", orders)
        yield project


@pytest.fixture
def filled(landed):
    """The same, with every cell filled."""
    landed.do("run")
    return landed
