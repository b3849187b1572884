from __future__ import annotations

from hypothesis import given, strategies as st

from backfill_assets.models.content import ChangedAt, Content, changed_at

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
