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
    Operation,
    Process,
    Record,
    Rows,
    State,
    Table,
    World,
    file_of,
    fresh,
)

GAP = Operation("fill")
OTHER_GAP = Operation("fill", cells=(1,))
AUDITED_GAP = Operation("fill", bad=True)
REFRESH = Operation("fill", gap=False)
OTHER_REFRESH = Operation("fill", cells=(1,), gap=False)
PROMOTE = Operation("promote")
SHORT_OF_DISK = Operation("promote", bad=True)
ROLLBACK = Operation("rollback")
COLLECT = Operation("collect")
INTRUDE = Operation("intrude")

SHARED = ((0, 1),)
"""A block whose cells have a file in common."""
PILED = ((0,), (1,))
"""A block in which files have piled up: one per cell."""


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
        block: where the cells of a table may share files, the cells of each, all published.
    """

    name: str
    programs: tuple[tuple[Operation, ...], ...]
    tables: int = 1
    published: bool = True
    crashes: int = 0
    lapses: int = 0
    days: int = 0
    expiries: int = 0
    block: tuple[tuple[int, ...], ...] = ()

    def world(self) -> World:
        """Give the world in which it begins."""
        table = _published(self.block or ((0,),)) if self.published else _unborn()
        world = World(
            tables=(table,) * self.tables,
            state=State(SEEN, frozenset(), None, ()),
            processes=(),
            crashes=self.crashes,
            lapses=self.lapses,
            days=self.days,
            expiries=self.expiries,
            has_blocks=bool(self.block),
        )
        processes = tuple(
            Process(program, f"{program[0].kind}.begin" if program else DONE, memory=fresh(world))
            for program in self.programs
        )
        return world._replace(processes=processes)


def _unborn() -> Table:
    return Table((), frozenset(), frozenset(), -1, 0, 0, -1, -1, (), 0)


def _published(cells_of_files: tuple[tuple[int, ...], ...]) -> Table:
    files = [
        file_of((Rows(FIRST, cell, good=True) for cell in cells), FIRST) for cells in cells_of_files
    ]
    holds = tuple(next((file for file in files if file.of(cell)), None) for cell in range(2))
    names = tuple(cell for cells in cells_of_files for cell in cells)
    log = (
        Entry(CREATED, 1, 0, (None, None)),
        Entry(BATCH, 1, FIRST, holds, built_at=SEEN, names=names),
    )
    records = tuple(Record(cell, 1, 0, FIRST, SEEN, gap=True) for cell in names)
    return Table(log, frozenset(files), frozenset(), 0, 1, 0, 1, 1, records, 1)


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
    Scenario(
        "fills of two cells that share a file",
        ((REFRESH,), (OTHER_REFRESH,)),
        crashes=1,
        lapses=1,
        block=SHARED,
    ),
    Scenario(
        "a fill, and a collection that joins files",
        ((REFRESH,), (COLLECT,)),
        crashes=1,
        lapses=1,
        block=PILED,
    ),
    Scenario(
        "two collections that join files, one of which dies",
        ((COLLECT,), (COLLECT,)),
        crashes=1,
        days=1,
        block=PILED,
    ),
    Scenario(
        "two collections that join files, one of which is silent",
        ((COLLECT,), (COLLECT,)),
        lapses=1,
        days=1,
        block=PILED,
    ),
    Scenario(
        "a collection that joins files, and a promotion and its rollback",
        ((COLLECT,), (PROMOTE, ROLLBACK)),
        crashes=1,
        days=1,
        block=PILED,
    ),
)
"""What `make faults` explores."""
