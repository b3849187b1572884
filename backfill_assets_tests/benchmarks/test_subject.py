from __future__ import annotations

from datetime import date

import pytest
from sqlglot import exp, parse_one

from benchmarks.peer.subject import EDITS, Query, Size, performance, roi, trends


def test_the_history_ends_on_the_same_day_whatever_its_length():
    assert Size(1, 540).first_day == date(2024, 1, 1)
    assert Size(1, 60).first_day == date(2025, 4, 25)


def test_only_whole_months_are_asked_of_the_trends():
    assert Size(1, 540).first_month == date(2024, 1, 1)
    assert Size(1, 60).first_month == date(2025, 5, 1)


def test_each_edit_keeps_what_those_before_it_have_done():
    found = [performance(edit, "TRUE") for edit in EDITS]

    assert [len(query.columns) for query in found] == [8, 9, 9, 10]
    assert ["campaign_id <> 0" in query.sql for query in found] == [False, False, True, True]


@pytest.mark.parametrize(
    "query", [*(performance(edit, "TRUE") for edit in EDITS), trends("TRUE"), roi()]
)
def test_a_query_gives_exactly_its_columns(query: Query):
    parsed = parse_one(query.sql, read="spark", into=exp.Select)

    assert parsed.named_selects == [name for name, _ in query.columns]
