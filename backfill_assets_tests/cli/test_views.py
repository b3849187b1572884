"""`backfill views` writes all of one moment, to a file or to stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable
from deltalake.schema import Field, PrimitiveType, Schema

from backfill_assets.reading import published

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

SALES = "toy.sales"


@pytest.fixture
def filled(shop: Prepared) -> Prepared:
    """The state knows sales, and there is a table without rows at its place."""
    shop.fill(SALES, "2024-01-28", "2024-02-03")
    columns = Schema([Field("ds", PrimitiveType("date"))])
    DeltaTable.create(published().resolve(SALES).layers[0].path, columns)
    return shop


def test_the_sql_goes_to_stdout_or_into_a_file(
    filled: Prepared, backfill: Backfill, tmp_path: Path
):
    text = backfill("views", "--for", "spark").out
    assert text.count("CREATE OR REPLACE VIEW `toy`.`sales` AS") == 1
    out = tmp_path / "views.sql"
    assert backfill("views", "--for", "spark", "--out", str(out)).lines == [
        f"{out}: 1 view of environment prod"
    ]
    assert out.read_text() == text


def test_json_says_what_was_written(filled: Prepared, backfill: Backfill, tmp_path: Path):
    out = tmp_path / "views.sql"
    told = backfill("views", "--for", "duckdb", "--out", str(out), "--json").json
    number = published().number
    assert told == {
        "path": str(out),
        "sql": None,
        "environment": "prod",
        "number": number,
        "models": [SALES],
    }
    printed = backfill("views", "--for", "duckdb", "--json").json
    assert (printed["path"], printed["sql"]) == (None, out.read_text())


def test_what_can_not_be_written_is_an_error_of_one_line(
    filled: Prepared, backfill: Backfill, tmp_path: Path
):
    out = tmp_path / "nowhere" / "views.sql"
    ended = backfill("views", "--for", "duckdb", "--out", str(out))
    assert (ended.code, ended.out) == (1, "")
    assert f"{out} can't be written: No such file or directory" in ended.err


def test_nothing_published_and_an_unknown_environment_are_errors(backfill: Backfill):
    nothing = backfill("views", "--for", "duckdb")
    assert nothing.code == 1
    assert "environment 'prod' has published nothing yet" in nothing.err
    unknown = backfill("views", "--for", "duckdb", "--env", "nowhere")
    assert unknown.code == 1
    assert "nowhere" in unknown.err
