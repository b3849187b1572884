from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from backfill_assets.cli import output
from backfill_assets.cli.output import Heading, bar, print_json, print_table, say
from backfill_assets.engine.project.events import Delayed, Waiting, event_line
from backfill_assets.intervals.text import counted
from backfill_assets.render.plan_words import bytes_text
from backfill_assets_tests.builders import a_graph, a_model, days

if TYPE_CHECKING:
    from collections.abc import Callable

HEADINGS = (
    Heading("model"),
    Heading("rows", number=True, spare=1),
    Heading("run", spare=2),
    Heading("missing", number=True),
)
LONG = "word " * 99 + "end"
ROWS = [("marketing.campaign_trends_monthly", "12", "cli-0123456789ab", "7")]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], io.StringIO]:
    """Put a terminal of some width in stdout's place."""

    def of(width: int) -> io.StringIO:
        written = io.StringIO()
        console = Console(
            file=written, width=width, force_terminal=True, color_system=None, highlight=False
        )
        monkeypatch.setattr(output, "out", console)
        return written

    return of


def test_a_narrow_terminal_is_spared_the_least_needed_columns(
    terminal: Callable[[int], io.StringIO],
):
    written = terminal(60)

    print_table(HEADINGS, ROWS)

    assert written.getvalue().splitlines() == [
        "model                              rows  missing",
        "marketing.campaign_trends_monthly    12        7",
    ]


def test_a_model_is_named_whole_on_any_terminal(terminal: Callable[[int], io.StringIO]):
    written = terminal(20)

    print_table(HEADINGS, ROWS)

    assert "marketing.campaign_trends_monthly        7" in written.getvalue()


def test_a_pipe_gets_every_column_and_whole_lines(capsys: pytest.CaptureFixture[str]):
    print_table(HEADINGS, ROWS)
    say(LONG)

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["model", "rows", "run", "missing"]
    assert lines[2] == LONG


def test_long_lines_break_between_words_on_a_terminal(terminal: Callable[[int], io.StringIO]):
    written = terminal(20)

    say("commerce.fact_orders 2018-10-03: ready", indent=4)

    assert written.getvalue().splitlines() == [
        "commerce.fact_orders",
        "    2018-10-03:",
        "    ready",
    ]


def test_a_broken_line_goes_on_where_most_of_the_terminal_is_left(
    terminal: Callable[[int], io.StringIO],
):
    written = terminal(60)

    row = (
        "  ~ marketing.campaign_performance        540  2024-01-01..2025-06-23 (540)  new snapshot"
    )
    say(row, indent=row.index("2024"))

    assert written.getvalue().splitlines() == [
        "  ~ marketing.campaign_performance        540",
        "               2024-01-01..2025-06-23 (540)  new snapshot",
    ]


def test_a_terminal_obeys_no_sign_of_a_value(capsys: pytest.CaptureFixture[str]):
    say("added id=7: note=\x1b]0;mine\x07\x9b2J\r")
    print_table((Heading("why"), Heading("by")), [("red \x1b[31m\nfor all", "ann")])

    assert capsys.readouterr().out.splitlines() == [
        r"added id=7: note=\x1b]0;mine\x07\x9b2J\x0d",
        "why                      by",
        r"red \x1b[31m\x0afor all  ann",
    ]


def test_an_instant_has_one_form_in_json(capsys: pytest.CaptureFixture[str]):
    print_json({"at": datetime(2024, 1, 31, 3, tzinfo=UTC), "by": None})

    assert json.loads(capsys.readouterr().out) == {"at": "2024-01-31T03:00:00+00:00", "by": None}


def test_a_bar_is_full_only_when_all_is_done():
    assert (bar(0, 20), bar(19, 20), bar(20, 20), bar(0, 0)) == (
        "░" * 10,
        "█" * 9 + "░",
        "█" * 10,
        "█" * 10,
    )


def test_a_bar_is_plain_where_its_signs_cannot_be_written(monkeypatch: pytest.MonkeyPatch):
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(output, "out", Console(file=ascii_only))

    assert bar(1, 2) == "#####....."


def test_counts_agree_with_their_nouns():
    assert counted(1, "batch", "batches") == "1 batch"
    assert counted(2000, "batch", "batches") == "2,000 batches"
    assert counted(0, "cell") == "0 cells"


def test_sizes_are_written_as_people_read_them():
    assert [bytes_text(size) for size in (0, 999, 89_042, 2_500_000_000)] == [
        "0 B",
        "999 B",
        "89.0 kB",
        "2.5 GB",
    ]


def test_a_batch_that_waits_says_for_what():
    graph = a_graph(a_model())
    slot = "a slot of model web.visits, where the limit is 1"
    plan = "plan p1, which is paused"

    assert event_line(graph, Delayed("web.visits", days(2), slot)) == (
        f"waits   web.visits 2024-01-02: for {slot}"
    )
    assert event_line(graph, Waiting("web.visits", days(2, 3), plan)) == (
        f"waits   web.visits 2024-01-02..2024-01-03 (2): for {plan}"
    )
