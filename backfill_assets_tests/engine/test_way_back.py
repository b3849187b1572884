"""The command that builds again what a plan has published, once it can't be taken back any more."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from backfill_assets.engine.review.way_back import command_to_build_anew, how_to_build_anew
from backfill_assets.intervals import (
    WHOLE_CELL,
    Cadence,
    Daily,
    Hourly,
    Interval,
    IntervalSet,
    Monthly,
    Whole,
)
from backfill_assets.intervals.parse_range import parse_interval
from backfill_assets.planning.plan.written_options import restatements
from backfill_assets.snapshots.environment import Pointer
from backfill_assets.snapshots.publication import PointerMove, PublicationKind


@pytest.mark.parametrize(
    ("cadence", "first", "last"),
    [
        (Daily(), "2024-03-05", "2024-03-06"),
        (Daily(tz="Europe/Berlin"), "2024-03-30", "2024-03-31"),
        (Daily(tz="America/New_York"), "2024-03-10", "2024-03-10"),
        (Monthly(tz="Asia/Tokyo"), "2024-02-01", "2024-03-01"),
        (Hourly(), "2024-03-05-05:00", "2024-03-05-07:00"),
    ],
)
def test_the_command_that_builds_anew_names_exactly_the_published_cells(
    cadence: Cadence, first: str, last: str
):
    published = Interval(cadence.cell(first).start, cadence.cell(last).end)

    _, named = command_to_build_anew("prod", [_published(published)]).split("--restate ")

    [asked] = restatements([named])
    assert asked.start is not None
    assert asked.end is not None
    assert parse_interval(asked.start, asked.end, cadence) == published


def test_a_table_that_is_one_cell_is_built_anew_by_its_name():
    assert Whole().cell("whole") == WHOLE_CELL
    assert command_to_build_anew("prod", [_published(WHOLE_CELL)]) == (
        "backfill plan prod --restate web.visits"
    )


def test_where_a_definition_was_changed_the_one_of_before_is_asked_for():
    old, new = (Pointer("prod", "web.visits", name, f"v_{name}", 1) for name in ("old", "new"))
    restated, redefined = (
        replace(_published(WHOLE_CELL), old=before, new=new) for before in (new, old)
    )

    assert how_to_build_anew("prod", [restated]) == (
        "build the old data again with `backfill plan prod --restate web.visits`"
    )
    assert how_to_build_anew("prod", [redefined]) == (
        "restore the code from before the plan, which changed web.visits, and `backfill plan prod` builds the old data again"
    )


def _published(cells: Interval) -> PointerMove:
    return PointerMove(
        number=1,
        environment="prod",
        model="web.visits",
        plan_id="p1",
        kind=PublicationKind.PROMOTE,
        at=datetime(2024, 4, 1, tzinfo=UTC),
        who="ann",
        why="",
        old=None,
        new=None,
        cells=IntervalSet.of([cells]),
    )
