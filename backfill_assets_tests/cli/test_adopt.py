"""What `backfill adopt` would record, and what it leaves missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from backfill_assets.cli.verbs import adopt
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.warehouse.rows.adoption import ForeignProfile

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets.models.model import Model
    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

SALES = "toy.sales"


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table that holds rows of two days, not measured by Spark."""
    path = str(tmp_path / "theirs")
    write_deltalake(path, pa.table({"ds": ["2024-01-28", "2024-01-31"]}))

    def profiled(_: object, model: Model, table: object) -> ForeignProfile:
        del table
        cells = IntervalSet.of([model.cadence.cell(day) for day in ("2024-01-28", "2024-01-31")])
        return ForeignProfile(cells, (), model, ())

    monkeypatch.setattr(adopt, "batch_session", lambda _: None)
    monkeypatch.setattr(adopt, "profile_table", profiled)
    monkeypatch.setattr(adopt, "judge", lambda *_: ())
    monkeypatch.setattr("backfill_assets.cli.project.LazySpark.__call__", lambda _: None)
    return path


def test_cells_that_a_table_holds_no_row_of_are_not_recorded_as_empty(
    theirs: str, shop: Prepared, backfill: Backfill
):
    shop.fill(SALES, "2024-01-28", "2024-01-28")
    looked = backfill("adopt", theirs, SALES, "--cells", "2024-01-28..2024-01-31", "--dry-run")
    assert looked.code == 0
    assert "no rows in the table, not adopted: 2024-01-29..2024-01-30 (2)" in looked.out
    assert looked.lines[-1] == "toy.sales: 2 cells found, 1 to adopt, 0 audits failed."

    adopted = backfill("adopt", theirs, SALES, "--cells", "2024-01-29", "--yes", "--json")
    assert adopted.code == 1
    assert (adopted.json["missing"], adopted.json["without_rows"]) == ("none", "2024-01-29")
    assert (adopted.json["batches"], adopted.json["left"]) == (0, "2024-01-29")


def test_under_a_policy_the_signature_is_asked_for_before_the_audits(
    theirs: str,
    shop: Prepared,
    backfill: Backfill,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    (tmp_path / "allowed_signers").write_text("")
    (tmp_path / "policy.toml").write_text("[[rules]]\napprovers = ['bob@shop.example']\n")
    monkeypatch.setenv("BACKFILL_POLICY", str(tmp_path / "policy.toml"))
    monkeypatch.setenv("BACKFILL_SIGNING_KEY", str(tmp_path / "no_key"))
    measured: list[object] = []
    monkeypatch.setattr(adopt, "judge", lambda *_: measured.append(theirs) or ())
    shop.fill(SALES, "2024-01-28", "2024-01-28")

    refused = backfill("adopt", theirs, SALES, "--yes")
    assert (refused.code, measured) == (1, [])
    assert "this requires a signature, and none was made" in refused.err

    assert backfill("adopt", theirs, SALES, "--dry-run").code == 0
