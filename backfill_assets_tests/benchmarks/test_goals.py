from __future__ import annotations

import pytest

from benchmarks.goals import MET, MISSED, goals_table, verdict
from benchmarks.part import Part


@pytest.mark.parametrize(
    ("value", "goal", "expected"),
    [
        (0.6, "≤ 0.6", MET),
        (0.61, "≤ 0.6", MISSED),
        (12.0, "< 12", MISSED),
        (5.0, "≥ 5", MET),
        (5.0, "> 5", MISSED),
        (0.0, "≤ 0", MET),
        (0.5, "0.5 to 2", MET),
        (2.1, "0.5 to 2", MISSED),
        (float("inf"), "≤ 3", MISSED),
        (9.0, "", ""),
    ],
)
def test_a_figure_meets_its_goal_up_to_the_bound(value: float, goal: str, expected: str):
    assert verdict(value, goal) == expected


def test_a_goal_that_is_no_goal_is_refused():
    with pytest.raises(ValueError, match="about 3"):
        verdict(3.0, "about 3")


def test_the_table_has_each_figure_with_its_goal_and_verdict():
    head, promotion, other = goals_table([("promote, s", 31.4, "≤ 3"), ("JVMs", 0.0, "≤ 0")])

    assert head.split() == ["what", "measured", "goal", "verdict"]
    assert promotion.split() == ["promote,", "s", "31.40", "≤", "3", MISSED]
    assert other.split() == ["JVMs", "0.00", "≤", "0", MET]


def test_a_part_says_of_each_ratio_whether_its_goal_is_met():
    part = Part("some", {}, (), ratios={"fast": 0.5, "slow": 2.0}, goals={"fast": "≤ 1"})

    assert part.compared == ("fast: 0.50 (goal ≤ 1: met)", "slow: 2.00")
