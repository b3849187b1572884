"""Of the harness itself: what it would call a violation, and that its oracle adds up."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from copy import deepcopy
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from backfill_assets.state.store import Store
from backfill_assets_tests.faults.bases import worlds
from backfill_assets_tests.faults.campaign import Campaign
from backfill_assets_tests.faults.checks import logged, tables
from backfill_assets_tests.faults.ledger import LEASE, new_ledger
from backfill_assets_tests.faults.oracle import DAILY, ENTRIES, HOURLY, MODELS, MONTHLY
from backfill_assets_tests.faults.readers import growing_to, one_of
from backfill_assets_tests.faults.trials import Outcome
from backfill_assets_tests.protocol.report import Told

if TYPE_CHECKING:
    from pathlib import Path

DAY = date(2024, 1, 30)


def test_whole_worlds_are_right_and_any_mix_of_two_is_wrong():
    known = worlds()
    judge = one_of(known["first"], known["later"])
    assert judge({}, known["first"]) is None
    assert judge({}, known["later"]) is None
    for model in MODELS:
        mixed = known["first"] | {model: known["later"][model]}
        assert judge(known["first"], mixed) is not None, model


def test_cells_may_come_but_neither_go_nor_change_nor_lack_a_row():
    whole = worlds()["first"]
    judge = growing_to(whole)
    lacking = deepcopy(whole)
    del lacking[ENTRIES][DAY]
    assert judge(lacking, whole) is None
    assert "was there" in (judge(whole, lacking) or "")
    short = deepcopy(whole)
    short[ENTRIES][DAY].pop()
    assert "not its own" in (judge({}, short) or "")


def test_the_oracle_adds_up():
    whole = worlds()["later"]
    days = [row for rows in whole[DAILY].values() for row in rows]
    months = [row for rows in whole[MONTHLY].values() for row in rows]
    entries = [row for rows in whole[ENTRIES].values() for row in rows]
    assert sum(row[2] for row in days) == sum(row[1] for row in months)
    assert sum(row[2] for row in days) == sum(row[3] for row in entries)
    assert sum(row[3] for row in days) == len(entries)
    hours = whole[HOURLY]
    of_hours = {hour.isoformat()[:10] for hour in hours}
    within = [day for day in whole[DAILY] if day.isoformat() in of_hours]
    assert (len(hours), len(within)) == (72, 3)
    assert sum(row[2] for of in hours.values() for row in of) == sum(
        row[2] for day in within for row in whole[DAILY][day]
    )


def test_of_the_hours_that_are_landed_later_only_some_of_a_day_differ():
    known = worlds()
    before, after = known["first"][HOURLY], known["later"][HOURLY]
    differing = {hour for hour in before if before[hour] != after[hour]}
    assert {hour.isoformat()[:13] for hour in before.keys() - differing} >= {"2024-02-01T18"}
    assert "2024-02-01T17" in {hour.isoformat()[:13] for hour in differing}


@pytest.mark.parametrize(
    ("hit", "step"),
    [
        ("kill at record:2:before of fill", "fill|record:before"),
        (
            "kill of the JVM at copy_cells:2:before of promote in place",
            "promote in place|copy_cells:before",
        ),
        ("kill of the client after 3.0 s of fill", None),
        ("sleep of Python and JVM while writing files of fill", None),
    ],
)
def test_a_hit_tells_at_which_effect_it_was(tmp_path: Path, hit: str, step: str | None):
    campaign = Campaign(tmp_path / "results.jsonl")
    campaign.add(Outcome("a life", hits=[hit], violations=["rows are lost"]))
    assert campaign.hit == ({step} if step else set())
    again = Campaign(tmp_path / "results.jsonl")
    assert (again.kills, again.violations) == (hit.startswith("kill"), ["a life: rows are lost"])
    assert again.close(Told(1, (), 0)) == 1


@pytest.mark.parametrize("violations", [(), ("a fill: a cell is gone",)])
def test_what_the_model_of_the_protocol_violates_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], violations: tuple[str, ...]
):
    campaign = Campaign(tmp_path / "results.jsonl")
    assert campaign.close(Told(1000, violations, 2)) == len(violations)
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == f"kills: 0, violations: {len(violations)}"
    assert f"protocol: 1,000 states, {len(violations)} violations, 2 broken variants" in said[-2]


def test_a_commit_that_the_state_does_not_know_is_a_violation(tmp_path: Path):
    ledger = new_ledger(tmp_path)
    table = ledger.data / "tables" / "daily" / "daily__v1"
    row = pa.table({"amount": [1]})
    with Store.open(
        ledger.settings.state,
        clock=lambda: datetime.now(UTC),
        lease_seconds=LEASE,
        data_root=str(ledger.data),
    ):
        pass
    assert [*logged(ledger)] == ["the state names no table that is there"]
    write_deltalake(str(table), row)
    with closing(sqlite3.connect(ledger.data / "state.db")) as state, state:
        state.execute(
            "INSERT INTO versions (version, model, path, known_head) "
            "VALUES ('daily__v1', 'daily', 'tables/daily/daily__v1', 0)"
        )
    assert [*tables(ledger)] == [table]
    assert [*logged(ledger)] == []
    write_deltalake(str(table), row, mode="append")
    assert [*logged(ledger)] == ["daily__v1: commits [1] are not known, only 0"]
