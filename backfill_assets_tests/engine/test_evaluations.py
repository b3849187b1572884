"""The numbers of an evaluation are held against each other, each by a fraction of the one before."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, strategies as st

from backfill_assets.engine.plans.evaluations import EvaluationFailedError, compared, numbers_of
from backfill_assets.models.consumer import Evaluation

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
