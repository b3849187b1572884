"""The map as lines and as a page."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from backfill_assets.intervals import Daily, IntervalSet, Whole
from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.planning.review.history_map import MANY, Made, MadeBy, MappedModel
from backfill_assets.render.history_map import map_lines
from backfill_assets.render.history_map_html import map_html
from backfill_assets.render.plan_words import Naming
from backfill_assets_tests.builders import a_model, days


def made(letter: str, cells: IntervalSet) -> Made:
    by = (MadeBy(None, "", cells),)
    return Made(letter=letter, fingerprint="f" * 64, since=None, plan_id=None, by=by)


def test_models_of_one_cell_alone_have_no_dates():
    cells = IntervalSet.of([WHOLE_CELL])
    shops = MappedModel(model="web.shops", made=(made("A", cells),), is_whole=True)

    page = map_html(
        [shops], Naming({"web.shops": Whole()}), "prod", datetime(2024, 6, 1, tzinfo=UTC)
    )

    assert "1970" not in page
    assert 'left:0.000%;width:100.000%" title="whole: A, snapshot ffffffff' in page


def test_where_days_do_not_begin_in_utc_the_axis_says_at_which_instants_it_begins_and_ends():
    model = a_model(cadence=Daily(start="2024-01-07", tz="Europe/Berlin"))
    own_days = IntervalSet.of([model.cadence.cell("2024-01-07"), model.cadence.cell("2024-01-08")])
    mapped = [MappedModel(model=model.name, made=(made("A", own_days),))]
    naming = Naming({model.name: model.cadence})

    axis = next(map_lines(mapped, naming, 80))
    page = map_html(mapped, naming, "prod", datetime(2024, 6, 1, tzinfo=UTC))

    assert axis.split("  ")[-1].strip() == "2024-01-08 23:00 UTC"
    assert "2024-01-06 23:00 UTC" in axis
    assert "<span>2024-01-06 23:00 UTC</span><span>2024-01-08 23:00 UTC</span>" in page


@pytest.mark.parametrize("letter", ["A", MANY])
def test_the_sign_of_late_snapshots_is_explained_where_it_is_drawn(letter: str):
    model = a_model()
    visits = MappedModel(model=model.name, made=(made(letter, days(7)),))

    lines = [*map_lines([visits], Naming({model.name: model.cadence}), 80)]

    assert (f"{MANY}      a snapshot after the 26th of its model, stale or not" in lines) == (
        letter == MANY
    )
