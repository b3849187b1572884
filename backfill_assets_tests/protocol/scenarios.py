"""What is explored: who does what, and how much may go wrong meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from backfill_assets_tests.protocol.invariants import FIRST
from backfill_assets_tests.protocol.publishing import SEEN
from backfill_assets_tests.protocol.world import (
    BATCH,
    CREATED,
    DONE,
    Entry,
    File,
    Operation,
    Process,
    Record,
    State,
    Table,
    World,
    fresh,
)

GAP = Operation("fill")
OTHER_GAP = Operation("fill", cells=(1,))
AUDITED_GAP = Operation("fill", bad=True)
REFRESH = Operation("fill", gap=False)
PROMOTE = Operation("promote")
SHORT_OF_DISK = Operation("promote", bad=True)
ROLLBACK = Operation("rollback")
COLLECT = Operation("collect")
INTRUDE = Operation("intrude")


@dataclass(frozen=True, slots=True)
class Scenario:
    """Processes in a world.

    Attributes:
        name: what is done.
        programs: the commands of each process.
        tables: how many there are.
        published: whether the first cell of each is published already.
        crashes: how many processes may die.
        lapses: how many leases may lapse while their holder lives.
        days: how often the collector's grace may pass.
        expiries: how often the promise of a way back may run out.
    """

    name: str
    programs: tuple[tuple[Operation, ...], ...]
    tables: int = 1
    published: bool = True
    crashes: int = 0
    lapses: int = 0
    days: int = 0
    expiries: int = 0

    def world(self) -> World:
        """Give the world in which it begins."""
        table = _published() if self.published else _unborn()
        world = World(
            tables=(table,) * self.tables,
            state=State(SEEN, frozenset(), None, ()),
            processes=(),
            crashes=self.crashes,
            lapses=self.lapses,
            days=self.days,
            expiries=self.expiries,
        )
        processes = tuple(
            Process(program, f"{program[0].kind}.begin" if program else DONE, memory=fresh(world))
            for program in self.programs
        )
        return world._replace(processes=processes)


def _unborn() -> Table:
    return Table((), frozenset(), frozenset(), -1, 0, 0, -1, -1, (), 0)


def _published() -> Table:
    file = File(FIRST, 0, good=True, folder=FIRST)
    log = (
        Entry(CREATED, 1, 0, (None, None)),
        Entry(BATCH, 1, FIRST, (file, None), built_at=SEEN, names=(0,)),
    )
    record = Record(0, 1, 0, FIRST, SEEN, gap=True)
    return Table(log, frozenset({file}), frozenset(), 0, 1, 0, 1, 1, (record,), 1)


SCENARIOS = (
    Scenario(
        "two fills of a new table",
        ((AUDITED_GAP,), (GAP,)),
        published=False,
        crashes=1,
        lapses=1,
    ),
    Scenario("two fills of a cell", ((OTHER_GAP,), (OTHER_GAP,)), crashes=1, lapses=1),
    Scenario("fills of two cells", ((REFRESH,), (OTHER_GAP,)), crashes=1, lapses=1),
    Scenario(
        "a fill, and a stranger before a refresh", ((OTHER_GAP,), (INTRUDE, REFRESH)), crashes=2
    ),
    Scenario(
        "a fill of a new table, and a collection",
        ((GAP,), (COLLECT,)),
        published=False,
        crashes=1,
        lapses=1,
        days=1,
    ),
    Scenario(
        "a fill, and a collection",
        ((OTHER_GAP,), (COLLECT,)),
        crashes=1,
        lapses=1,
        days=1,
    ),
    Scenario(
        "a refresh, and a promotion of two tables",
        ((REFRESH,), (PROMOTE,)),
        tables=2,
        crashes=1,
        lapses=1,
    ),
    Scenario(
        "two promotions of two tables, one on a full disk",
        ((SHORT_OF_DISK,), (PROMOTE,)),
        tables=2,
        crashes=1,
        lapses=1,
    ),
    Scenario(
        "a fill, and a promotion of two tables and its rollback",
        ((OTHER_GAP,), (PROMOTE, ROLLBACK)),
        tables=2,
        crashes=1,
        lapses=1,
    ),
    Scenario(
        "a fill and a collection, and a promotion and its rollback",
        ((OTHER_GAP, COLLECT), (PROMOTE, ROLLBACK)),
        lapses=1,
        days=1,
        expiries=1,
    ),
    Scenario(
        "a collection, and a promotion and its rollback",
        ((COLLECT,), (PROMOTE, ROLLBACK)),
        crashes=1,
        days=1,
        expiries=1,
    ),
)
"""What `make faults` explores."""
