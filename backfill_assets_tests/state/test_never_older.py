"""No published cell ever goes back to older inputs, except by a rollback or an undo.

The oracle knows one number per cell: which state of the source its published rows were made of.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from backfill_assets.planning.plan.left import left_of
from backfill_assets.planning.rule.needs_work import needs_work
from backfill_assets.snapshots.environment import Layer
from backfill_assets.snapshots.observation import (
    BASELINE,
    ChangedCells,
    Observation,
    ObservedSource,
    SourceCell,
)
from backfill_assets.snapshots.publication import Copy, Move, PublicationKind
from backfill_assets.state.store import Store
from backfill_assets_tests.builders import EVENTS, a_graph, a_model
from backfill_assets_tests.state.building import (
    FIRST,
    LEASE,
    Asked,
    Clock,
    add_model,
    content,
    days,
    emptied,
    fill,
)
from backfill_assets_tests.state.publishing import Trial

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.content import Content
    from backfill_assets.snapshots.environment import Pointer

DAYS = 2
MODEL = "web.leaf"
GRAPH = a_graph(a_model(MODEL, late_window=DAYS))
NOW = FIRST + timedelta(days=DAYS)
RAW = ObservedSource(EVENTS, "/lake/raw", "id-1", "days", 0)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path}/state.db", clock=Clock(), lease_seconds=LEASE) as opened:
        yield opened


day_numbers = st.integers(0, DAYS - 1)
acts = st.one_of(
    st.tuples(st.sampled_from(["late", "refresh", "build"]), day_numbers),
    st.tuples(st.sampled_from(["late", "refresh"]), day_numbers),
    st.tuples(st.sampled_from(["promote", "undo"]), st.just(0)),
)


@dataclass
class Oracle:
    """What the source holds, and which of its states each published and each planned cell has read.

    Attributes:
        before: of the last promotion: what the published cells had read before it.
        in_place: whether plans rewrite the published table, instead of building a new one.
        same: whether the content of a cell stays the same whatever it has read.
    """

    store: Store
    in_place: bool
    same: bool
    source: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(DAYS), 0))
    published: dict[int, int] = field(default_factory=dict)
    built: dict[int, int] = field(default_factory=dict)
    before: dict[int, int] = field(default_factory=dict)
    trial: Trial | None = None
    promoted: Trial | None = None
    plans: int = 0
    runs: int = 0

    def late(self, at: int) -> None:
        """The source gets a row, and it is looked at."""
        self.source[at] += 1
        known = self.store.sources.observed()[EVENTS]
        cell = SourceCell(days(at, at + 1), 5 + self.source[at])
        found = replace(known, head=known.head + 1)
        assert self.store.sources.observe(Observation(found, known, (ChangedCells((cell,)),)))

    def refresh(self, at: int) -> None:
        """Prod builds a cell again in its own table."""
        self._fill(Asked(MODEL, at, at + 1, run=self._name(), table=self._pointer().version))
        self.published[at] = self.source[at]

    def build(self, at: int) -> None:
        """A plan builds a cell where nobody reads."""
        self._open()
        self._in_workspace(at)

    def promote(self, _: int) -> None:
        """Build what the rule finds left of the plan, then publish."""
        if self.trial is None:
            return
        for at in range(DAYS):
            if days(at, at + 1) in self._left():
                self._in_workspace(at)
        assert not self._left()
        older = {at for at, read in self.built.items() if read < self.published.get(at, 0)}
        assert not older, "cells that are published with older inputs than before"
        self.trial.promote()
        self.before, self.promoted = dict(self.published), self.trial
        self.published.update(self.built)
        self.trial, self.built = None, {}

    def undo(self, _: int) -> None:
        """A person takes the last promotion back: the one way to older inputs."""
        if self.promoted is None or self.trial is not None:
            return
        was, now = self.store.history.moves_of(self.promoted.plan_id)[0].old, self._pointer()
        assert was is not None
        back = Move(pointer=was, old_version=now.version, old_fingerprint=now.fingerprint)
        if was.version == now.version:
            at = self.store.versions.known_head(now.version) + 1
            copied = Copy(Layer(was.version, was.delta_version))
            back = replace(back, pointer=replace(was, delta_version=at), copies=(copied,))
        self.promoted.publish(back, kind=PublicationKind.ROLLBACK)
        self.published, self.promoted = self.before, None

    def _pointer(self) -> Pointer:
        return self.store.environments.pointers("prod")[MODEL]

    def _open(self) -> None:
        if self.trial is not None:
            return
        self.plans += 1
        trial = Trial(self.store, f"p{self.plans}")
        if self.in_place:
            trial.in_place(MODEL)
        else:
            trial.new_version(MODEL, f"{MODEL}__n{self.plans}")
        trial.save()
        trial.open()
        self.trial, self.promoted = trial, None

    def _in_workspace(self, at: int) -> None:
        assert self.trial is not None
        table = self.store.environments.pointers(self.trial.workspace)[MODEL].version
        asked = Asked(
            MODEL, at, at + 1, run=self._name(),
            environment=self.trial.workspace, table=table, plan=self.trial.plan_id,
        )  # fmt: skip
        self._fill(asked)
        self.built[at] = self.source[at]

    def _fill(self, asked: Asked) -> None:
        fill(self.store, asked, {days(asked.start, asked.end): self._content(asked.start)})

    def _name(self) -> str:
        self.runs += 1
        return f"run-{self.runs}"

    def _content(self, at: int) -> Content:
        return content(5 if self.same else 5 + self.source[at], key=1, ds=1, id=1, cost=1)

    def _left(self) -> IntervalSet:
        assert self.trial is not None
        view = self.store.views.of(self.trial.workspace)
        return left_of(needs_work(GRAPH, view, GRAPH.model(MODEL), now=NOW), view, MODEL)


@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@example([("build", 0), ("late", 0), ("refresh", 0)], (False, False))
@example([("build", 0), ("late", 0), ("refresh", 0)], (True, True))
@given(st.lists(acts, max_size=14), st.tuples(st.booleans(), st.booleans()))
def test_no_published_cell_goes_back_to_older_inputs_but_by_a_rollback(
    local: Store, done: list[tuple[str, int]], how: tuple[bool, bool]
):
    emptied(local)
    add_model(local, MODEL)
    baseline = ChangedCells(tuple(SourceCell(days(at, at + 1), 5) for at in range(DAYS)), BASELINE)
    assert local.sources.observe(Observation(RAW, None, (baseline,), anew=True))
    oracle = Oracle(local, *how)
    for at in range(DAYS):
        oracle.refresh(at)
    for act, at in (*done, ("promote", 0)):
        getattr(oracle, act)(at)
