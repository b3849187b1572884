"""After a publication the one rule finds what really differs, and nothing else.

Of three models, `b` and `c` read other columns of `a`. A plan rebuilds `a`, as a version of its own or
in place, and what the rule then finds of `b`; `c` is not in it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings, strategies as st

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.content import Checksum, Content
from backfill_assets.planning.rule.needs_work import Work, needs_work
from backfill_assets_tests.builders import a_graph, a_model
from backfill_assets_tests.state.building import (
    FIRST,
    Asked,
    add_model,
    days,
    each_day,
    emptied,
    fill,
)
from backfill_assets_tests.state.publishing import Trial

if TYPE_CHECKING:
    from backfill_assets.state.store import Store

DAYS = 4
A, B, C = "web.a", "web.b", "web.c"
GRAPH = a_graph(
    a_model(A), a_model(B, upstreams=[A]), a_model(C, upstreams=[A])
)  # fmt: skip
READS = {B: {A: frozenset({"cost"})}, C: {A: frozenset({"id"})}}
NOW = FIRST + timedelta(days=DAYS)

small = st.integers(1, 2)
contents = st.builds(
    lambda rows, cost, id_: Content(rows, rows, {"cost": cost, "id": id_}), small, small, small
)
weeks = st.lists(contents, min_size=DAYS, max_size=DAYS)


def _work(store: Store, environment: str, model: str) -> Work:
    view = store.views.of(environment)
    return needs_work(GRAPH, view, GRAPH.model(model), now=NOW, reads=READS[model])


def _set(*picked: int) -> IntervalSet:
    return IntervalSet.of(days(at, at + 1) for at in picked)


def _read_by(model: str, content: Content) -> tuple[Checksum, ...]:
    (columns,) = READS[model].values()
    return (content.rows, content.key, *(content.columns[name] for name in sorted(columns)))


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    before=weeks, after=weeks, rebuilt=weeks, anew=st.booleans(),
    picked=st.sets(st.integers(0, DAYS - 1)),
)  # fmt: skip
def test_after_a_promotion_only_readers_of_what_differs_are_stale(
    store: Store,
    before: list[Content],
    after: list[Content],
    rebuilt: list[Content],
    anew: bool,  # noqa: FBT001
    picked: set[int],
):
    emptied(store)
    whole = dict(zip(each_day(0, DAYS), before, strict=True))
    for model in (A, B, C):
        add_model(store, model)
        fill(store, Asked(model, 0, DAYS), whole)
    trial = Trial(store)
    days_built = set(range(DAYS)) if anew else picked
    if anew:
        trial.new_version(A)
    else:
        trial.in_place(A, _set(*picked))
    trial.in_place(B)
    trial.open()
    for at in sorted(days_built):
        trial.fill(A, at, at + 1, {days(at, at + 1): after[at]})

    # Inside the workspace the rule finds what reads a column, or rows, that came out different.
    differing = {at for at in days_built if _read_by(B, before[at]) != _read_by(B, after[at])}
    assert _work(store, trial.workspace, B).stale_cells == _set(*differing)
    assert _work(store, trial.workspace, B).refresh == _set(*differing)
    for at in sorted(differing):
        trial.fill(B, at, at + 1, {days(at, at + 1): rebuilt[at]})
    inside = _work(store, trial.workspace, B)
    assert not inside.gaps | inside.refresh
    trial.promote()

    # What the plan rebuilt is fresh, what it left alone is stale where it reads what differs.
    assert not _work(store, "prod", B).stale_cells
    assert not _work(store, "prod", B).gaps
    beside = {at for at in days_built if _read_by(C, before[at]) != _read_by(C, after[at])}
    assert _work(store, "prod", C).stale_cells == _set(*beside)
    published = {
        days(at, at + 1): after[at] if at in days_built else before[at] for at in range(DAYS)
    }
    assert store.views.content_at_pin("prod", A, _set(*range(DAYS))) == published


def test_a_base_cell_that_is_rebuilt_after_the_opening_is_still_stale_in_the_workspace(
    store: Store,
):
    """It has read what is published, not what the workspace has built."""
    held = Content(1, 1, {"cost": 1, "id": 1})
    for model in (A, B):
        add_model(store, model)
        fill(store, Asked(model, 0, DAYS), dict.fromkeys(each_day(0, DAYS), held))
    trial = Trial(store)
    trial.in_place(A, _set(1))
    trial.in_place(B)
    trial.open()
    trial.fill(A, 1, 2, {days(1, 2): Content(1, 1, {"cost": 9, "id": 1})})
    fill(store, Asked(B, 1, 2, run="run-2"), {days(1, 2): held})

    assert _work(store, trial.workspace, B).stale_cells == _set(1)
    assert not _work(store, "prod", B).stale_cells
