"""What is left in an environment, and for whom it waits: one answer for every command's last line."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from backfill_assets.engine.fill.late_cells import late_waits, late_work_of, lease_name, next_run
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import counted
from backfill_assets.planning.rule.lacking_in_sources import lacking_in_sources

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from backfill_assets.engine.fill.observing import SourceLook
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.cells_by_model import CellsByModel
    from backfill_assets.planning.rule.late_work import LateWork
    from backfill_assets.state.locks import Lease

A_PLAN = "need a plan"


@dataclass(frozen=True, slots=True)
class Outstanding:
    """What is left, counted in cells.

    Attributes:
        missing: required and not ready.
        running: of these, and of what is refreshed in place, those that a live batch holds.
        awaits: of the missing ones, those that wait for rows of a source, by its name; each is counted
            once.
        buildable: of the missing ones, those that a run would build first: all that they read is there,
            and no live batch holds them.
        stale: ready, and overtaken by a change of what they read.
        waits: the stale ones, by what they wait for, in words; every one is counted once.
        unlooked: sources with commits that were not looked at: what these change is not counted.
    """

    missing: int = 0
    running: int = 0
    awaits: Mapping[str, int] = field(default_factory=dict[str, int])
    buildable: int = 0
    stale: int = 0
    waits: Mapping[str, int] = field(default_factory=dict[str, int])
    unlooked: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Say all of it in one line, the same for every command."""
        waits = ", ".join(f"{count:,} {whom}" for whom, count in self.waits.items())
        running = f", {self.running:,} of them at work" if self.running else ""
        awaits = "".join(
            f", {count:,} of them waiting for {name}" for name, count in self.awaits.items()
        )
        text = f"{counted(self.missing, 'cell')} missing{running}{awaits}, {self.stale:,} stale"
        return text + (f": {waits}" if waits else "")

    def waiting_for(self, plan_id: str | None) -> Outstanding:
        """Give it where a plan stands for all that needs one; None: none does."""
        if plan_id is None:
            return self
        waits = Counter[str]()
        for whom, count in self.waits.items():
            waits[f"wait for plan {plan_id}" if whom == A_PLAN else whom] += count
        return replace(self, waits=waits)

    @property
    def is_open(self) -> bool:
        """Whether cells wait to be built again, or it is not known whether some do."""
        return bool(self.stale or self.unlooked)

    @property
    def warning(self) -> str:
        """Say what the answer does not know; empty where it knows everything."""
        if not self.unlooked:
            return ""
        listed = ", ".join(f"'{name}'" for name in self.unlooked)
        many = len(self.unlooked) > 1
        return (
            f"source{'s' if many else ''} {listed} {'have' if many else 'has'} commits that were not "
            "looked at, so there may be more to do; `backfill plan` looks at the rows"
        )


def outstanding(
    run: RunContext,
    names: Collection[str],
    looks: Iterable[SourceLook] = (),
    within: CellsByModel | None = None,
) -> Outstanding:
    """Count what is left of some models.

    Args:
        run: the environment.
        names: which models.
        looks: what a look at the sources has come to.
        within: by model, the cells that were asked for; None: all.
    """
    view, late = run.view(), late_work_of(run)
    lease = run.store.locks.lease(lease_name(run.environment.name))
    missing = running = buildable = stale = 0
    awaits: dict[str, int] = {}
    waits: dict[str, int] = {}
    for name in names:
        model = run.graph.model(name)
        work = run.work(name, view, run.clock())
        inside = work.required if within is None else within[name]
        missing += model.cadence.count(work.gaps & inside)
        claimed = view.claimed[name]
        running += model.cadence.count(claimed & (work.gaps | late.in_place[name]) & inside)
        could = (work.runnable & inside) - claimed
        for source, cells in lacking_in_sources(run.graph, view, model, could, run.clock()).items():
            if count := model.cadence.count(cells & could):
                awaits[source] = awaits.get(source, 0) + count
            could -= cells
        buildable += model.cadence.count(could)
        stale += model.cadence.count(work.stale_cells & inside)
        for whom, cells in stale_by_need(run, late, name, work.stale_cells, lease).items():
            if count := model.cadence.count(cells & inside):
                waits[whom] = waits.get(whom, 0) + count
    unlooked = tuple(look.source for look in looks if not look.judged and look.counts)
    return Outstanding(missing, running, awaits, buildable, stale, waits, unlooked)


def stale_by_need(
    run: RunContext, late: LateWork, name: str, stale: IntervalSet, lease: Lease | None
) -> dict[str, IntervalSet]:
    """Give the stale cells of a model by what they need or wait for, in words; each is named once.

    Args:
        run: the environment.
        late: how its stale cells are split.
        name: which model.
        stale: its stale cells.
        lease: that of the run which brings late data in now; None for none.
    """
    by_need = {A_PLAN: stale & late.waiting[name], **late_waits(run, late, name)}
    rest = stale - IntervalSet.union_all(by_need.values())
    own = _for_run(run, lease)
    by_need[own] = rest | by_need.get(own, IntervalSet.empty())
    return {whom: cells for whom, cells in by_need.items() if cells}


def _for_run(run: RunContext, lease: Lease | None) -> str:
    """Name the run that brings late data in now, and until when it may be silent."""
    if lease is None or lease.holder == run.run_id:
        return next_run(run)
    until = lease.until.strftime("%Y-%m-%d %H:%M:%S %Z")
    return f"wait for run {lease.holder}, whose lease on them ends at {until} unless it is renewed"
