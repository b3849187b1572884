"""Release notes: what a reader has to know, in plain words, for all or for one consumer."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.intervals import Daily, Interval, IntervalSet
from backfill_assets.models.consumer import Consumer, Reading
from backfill_assets.planning.review.release_note import (
    Cause,
    ConsumerNote,
    ModelNote,
    ReleaseNote,
    for_consumer,
    note_text,
)
from backfill_assets.planning.review.straddling import Straddling, straddling
from backfill_assets.planning.review.touched import ROWS, ChangedModel, touched
from backfill_assets_tests.builders import days

ROI, PERFORMANCE = "marketing.roi", "marketing.performance"
BOUNDARY = Straddling(
    mixed=("2024-03",), months=(("2024-03", "2024-02"),), years=(("2025-03", "2024-03"),)
)


def a_model_note(model: str = ROI, **given: object) -> ModelNote:
    usual: dict[str, object] = {
        "because": "restated: clicks came twice",
        "cause": Cause.CORRECTED,
        "published": "2024-03-01..2024-03-30 (30)",
        "differ": "2024-03-02..2024-03-05 (4)",
        "columns": ("clicks", "cost"),
        "boundary": BOUNDARY,
    }
    return ModelNote(model=model, **{**usual, **given})  # type: ignore[arg-type]


def a_note(*models: ModelNote, **given: object) -> ReleaseNote:
    usual: dict[str, object] = {
        "reason": "clicks of March were sent twice",
        "asked_by": "ann",
        "ended": "promoted",
        "active": "2024-04-02 08:00 UTC, by grace",
        "models": models or (a_model_note(),),
        "consumers": (
            ConsumerNote("board", "team:finance", ROI, ("cost",), "2024-03-04..2024-03-05 (2)"),
        ),
        "tests": (("", "12 of 12 audit results passed"), (ROI, f"{ROI}, cost within 2%: passed")),
        "known": ((ROI, f"{ROI}: warning fresh: found 3, allowed 2"),),
        "back": ("backfill rollback p1", "backfill undo p1"),
        "until": "2024-05-02 08:00 UTC",
    }
    return ReleaseNote(plan_id="p1", environment="prod", **{**usual, **given})  # type: ignore[arg-type]


def test_a_note_says_what_why_when_what_to_refresh_what_was_tested_and_how_to_go_back():
    text = note_text(a_note())

    for said in (
        "# What changed in prod: plan p1",
        "Active since 2024-04-02 08:00 UTC, by grace. Reason: clicks of March were sent twice. Asked for by ann.",
        "different: 2024-03-02..2024-03-05 (4), in clicks, cost",
        "built and published again: 2024-03-01..2024-03-30 (30)",
        "month over month: 2024-03 with 2024-02",
        "year over year: 2025-03 with 2024-03",
        "changed and unchanged days within one month: 2024-03",
        f"{ROI}: warning fresh: found 3, allowed 2",
        f"board (team:finance): cost of {ROI}, 2024-03-04..2024-03-05 (2)",
        "12 of 12 audit results passed",
        "Until 2024-05-02 08:00 UTC.",
        "    backfill rollback p1\n    backfill undo p1",
    ):
        assert said in text


def test_whether_prior_answers_must_be_read_anew_follows_from_what_the_change_is():
    corrected = note_text(a_note(a_model_note()))
    redefined = note_text(a_note(a_model_note(cause=Cause.REDEFINED)))
    whole = note_text(a_note(a_model_note(cause=Cause.REDEFINED, boundary=Straddling())))
    added = note_text(a_note(a_model_note(cause=Cause.ADDED, boundary=Straddling())))

    assert "before 2024-04-02 08:00 UTC rest on numbers that were wrong or incomplete" in corrected
    assert "The two sides follow different definitions" in redefined
    assert "Answers given before 2024-04-02 08:00 UTC follow the old definition" in whole
    assert "answers given so far stay valid" in added


def test_a_note_of_what_is_not_published_says_so_and_offers_no_way_back():
    text = note_text(
        a_note(a_model_note(published="", differ=""), active="", ended="abandoned", back=())
    )

    assert "Nothing of this plan is published: it is abandoned." in text
    assert "How to go back" not in text
    assert "Comparisons" not in text


def test_a_note_of_what_was_taken_back_says_since_when():
    text = note_text(a_note(a_model_note(), over="2024-04-03 09:00 UTC, by ann", back=()))

    assert "Active from 2024-04-02 08:00 UTC, by grace until 2024-04-03 09:00 UTC, by ann" in text
    assert "Answers given from 2024-04-02 08:00 UTC until 2024-04-03 09:00 UTC rest on" in text
    assert "changed cells with unchanged ones" not in text
    assert "right now" not in text


def test_a_consumer_reads_only_what_concerns_it():
    note = a_note(a_model_note(), a_model_note(PERFORMANCE))

    text = note_text(for_consumer(note, "board"))

    assert PERFORMANCE not in text
    assert "different: 2024-03-04..2024-03-05 (2), in cost" in text


def test_a_consumer_reads_of_checks_and_known_differences_only_those_of_its_models():
    other = ((PERFORMANCE, f"{PERFORMANCE}, rows as before: failed"),)
    note = a_note()

    text = note_text(
        for_consumer(replace(note, tests=note.tests + other, known=note.known + other), "board")
    )

    assert PERFORMANCE not in text
    assert f"- 12 of 12 audit results passed\n- {ROI}, cost within 2%: passed\n" in text
    assert f"- {ROI}: warning fresh: found 3, allowed 2\n" in text


def test_a_consumer_is_told_of_cells_that_are_no_longer_published():
    gone = a_model_note(differ="", gone="2024-03-04..2024-03-05 (2)")

    text = note_text(for_consumer(a_note(gone), "board"))

    assert "no longer published: 2024-03-04..2024-03-05 (2)" in text
    assert "different: 2024-03-04..2024-03-05 (2), in which rows there are" in text
    assert f"a copy, an extract or a cache of {ROI} for these dates" in note_text(a_note(gone))


def test_a_consumer_that_is_not_concerned_is_told_who_is():
    with pytest.raises(RequestError, match=r"'other' is declared to read; expected .* board"):
        for_consumer(a_note(), "other")


def a_span(first: str, last: str) -> IntervalSet:
    start, end = (datetime.fromisoformat(day).replace(tzinfo=UTC) for day in (first, last))
    return IntervalSet.of([Interval(start, end)])


def test_months_at_the_edge_of_a_partial_range_straddle():
    new, old = a_span("2024-03-10", "2024-05-01"), a_span("2023-01-01", "2024-03-10")
    old |= a_span("2024-05-01", "2024-07-01")

    found = straddling(new, old, "UTC")

    assert found.mixed == ("2024-03",)
    assert found.months == (("2024-03", "2024-02"), ("2024-04", "2024-03"), ("2024-05", "2024-04"))
    assert found.years == (("2024-03", "2023-03"), ("2024-04", "2023-04"))


def test_a_change_of_all_of_history_straddles_nothing():
    assert not straddling(a_span("2023-01-01", "2024-07-01"), IntervalSet.empty(), "UTC")
    assert not straddling(IntervalSet.empty(), a_span("2023-01-01", "2024-07-01"), "UTC")


def test_months_begin_by_the_clock_of_the_model():
    last_hour = IntervalSet.of(
        [Interval(datetime(2024, 2, 29, 23, tzinfo=UTC), datetime(2024, 3, 1, tzinfo=UTC))]
    )

    assert straddling(last_hour, a_span("2024-03-01", "2024-03-02"), "Europe/Berlin").mixed == (
        "2024-03",
    )


NOW = datetime(2024, 1, 11, tzinfo=UTC)


def reading(**given: object) -> list[Consumer]:
    read = Reading(ROI, **given)  # type: ignore[arg-type]
    return [Consumer(name="board", kind="dashboard", owner="team:finance", reads=[read])]


def found_for(changed: ChangedModel, **given: object) -> list[tuple[tuple[str, ...], IntervalSet]]:
    cadences = {ROI: Daily(start="2024-01-01")}
    return [
        (each.columns, each.cells)
        for each in touched(reading(**given), {ROI: changed}, cadences, NOW)
    ]


def test_a_consumer_is_touched_on_the_columns_and_cells_that_it_reads():
    changed = ChangedModel(days(2, 3, 9), {"cost": days(2, 9), "clicks": days(3)})

    assert found_for(changed) == [(("cost", "clicks"), days(2, 3, 9))]
    assert found_for(changed, columns=("cost",)) == [(("cost",), days(2, 9))]
    assert found_for(changed, columns=("cost",), days_back=3) == [(("cost",), days(9))]
    assert found_for(changed, columns=("clicks",), days_back=3) == []
    assert found_for(changed, columns=("id",)) == []


def test_where_rows_came_or_went_every_column_is_touched():
    changed = ChangedModel(days(2, 3), {ROWS: days(2), "cost": days(3)})

    assert found_for(changed, columns=("clicks",)) == [(("clicks",), days(2))]


def test_before_a_publication_all_that_a_consumer_reads_of_planned_cells_is_touched():
    assert found_for(ChangedModel(days(2)), columns=("clicks",)) == [(("clicks",), days(2))]
    assert touched(reading(), {}, {}, NOW) == ()
