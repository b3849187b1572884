"""Pictures of the state, as values."""

from __future__ import annotations

from hypothesis import given, strategies as st

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.environment import Pointer
from backfill_assets.snapshots.state_view import ModelState, ReadyRun
from backfill_assets_tests.builders import days, stamps

AT = Pointer("prod", "m", "f", "v", 1)
NUMBERS = range(1, 9)

held = st.dictionaries(st.sampled_from(NUMBERS), st.integers(1, 3))
"""By day, the number of the batch that built it."""


def state_of(batches: dict[int, int]) -> ModelState:
    """Draw a table; touching days of one batch are one run."""
    runs = (
        ReadyRun(interval, batch, stamps(batch), f"b{batch}")
        for batch in sorted(set(batches.values()))
        for interval in days(*(number for number, of in batches.items() if of == batch))
    )
    return ModelState(AT, tuple(runs))


def batches_of(state: ModelState) -> dict[int, int]:
    return {
        number: run.built_at
        for number in NUMBERS
        for run in state.runs
        if days(number) & IntervalSet.of((run.interval,))
    }


@given(held, held, st.sets(st.sampled_from(NUMBERS)))
def test_cells_of_another_state_stand_in_for_those_that_it_names(
    own: dict[int, int], other: dict[int, int], named: set[int]
):
    mixed = state_of(own).with_cells_of(state_of(other), days(*named))
    expected = {number: at for number, at in own.items() if number not in named}
    expected |= {number: at for number, at in other.items() if number in named}
    assert batches_of(mixed) == expected
    assert mixed.ready == days(*expected)
