from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given, strategies as st

from backfill_assets.intervals.interval import Interval
from backfill_assets.models.column import Column
from backfill_assets.models.content import ChangedAt, Content, changed_at, checksum_within
from backfill_assets.models.retyped import as_another_type
from backfill_assets_tests.builders import COLUMNS, a_model

NOW = 9
OLD = Content(3, 77, {"cost": 1, "id": 2})
STAMPS = ChangedAt(4, {"cost": 5, "id": 6})

contents = st.builds(
    Content,
    rows=st.integers(0, 2),
    key=st.integers(0, 2),
    columns=st.dictionaries(st.sampled_from(["cost", "id", "ds"]), st.integers(0, 2)),
)


def test_a_cell_seen_for_the_first_time_changed_now():
    assert changed_at(None, OLD, NOW) == ChangedAt(NOW, {"cost": NOW, "id": NOW})


def test_a_cell_rebuilt_with_the_same_content_keeps_all_its_stamps():
    assert changed_at((OLD, STAMPS), OLD, NOW) == STAMPS


def test_a_column_that_changes_alone_is_stamped_alone():
    new = Content(3, 77, {"cost": 1, "id": 3})
    assert changed_at((OLD, STAMPS), new, NOW) == ChangedAt(4, {"cost": 5, "id": NOW})


def test_other_rows_are_another_value_in_every_column():
    for new in (Content(4, 77, OLD.columns), Content(3, 78, OLD.columns)):
        assert changed_at((OLD, STAMPS), new, NOW) == ChangedAt(NOW, {"cost": NOW, "id": NOW})


def test_a_new_column_changed_now_and_the_others_did_not():
    new = Content(3, 77, {**OLD.columns, "tax": 0})
    assert changed_at((OLD, STAMPS), new, NOW) == ChangedAt(4, {"cost": 5, "id": 6, "tax": NOW})


def test_a_reader_sees_the_last_change_of_what_it_reads():
    assert STAMPS.latest(None) == 6
    assert STAMPS.latest(frozenset({"cost"})) == 5
    assert STAMPS.latest(frozenset({"unheard_of"})) == 4
    assert STAMPS.latest(frozenset()) == 4


@given(contents, contents)
def test_a_reader_of_all_columns_moves_exactly_when_the_content_differs(
    before: Content, new: Content
):
    new = Content(new.rows, new.key, {name: new.columns.get(name, 0) for name in before.columns})
    stamps = changed_at(None, before, 1)

    assert (changed_at((before, stamps), new, NOW).latest(None) == NOW) == (new != before)


NEAR = {"cost": checksum_within(5, 0.1)}
FOLLOWED = Content(3, 77, {"cost": 1, "id": 2}, NEAR)


def test_a_column_that_differs_within_its_tolerance_keeps_its_stamp_and_is_another_content():
    new = Content(3, 77, {"cost": 8, "id": 2}, NEAR)
    assert changed_at((FOLLOWED, STAMPS), new, NOW) == STAMPS
    assert new != FOLLOWED


def test_a_column_that_differs_by_more_than_its_tolerance_is_stamped():
    new = Content(3, 77, {"cost": 8, "id": 2}, {"cost": checksum_within(6, 0.1)})
    assert changed_at((FOLLOWED, STAMPS), new, NOW) == ChangedAt(4, {"cost": NOW, "id": 6})


def test_a_tolerance_counts_for_the_same_rows_alone():
    new = Content(3, 78, {"cost": 8, "id": 2}, NEAR)
    assert changed_at((FOLLOWED, STAMPS), new, NOW) == ChangedAt(NOW, {"cost": NOW, "id": NOW})


def test_what_was_followed_within_a_tolerance_is_followed_within_no_other():
    for other in ({"cost": checksum_within(5, 0.2)}, {}):
        for checksum in (1, 8):
            new = Content(3, 77, {"cost": checksum, "id": 2}, other)
            assert changed_at((FOLLOWED, STAMPS), new, NOW).columns == {"cost": NOW, "id": 6}


def test_a_tolerance_that_is_new_begins_with_equal_values():
    assert changed_at((OLD, STAMPS), FOLLOWED, NOW) == STAMPS
    new = Content(3, 77, {"cost": 8, "id": 2}, NEAR)
    assert changed_at((OLD, STAMPS), new, NOW) == ChangedAt(4, {"cost": NOW, "id": 6})


@given(
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from([None, 0.1, 0.4])), min_size=1, max_size=12)
)
def test_a_reader_that_nothing_reopened_holds_what_is_within_the_tolerance(
    history: list[tuple[float, float | None]],
):
    """The oracle: the value that was read, against the one that is published now."""

    def content(value: float, tolerance: float | None) -> Content:
        held = (
            {} if tolerance is None else {"v": checksum_within(int(value // tolerance), tolerance)}
        )
        return Content(1, 1, {"v": f"exact:{value!r}"}, held)

    before, stamps, read = content(*history[0]), ChangedAt(0, {"v": 0}), history[0][0]
    for now, (value, tolerance) in enumerate(history[1:], start=1):
        new = content(value, tolerance)
        stamps = changed_at((before, stamps), new, now)
        read = value if stamps.columns["v"] == now else read
        assert abs(value - read) <= (tolerance or 0)
        before = new


def test_a_column_of_another_type_differs_alone_and_a_key_of_another_type_makes_every_column_differ():
    cell = Interval(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 2, tzinfo=UTC))
    content = Content(3, 77, {"ds": 1, "id": 2, "cost": 3})
    old = a_model()

    def differing(name: str, dtype: str) -> set[str]:
        new = replace(
            old, columns=[Column(c.name, dtype) if c.name == name else c for c in COLUMNS]
        )
        after = as_another_type({cell: content}, old, new)[cell]
        return {
            each for each, checksum in content.columns.items() if after.columns[each] != checksum
        }

    cost = next(column for column in COLUMNS if column.name == "cost")
    assert old.key == ("ds", "id")
    assert differing("cost", f" {cost.dtype.upper()} ".replace(",", ", ")) == set()
    assert differing("cost", "bigint") == {"cost"}
    assert differing("id", "string") == {"ds", "id", "cost"}
