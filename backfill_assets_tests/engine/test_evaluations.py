"""The numbers of an evaluation are held against each other, each by a fraction of the one before."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from backfill_assets.engine.plans import evaluations
from backfill_assets.engine.plans.evaluations import EvaluationFailedError, compared, numbers_of
from backfill_assets.models.consumer import Consumer, Evaluation, Reading
from backfill_assets.models.graph import build_graph
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import MORE, OLD, ROWS, VISITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backfill_assets.models.model import Model
    from backfill_assets_tests.engine.world import World

NUMBERS = st.dictionaries(st.sampled_from("abc"), st.floats(-1e6, 1e6), min_size=1)


@given(NUMBERS, NUMBERS, st.floats(0, 2))
def test_each_number_is_on_both_sides_and_within_its_fraction(
    before: dict[str, float], after: dict[str, float], within: float
):
    near = before.keys() == after.keys() and all(
        abs(after[name] - number) <= within * abs(number) for name, number in before.items()
    )
    assert compared(before, after, within)[0] is near


@given(NUMBERS)
def test_equal_numbers_are_within_any_fraction(numbers: dict[str, float]):
    assert compared(numbers, numbers, 0)[0]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("print('fine')", "it ended with 'fine'"),
        ("print('{}')", "it ended with '{}'"),
        ("print('{\"a\": true}')", "it ended with '{\"a\": true}'"),
        ("print('{\"a\": NaN}')", "it ended with"),
        ("print('{\"a\": 1' + 400 * '0' + '}')", 'it ended with \'{"a": 1000'),
        ("pass", "it ended with ''"),
        ("import time; time.sleep(60)", "it did not end within 0.001 min"),
        ("raise SystemExit(3)", "exit code 3"),
    ],
)
def test_a_command_without_numbers_is_named_with_what_it_gave(program: str, words: str):
    evaluation = Evaluation("hits", (sys.executable, "-c", program), minutes=0.001)
    if "sleep" not in program:
        evaluation = Evaluation("hits", evaluation.command)
    with pytest.raises(EvaluationFailedError) as error:
        numbers_of(evaluation, "nowhere")
    assert words in str(error.value)


def test_a_program_that_is_not_there_is_named():
    with pytest.raises(EvaluationFailedError, match=r"no-such-program.*No such file"):
        numbers_of(Evaluation("hits", ("no-such-program",)), "nowhere")


def test_the_command_is_told_the_folder_and_its_last_line_counts():
    program = "import sys; print('x'); print('{\"n\": %d}' % len(sys.argv[-1]))"
    assert numbers_of(Evaluation("n", (sys.executable, "-c", program)), "four") == {"n": 4.0}


def test_a_column_that_the_plan_adds_has_no_number_before_and_stops_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    def rows_read(_: object, model: Model, __: object, columns: Sequence[str], ___: object) -> Any:  # noqa: ANN401
        assert {*columns} <= {column.name for column in model.schema}, "as Spark says"
        return pa.table({name: [1] for name in columns})

    monkeypatch.setattr(evaluations, "rows_read", rows_read)
    program = "import os, sys; print('{\"files\": %d}' % len(os.listdir(sys.argv[-1])))"
    evaluation = Evaluation("files", (sys.executable, "-c", program))
    agent = Consumer(
        name="agent",
        kind="agent",
        owner="team:web",
        reads=[Reading(VISITS, columns=["double"])],
        evaluations=[evaluation],
    )
    graph = build_graph(MORE.models.values(), MORE.sources.values(), [agent])
    world.begin(OLD, *ROWS)
    plans = Plans(world)

    plan = plans.published(graph)

    checks = {each.check: each for each in world.store.checks.of_plan(plan.plan_id)}
    found = checks["agent: files"]
    assert (found.passed, found.text) == (
        True, "files 1; not all that it reads is published yet",
    )  # fmt: skip
