"""A line of the map: one sign per column of time, which makes sense without colour."""

from __future__ import annotations

from itertools import islice
from typing import Any

from hypothesis import given, strategies as st

from backfill_assets.intervals import IntervalSet
from backfill_assets.intervals.interval import epoch_of
from backfill_assets.planning.review.history_map import (
    MANY,
    Made,
    MadeBy,
    MappedModel,
    letters,
    line_of,
    span_of,
)
from backfill_assets_tests.builders import day, days

TEN = (epoch_of(day(1).start), epoch_of(day(10).end))
NUMBERS = st.sets(st.integers(1, 10))


def made(letter: str, cells: IntervalSet) -> Made:
    return Made(
        letter=letter, fingerprint="f", since=None, plan_id=None, by=(MadeBy(None, "", cells),)
    )


def line(width: int = 10, **given: Any) -> str:  # noqa: ANN401
    return line_of(MappedModel(model="web.visits", **given), TEN, width)


def test_each_snapshot_has_its_letter_where_it_made_the_cells():
    by = (made("A", days(1, 2, 3)), made("B", days(4, 5)))
    assert line(made=by) == "AAABB     "


def test_what_needs_attention_hides_the_letter():
    given: dict[str, Any] = {"made": (made("A", days(*range(1, 8))),)}
    assert line(**given, missing=days(8, 9), stale=days(2), empty=days(10)) == "AaAAAAA..0"
    assert line(5, **given, missing=days(8), stale=days(2)) == "aAA. "


def test_cells_of_several_snapshots_in_one_column_are_a_sign_of_their_own():
    by = (made("A", days(1, 2, 3)), made("B", days(4, 5, 6)))
    assert line(5, made=by) == "A+B  "


def test_a_cutoff_is_shown_at_its_day():
    by = (made("A", days(*range(1, 11))),)
    assert line(made=by, boundary=epoch_of(day(4).start)) == "AAA|AAAAAA"


def test_a_cutoff_hides_no_missing_cell():
    by = (made("A", days(*range(1, 4), *range(5, 11))),)
    assert line(5, made=by, missing=days(4), boundary=epoch_of(day(3).start)) == "A.AAA"


def test_a_model_of_one_cell_fills_its_line_and_stretches_no_other():
    whole = MappedModel(model="w", made=(made("A", days(*range(1, 30))),), is_whole=True)
    other = MappedModel(model="o", made=(made("A", days(1, 2)),))
    assert line_of(whole, TEN, 4) == "AAAA"
    assert span_of([whole, other]) == (epoch_of(day(1).start), epoch_of(day(2).end))
    assert span_of([whole]) is None


@given(NUMBERS, NUMBERS, NUMBERS, st.integers(1, 40), st.integers(1, 10) | st.none())
def test_every_missing_cell_is_seen_at_any_width(
    first: set[int], second: set[int], missing: set[int], width: int, cutoff: int | None
):
    by = (made("A", days(*first)), made("B", days(*(second - first))))
    gaps = days(*(missing - first - second))
    boundary = None if cutoff is None else epoch_of(day(cutoff).start)
    drawn = line(width, made=by, missing=gaps, boundary=boundary)
    assert len(drawn) == width
    assert ("." in drawn) == bool(gaps)


def test_the_27th_snapshot_and_later_ones_share_a_sign():
    assert [*islice(letters(), 28)][-3:] == ["Z", MANY, MANY]
