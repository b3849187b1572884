from __future__ import annotations

import io
import time
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from backfill_assets.cli import progress
from backfill_assets.cli.progress import Bars, Lines, Shown, Tally, beat_line, shown
from backfill_assets.engine.project.at_work import AtWork, Phase, WorkStep
from backfill_assets.engine.project.events import BatchSeconds, Committed
from backfill_assets.intervals.cadence import Daily
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.content import Content
from backfill_assets_tests.builders import a_graph, a_model, day

if TYPE_CHECKING:
    from collections.abc import Callable

NOTHING = Content(0, 0, {})


@pytest.fixture
def stderr(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], io.StringIO]:
    """Put a terminal, or none, in stderr's place."""

    def of(terminal: bool) -> io.StringIO:  # noqa: FBT001 - which of the two
        written = io.StringIO()
        console = Console(
            file=written, width=80, force_terminal=terminal, color_system=None, highlight=False
        )
        monkeypatch.setattr(progress, "err", console)
        return written

    return of


def test_a_heartbeat_says_what_is_at_work_and_how_far_all_is():
    moved_out_of, *cells = map(day, (1, 2, 3, 4))
    tally = Tally({"toy.sales": 7, "toy.clicks": 24}, began=100.0)
    tally.count(
        Committed(
            "toy.sales",
            "b1",
            IntervalSet.of(cells),
            0,
            dict.fromkeys((moved_out_of, *cells), NOTHING),
            (),
            0,
            BatchSeconds(),
        )
    )
    step = WorkStep(Phase.BUILDING, "toy.sales", 2, 3, began=105.0)

    assert beat_line(step, tally, 225.0) == (
        "at work for 2:00: building: toy.sales, batch 2 of 3; "
        "3 of 31 cells in all, about 19:26 left"
    )


def test_a_heartbeat_does_not_guess_before_anything_is_done_nor_where_nothing_is_counted():
    step = WorkStep(Phase.STARTING)

    assert beat_line(step, Tally({"toy.sales": 7}), 30.0) == (
        "at work for 0:30: starting Spark; 0 of 7 cells in all"
    )
    assert beat_line(step, Tally({}), 65.0) == "at work for 1:05: starting Spark"


def steps_of_a_promotion(at_work: AtWork) -> None:
    with at_work.at(Phase.CHECKING, "what was built"), at_work.at(Phase.COMPARING, of=2) as step:
        step.next("web.a")
        with at_work.at(Phase.STARTING):
            pass
        step.next("web.b")
    with at_work.at(Phase.PUBLISHING, of=1) as step:
        step.next("web.a")
    with at_work.at(Phase.RECORDING, "the pointers"):
        pass


def test_in_a_pipe_each_step_has_a_line(stderr: Callable[[bool], io.StringIO]):
    written = stderr(False)  # noqa: FBT003 - no terminal
    lines = Lines()
    steps_of_a_promotion(AtWork(lambda step: lines.tell(step, Tally({}))))

    assert written.getvalue().splitlines() == [
        "checks: what was built",
        "comparing: web.a, 1 of 2",
        "starting Spark",
        "publishing: web.a, 1 of 1",
        "recording: the pointers",
    ]


def test_what_takes_an_instant_does_not_fill_a_log(stderr: Callable[[bool], io.StringIO]):
    written = stderr(False)  # noqa: FBT003 - no terminal
    lines = Lines()
    with AtWork(lambda step: lines.tell(step, Tally({}))).at(Phase.LOOKING, of=500) as step:
        for number in range(500):
            step.next(f"web.source_{number}")

    assert written.getvalue() == ""


@pytest.mark.parametrize("phase", list(Phase))
def test_whatever_lasts_is_named(phase: Phase, stderr: Callable[[bool], io.StringIO]):
    written = stderr(False)  # noqa: FBT003 - no terminal
    lines = Lines(lasting=0.01)
    with AtWork(lambda step: lines.tell(step, Tally({}))).at(phase, of=2) as step:
        for name in ("web.a", "web.b"):
            step.next(name)
            while f"{phase.value}: {name}" not in written.getvalue():
                time.sleep(0.01)


def test_in_a_pipe_a_step_that_lasts_is_named_again_and_again(
    stderr: Callable[[bool], io.StringIO],
):
    written = stderr(False)  # noqa: FBT003 - no terminal
    lines = Lines(heartbeat=0.01, lasting=0.01)
    with AtWork(lambda step: lines.tell(step, Tally({}))).at(Phase.PUBLISHING, "web.a"):
        while written.getvalue().count("at work for 0:00: publishing: web.a") < 2:
            time.sleep(0.01)


def test_on_a_terminal_the_step_at_work_stands_over_the_bars_and_leaves_nothing(
    stderr: Callable[[bool], io.StringIO],
):
    written = stderr(True)  # noqa: FBT003 - a terminal
    bars = Bars()
    tally = Tally({"web.a": 4, "web.b": 0}, done={"web.a": 1})
    with AtWork(lambda step: bars.tell(step, tally)).at(Phase.BUILDING, "web.a", of=3) as step:
        step.next()
        while "batch 1 of 3" not in written.getvalue():
            time.sleep(0.01)
    drawn = written.getvalue()

    assert "building: web.a, batch 1 of 3  0:00" in drawn
    assert "1/4" in drawn
    assert "web.b" not in drawn
    assert drawn.endswith("\x1b[2K")  # the last line of it is wiped


def test_a_terminal_that_can_move_no_cursor_gets_lines(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "dumb")
    written = io.StringIO()
    monkeypatch.setattr(
        progress,
        "err",
        Console(file=written, force_terminal=True, color_system=None),
    )
    with AtWork(Shown().told).at(Phase.RECORDING, "the pointers"):
        pass

    assert written.getvalue() == "recording: the pointers\n"


def test_what_happens_to_cells_is_said_beside_the_step(stderr: Callable[[bool], io.StringIO]):
    written = stderr(False)  # noqa: FBT003 - no terminal
    cell = Daily(start="2024-01-01", end="2024-01-03").cell("2024-01-01")
    with (
        shown(a_graph(a_model()), {"web.visits": 1}) as listener,
        progress.AT_WORK.at(Phase.BUILDING, "web.visits", of=1) as step,
    ):
        step.next()
        listener(
            Committed(
                "web.visits",
                "b1",
                IntervalSet.of([cell]),
                0,
                {cell: NOTHING},
                (),
                0,
                BatchSeconds(),
            )
        )

    assert written.getvalue().splitlines() == [
        "building: web.visits, batch 1 of 1",
        "done    web.visits 2024-01-01: 0 rows, audits 0/0, 0.0 s",
    ]


def test_a_verb_shows_no_step_twice_and_the_next_verb_shows_it_again(
    monkeypatch: pytest.MonkeyPatch,
):
    lines: list[str] = []
    monkeypatch.setattr(progress, "say", lambda line, **_: lines.append(line))
    monkeypatch.setattr(progress, "err", Console(file=io.StringIO(), force_terminal=False))
    for _ in range(2):
        with shown(a_graph(), {}):
            for _ in range(2):
                with progress.AT_WORK.at(Phase.CHECKING, "what was built"):
                    pass
    assert lines == ["checks: what was built"] * 2
