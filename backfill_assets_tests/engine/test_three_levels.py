"""Hours, days and months over a source that somebody edits at random: the automatic work is all it takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.engine.automatic.late_plan import refresh_late
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.planning.rule.needs_work import needs_work
from backfill_assets.snapshots.publication import PROMOTED
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.three_levels import (
    FIRST,
    HOUR,
    HOURS,
    LEVELS,
    RAW,
    Oracle,
    as_date,
    graph,
    hour_of,
    source,
)
from backfill_assets_tests.engine.world import arrow, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from backfill_assets.engine.automatic.late_plan import Refreshed
    from backfill_assets_tests.engine.world import World


@dataclass
class Edited:
    """The source and its edits; the oracle hears of every one.

    Attributes:
        commits: the hours whose rows each commit has changed, since the last look.
    """

    world: World
    random: Random
    oracle: Oracle = field(default_factory=Oracle)
    ids: int = 0
    told: list[str] = field(default_factory=list)
    commits: list[set[datetime]] = field(default_factory=list)

    @property
    def path(self) -> str:
        return str(self.world.root / source().path)

    def begin(self, hours: int) -> None:
        self.world.clock.now = FIRST + hours * HOUR
        self.append(self._row(FIRST + number * HOUR) for number in range(hours))

    def append(self, rows: Iterable[tuple[datetime, int, int]]) -> None:
        listed = list(rows)
        columns = {column.name: column.dtype for column in source().schema}
        write_deltalake(self.path, arrow(columns, listed), mode="append")
        self.oracle.rows |= {id_: (at, value) for at, id_, value in listed}

    def edit(self) -> None:
        edits: list[Callable[[], str]] = [
            self.late, self.late, self.update, self.delete, self.compact, self.again, self.new_hours,
        ]  # fmt: skip
        self.told.append(self.random.choice(edits)())

    def late(self) -> str:
        hours = [self._hour() for _ in range(self.random.randint(1, 2))]
        self.append(self._row(hour) for hour in hours)
        self.commits.append({*hours})
        return f"late rows in {hours}"

    def update(self) -> str:
        ids = self._some()
        self.commits.append(self._hours(ids))
        # What is capped already comes out as it was: early cutoff.
        DeltaTable(self.path).update({"v": "v + 3"}, predicate=_among(ids))
        for id_ in ids:
            at, value = self.oracle.rows[id_]
            self.oracle.rows[id_] = (at, value + 3)
        return f"updated {ids}"

    def delete(self) -> str:
        ids = self._some()
        self.commits.append(self._hours(ids))
        DeltaTable(self.path).delete(_among(ids))
        for id_ in ids:
            del self.oracle.rows[id_]
        return f"deleted {ids}"

    def compact(self) -> str:
        DeltaTable(self.path).optimize.compact()
        return "compacted"

    def again(self) -> str:
        rows = DeltaTable(self.path).to_pyarrow_table()
        write_deltalake(self.path, rows, mode="overwrite")
        return "rewritten as it was"

    def new_hours(self) -> str:
        hours, before = self.random.randint(1, 30), self.world.clock.now
        self.world.clock.now += hours * HOUR
        self.append(self._row(before + number * HOUR) for number in range(hours))
        return f"{hours} new hours"

    def _row(self, hour: datetime) -> tuple[datetime, int, int]:
        self.ids += 1
        minute = timedelta(minutes=self.random.randint(0, 59))
        return (hour + minute, self.ids, self.random.randint(1, 9))

    def _hours(self, ids: Iterable[int]) -> set[datetime]:
        return {hour_of(self.oracle.rows[id_][0]) for id_ in ids}

    def _hour(self) -> datetime:
        """An hour of the past; of the last days more often than not."""
        past = int((self.world.clock.now - FIRST) / HOUR)
        back = self.random.randint(1, min(60, past) if self.random.random() < 0.7 else past)
        return self.world.clock.now - back * HOUR

    def _some(self) -> list[int]:
        known = sorted(self.oracle.rows)
        latest = known[-50:] if self.random.random() < 0.7 else known
        return sorted(self.random.sample(latest, min(2, len(latest))))


def _among(ids: Iterable[int]) -> str:
    return f"id IN ({', '.join(map(str, ids))})"


@dataclass
class Automatic:
    """The work that nobody asks for, and what it did."""

    world: World
    counted: set[str] = field(default_factory=set)

    def refresh(self) -> Refreshed:
        return refresh_late(self.world.open(graph()))

    def built(self) -> dict[str, int]:
        """Count the cells that were built since this was asked last."""
        counts: dict[str, int] = dict.fromkeys(LEVELS, 0)
        for row in self.world.store.batches.latest():
            if (
                row.status == "committed"
                and row.reason != PROMOTED
                and row.batch_id not in self.counted
            ):
                counts[row.model] += graph().model(row.model).cadence.count(row.stretches)
                self.counted.add(row.batch_id)
        return counts


def lived(world: World, seed: int, rounds: int) -> None:
    edited, automatic = Edited(world, Random(seed)), Automatic(world)  # noqa: S311
    oracle = edited.oracle
    edited.begin(24 * 5)
    oracle.look()
    automatic.refresh()
    world.fill(graph())
    oracle.fill(world.clock.now)
    automatic.built()
    for _ in range(rounds):
        edited.told.append("-- round")
        for _ in range(edited.random.randint(1, 3)):
            edited.edit()
        said = edited.told
        changed = {hour for hour in oracle.look() if hour in oracle.built[HOURS]}
        far = oracle.waiting(changed)

        done = automatic.refresh()
        assert done.failed == (), done
        waiting = _starts(done.left.waiting.get(HOURS))
        assert automatic.built() == oracle.rebuild(changed - waiting), said
        assert far <= waiting <= (changed if far else set()), said
        for hours in edited.commits:  # a commit is published as a whole, or waits as a whole
            assert hours & changed <= waiting or not hours & waiting, said
        edited.commits.clear()
        world.fill(graph())
        assert automatic.built() == oracle.fill(world.clock.now), said
        if waiting:
            lost = [hour for hour in sorted(waiting) if hour not in oracle.seen]
            Plans(world).published(graph(), restate=tuple(map(_said_wrong, lost)), reason="looked")
            assert automatic.built() == oracle.rebuild(waiting), said
        _nothing_left(world, said)
        _equal(world, oracle, said)


def _said_wrong(hour: datetime) -> Restatement:
    """An hour that has lost all its rows takes a person who says that they were wrong."""
    start, end = (f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in (hour, hour + HOUR))
    return Restatement(RAW, start, end)


def _starts(cells: IntervalSet | None) -> set[datetime]:
    found = cells or IntervalSet.empty()
    return {cell.start for cell in graph().model(HOURS).cadence.cells(found)}


def _nothing_left(world: World, said: list[str]) -> None:
    view = world.store.views.of("prod")
    for name in LEVELS:
        work = needs_work(graph(), view, graph().model(name), now=world.clock.now)
        assert not work.gaps | work.stale_cells | work.owed, (name, said)


def _equal(world: World, oracle: Oracle, said: list[str]) -> None:
    """Hold every table against one that is computed from the source's rows alone."""
    scratch = oracle.from_scratch()
    for name in LEVELS:
        expected = {
            as_date(at, name): values for at, values in scratch[name].items() if values is not None
        }
        columns = [column.name for column in graph().model(name).schema]
        found = {
            _utc(row[0]): tuple(row[1:])
            for row in read(world.path(name), columns, world.pointer(name).delta_version)
        }
        assert found == expected, (name, said)


def _utc(at: Any) -> Any:  # noqa: ANN401
    return at.replace(tzinfo=UTC) if isinstance(at, datetime) and at.tzinfo is None else at


def test_after_random_edits_of_the_source_the_automatic_work_leaves_what_a_rebuild_would(
    world: World,
):
    lived(world, seed=7, rounds=2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
def test_the_same_over_many_rounds(world: World, seed: int):
    lived(world, seed, rounds=8)
