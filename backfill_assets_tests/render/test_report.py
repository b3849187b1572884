"""The report of a plan: what a reader learns from it, and what no name or value can do to it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from decimal import Decimal
from html import unescape
from html.parser import HTMLParser

import pytest

from backfill_assets.render.report.content import Report, Series, Tone
from backfill_assets.render.report.page import report_comment, report_html
from backfill_assets_tests.render.report_parts import parts_of

HOSTILE = "<script>alert(1)</script>&\"'|`@team"


class Elements(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def text_of(page: str) -> str:
    """What a reader sees, in one line."""
    without = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return unescape(" ".join(re.sub(r"<[^>]+>", " ", without).split()))


@pytest.mark.parametrize(
    ("given", "tone", "verdict"),
    [
        ({}, Tone.GOOD, "Published. 1 expectation holds."),
        (
            {"ended": "promoted and watched"},
            Tone.GOOD,
            "Published, and watched. 1 expectation holds.",
        ),
        ({"ended": "built"}, Tone.OPEN, "Built, not published. 1 expectation holds."),
        (
            {"ended": "built", "passed": False},
            Tone.BAD,
            "Built, not published. 1 expectation does not hold: web.visits: only web.visits differs.",
        ),
        (
            {"ended": "abandoned"},
            Tone.OPEN,
            "Abandoned; nothing was published. 1 expectation holds.",
        ),
    ],
)
def test_the_verdict_says_where_a_plan_stands_and_whether_it_is_as_expected(
    given: dict[str, object], tone: Tone, verdict: str
):
    report = Report(parts_of(**given))  # pyright: ignore[reportArgumentType]

    assert (report.tone, report.verdict) == (tone, verdict)


def test_a_minute_of_reading_tells_what_changed_whether_it_is_right_who_agreed_and_the_way_back():
    page = report_html(parts_of(), {})

    first = text_of(page.partition("<h2>")[0])
    assert "What changed web.visits: 2 of 4 cells differ in cost_0: 2024-01-02" in first
    assert "Is it right? 1 expectation: 1 met. 2 of 2 audit results passed." in first
    assert "Why web.visits was wrong What changed" in first
    assert "Who agreed? Asked for by ann cleo signed" in first
    assert "cleo signed 'approve' on 2024-06-01 09:30 UTC" in first
    assert "Promoted by ben on 2024-06-01 10:00 UTC" in first
    assert "Go back backfill rollback p1 , until 2024-07-01 10:00 UTC" in first


def test_cells_that_keep_an_old_definition_are_named_as_the_release_note_names_them():
    note = b"# Plan\n\n## Known differences\n\n- web.visits: before 2024-02-01 its cells keep <it>\n\n## More\n\n- x\n"
    report = Report({**parts_of(), "release_note.md": note})

    assert report.known == ("web.visits: before 2024-02-01 its cells keep <it>",)
    assert "its cells keep &lt;it&gt;</li></ul>" in report_html(report.parts, {})
    assert Report(parts_of()).known == ()


def test_a_report_without_its_timeline_says_what_it_knows():
    parts = {name: part for name, part in parts_of().items() if name != "timeline.json"}

    assert "Plan for an unknown environment" in text_of(report_html(parts, {"timeline.json": "x"}))
    assert "an unknown environment" in report_comment(parts)


def test_what_does_not_hold_comes_first_with_the_rows_that_failed():
    page = text_of(report_html(parts_of(ended="built", passed=False), {}))

    assert "only web.visits differs found 3 rows of cost ann does not hold" in page
    assert "cost_is_positive blocking, not committed 3 of 3 rows fail 0 rows {'id': 7}" in page
    assert "Nothing is published, so there is nothing to go back from." in page


def test_an_accepted_difference_names_who_accepted_it_and_why():
    report = Report(parts_of(passed=False, accepted="known since May"))

    assert "1 expectation" not in report.verdict
    assert "cleo accepted web.visits, found 3 rows of cost: known since May" in [*report.agreed]


def test_sums_before_and_after_are_told_and_drawn():
    page = report_html(parts_of(), {})

    assert "cost_0 20 40 40 7,407.41 12,345.68 +66.67%" in text_of(page)
    assert (
        'aria-label="cost_0 of web.visits, sum per cell from 2024-01-01 to 2024-01-04: '
        '7,407.41 before, 12,345.68 after (+66.67%)"' in page
    )


def test_a_column_that_has_no_sum_in_one_cell_has_none_in_all():
    parts = parts_of()
    diff = json.loads(parts["diff.json"])
    diff["models"][0]["columns"]["cost_0"]["old_sum"][1] = None  # such as of a NaN
    page = report_html({**parts, "diff.json": json.dumps(diff).encode()}, {})

    assert "cost_0 20 40 40 Rows that differ" in text_of(page).replace("before (dashed) after ", "")
    assert "sum per cell" not in page


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (2, "1 cell with rows that differ: 2024-01-02"),
        (4, "2 cells with rows that differ: 2024-01-02 to 2024-01-04"),
    ],
)
def test_the_picture_of_cells_says_how_many_have_rows_that_differ(cells: int, words: str):
    page = report_html(parts_of(cells=cells), {})

    assert f'aria-label="Cells over time. web.visits: {words}"' in page


def test_a_sum_that_was_nothing_is_not_called_new():
    column = Series("cost", 1, (Decimal(0),), (Decimal(0),), 0, 0)

    assert column.change == "+0.00%"
    assert replace(column, new=(Decimal(2),)).change == "from 0"


def test_cells_whose_rows_were_not_compared_are_known_by_their_checksums():
    parts = parts_of(ended="built")
    model = json.loads(parts["diff.json"])["models"][0]
    known = {
        "differ": [["2024-01-02T00:00:00+00:00", "2024-01-03T00:00:00+00:00"]],
        "differing": ["2024-01-02"],
        "differing_cells": 1,
        "differing_columns": ["cost_0"],
    }
    found = {"model": "web.visits", "planned": model["planned"], **known}
    diff = {"models": [{**found, "cells": [], "columns": {}, "sample": []}]}
    page = report_html({**parts, "diff.json": json.dumps(diff).encode()}, {})

    said = "web.visits: 1 published cell would differ in cost_0: 2024-01-02"
    assert f"What changed {said}" in text_of(page)
    assert f"Before and after {said}. backfill diff p1 compares row by row." in text_of(page)
    assert 'aria-label="Cells over time. web.visits: 1 cell with other checksums"' in page
    assert page.count("differs, rows not compared") == 2, "in the legend, and of the cell"


def test_a_plan_that_stopped_says_in_its_verdict_what_failed_and_below_why():
    parts = parts_of(ended="stopped")
    timeline = json.loads(parts["timeline.json"])
    failed = {"model": "web.visits", "cells": ["2024-01-02"], "attempt": 1, "failure": "audit"}
    timeline["batches"] = [{**failed, "error": "found 3 of 3 rows"}] * 2
    timeline["plan"]["why"] = "a wall of words"
    report = Report({**parts, "timeline.json": json.dumps(timeline).encode()})

    stands = "Not published: not all of it is built. Failed: 2 attempts of web.visits."
    assert report.verdict == stands
    assert "audit: found 3 of 3 rows" in text_of(report_html(report.parts, {}))


def test_every_picture_has_words_for_those_who_do_not_see_it():
    pictures = [
        attributes
        for tag, attributes in Elements(report_html(parts_of(columns=3), {})).found
        if tag == "svg"
    ]

    assert len(pictures) == 4
    assert all(found["role"] == "img" and found["aria-label"] for found in pictures)


def test_a_name_is_text_wherever_it_stands():
    page = report_html(parts_of(names=HOSTILE), {HOSTILE: HOSTILE})

    elements = Elements(page).found
    assert not [tag for tag, _ in elements if tag in {"script", "link", "img", "iframe"}]
    assert not [name for _, found in elements for name in found if name.startswith("on")]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_a_name_is_text_in_a_comment_too():
    comment = report_comment(parts_of(names=HOSTILE, ended="built", passed=False))

    assert "<script>" not in comment
    assert "@team" not in comment


def test_twelve_models_of_540_cells_are_a_page_of_less_than_two_megabytes():
    page = report_html(parts_of(models=12, cells=540, columns=8), {})

    assert len(page.encode()) < 2_000_000
    assert page.count("<polyline") == 12 * 4 * 2


def test_a_report_is_made_of_what_evidence_has():
    whole = parts_of()
    for name in whole:
        if name != "timeline.json":
            lacking = {part: text for part, text in whole.items() if part != name}
            assert "What this report lacks" in report_html(lacking, {name: "it could not be made"})


def test_a_comment_has_the_verdict_and_a_line_for_each_model():
    comment = report_comment(parts_of(ended="built", passed=False))

    assert comment.startswith(
        "## Plan p1 for prod\n\n**Built, not published. 1 expectation does not hold"
    )
    assert "| web.visits | 2 of 4 | 20 | 0 | 0 |" in comment
    assert "- does not hold: web.visits: only web.visits differs; found 3 rows of cost" in comment
