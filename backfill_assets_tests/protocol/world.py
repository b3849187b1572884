"""What there is at one moment: tables with their logs and files, the state, and the processes.

All of it is immutable and hashable. One environment reads all tables. A table is one model's; a cell is
a small number, and consists of one file: of its own, or one that it shares with the other cells of its
block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from backfill_assets_tests.protocol.rules import Rules

PLAN = 90
"""The batch that has built the plan's cells in its workspace."""
STRANGER = 99
"""The batch of a writer who knows nothing of locks."""

CREATED, FENCED, RESTORED, BATCH, COPY, COMPACTED, FOREIGN = (
    "created", "fenced", "restored", "batch", "copy", "compacted", "foreign",
)  # fmt: skip


class Rows(NamedTuple):
    """The rows that a batch computed for a cell.

    Attributes:
        batch: who computed them.
        cell: of which cell they are.
        good: whether they pass the audits.
    """

    batch: int
    cell: int
    good: bool


class File(NamedTuple):
    """A data file: the rows of a cell, and of others of its block.

    Attributes:
        batch: who computed the rows of the first cell.
        cell: which that is.
        good: whether they pass the audits.
        folder: by whom this file was written: the same rows may be copied.
        others: the rows of the other cells that it holds.
    """

    batch: int
    cell: int
    good: bool
    folder: int
    others: tuple[Rows, ...] = ()

    @property
    def rows(self) -> tuple[Rows, ...]:
        return (Rows(self.batch, self.cell, self.good), *self.others)

    def of(self, cell: int) -> Rows | None:
        """Read the rows of a cell; None where it holds none."""
        return next((held for held in self.rows if held.cell == cell), None)

    def parted(self, cells: Container[int], folder: int) -> File:
        """Give a file that holds what this one holds of some cells: itself where that is all."""
        rows = [held for held in self.rows if held.cell in cells]
        return self if len(rows) == len(self.rows) else file_of(rows, folder)


def file_of(rows: Iterable[Rows], folder: int) -> File:
    """Give a file with these rows."""
    first, *others = sorted(rows, key=lambda held: held.cell)
    return File(*first, folder, tuple(others))


class Entry(NamedTuple):
    """An entry of a table's log.

    Attributes:
        kind: what it says of itself.
        token: of its writer.
        batch: whose it is; 0 for none.
        holds: the file of each cell from this entry on, None for an empty cell.
        back: of a restore, the delta_version whose content it brings back.
        gap: whether its batch fills a gap.
        built_at: the number at which its batch pinned its inputs.
        names: the cells that it is about.
    """

    kind: str
    token: int
    batch: int
    holds: tuple[File | None, ...]
    back: int = -1
    gap: bool = False
    built_at: int = 0
    names: tuple[int, ...] = ()


class Record(NamedTuple):
    """A ready record: a cell holds a batch's rows over a span of delta_versions; until 0 is open."""

    cell: int
    since: int
    until: int
    batch: int
    built_at: int
    gap: bool


class Table(NamedTuple):
    """A table, and what the state knows of it.

    Attributes:
        log: its entries; none before it is created.
        files: what lies in its folder.
        old: the files that are older than the grace.
        old_head: the last delta_version that is.
        token: of the lock's last holder.
        holder: who has the lock; 0 for free.
        known: the last delta_version that the state has accounted for.
        pin: where the environment's pointer stands; -1 for nowhere.
        records: every ready record.
        looked: the token of the last holder who has seen how the log ends. No smaller one comes after.
    """

    log: tuple[Entry, ...]
    files: frozenset[File]
    old: frozenset[File]
    old_head: int
    token: int
    holder: int
    known: int
    pin: int
    records: tuple[Record, ...]
    looked: int

    @property
    def head(self) -> int:
        return len(self.log) - 1


class Claim(NamedTuple):
    """A batch's right to build cells of a table."""

    batch: int
    table: int
    cells: tuple[int, ...]


class Intent(NamedTuple):
    """What was begun to be published.

    Attributes:
        number: of the publication that it will be.
        kind: `promote` or `rollback`.
        holder: who is at it.
        noted: whether it is decided what moves.
    """

    number: int
    kind: str
    holder: int
    noted: bool


class Move(NamedTuple):
    """A publication: its number, what it was, and where the pins stood before."""

    number: int
    kind: str
    old_pins: tuple[int, ...]


class State(NamedTuple):
    """The state database, but for what it says of each table."""

    counter: int
    claims: frozenset[Claim]
    intent: Intent | None
    moves: tuple[Move, ...]


class Operation(NamedTuple):
    """A command of a process.

    Attributes:
        kind: `fill`, `promote`, `rollback`, `collect`, `intrude` or `settle`.
        table: of a fill, where to.
        cells: of a fill, which.
        gap: whether a fill fills a gap; else it refreshes published cells.
        bad: whether its rows may fail their audit, or a copy may fail.
    """

    kind: str
    table: int = 0
    cells: tuple[int, ...] = (0,)
    gap: bool = True
    bad: bool = False


class Memory(NamedTuple):
    """What a process remembers of what it has read.

    Attributes:
        table: at which table it is.
        built_at: the number at which its inputs were pinned.
        good: whether the rows that it has computed pass their audit.
        offered: whether it has begun an entry that names its files.
        above: the largest token that it has seen in the log.
        tokens: of the locks that it holds, by table; 0 for none.
        before: the delta_version that its entry will follow on.
        until: the delta_version up to which it reconciles.
        since: the delta_version that was known when it began to.
        adopted: whether it has adopted commits.
        back: the delta_version that it is about to restore.
        made: the delta_versions of its copies, by table; -1 for none.
        keep: the oldest delta_versions that are needed, by table.
        old: the files that were older than the grace when a collection read its clock.
        old_head: the last delta_version that was.
        doomed: the files that it will delete.
        sources: the files for which others stand that it has written: with what is left of each, or joined.
        resumes: at which step it goes on after having finished what another began.
        finishing: whether it is at another's publication.
    """

    table: int = 0
    built_at: int = 0
    good: bool = True
    offered: bool = False
    above: int = 0
    tokens: tuple[int, ...] = ()
    before: int = -1
    until: int = -1
    since: int = -1
    adopted: bool = False
    back: int = -1
    made: tuple[int, ...] = ()
    keep: tuple[int, ...] = ()
    old: frozenset[File] = frozenset()
    old_head: int = -1
    doomed: tuple[File, ...] = ()
    sources: tuple[File, ...] = ()
    resumes: str = ""
    finishing: bool = False


class Process(NamedTuple):
    """A process: what it has to do, at which step it is, and what it remembers.

    Attributes:
        program: its commands, the first of which it is at.
        at: the step that comes next; see `OVER`.
        life: how often it was started again.
        silent: whether it was not heard of for longer than the lease.
        memory: lost in a crash.
    """

    program: tuple[Operation, ...]
    at: str
    life: int = 0
    silent: bool = False
    memory: Memory = Memory()


DONE, DEAD = "done", "dead"
OVER = (DONE, DEAD)


class World(NamedTuple):
    """All of it, and what may still happen to it.

    Attributes:
        crashes: how many processes may still die.
        lapses: how many leases may still lapse while their holder lives.
        days: how often the collector's grace may still pass.
        expiries: how often a promise may still run out.
        expired: whether the promise of the way back is over.
        told: the batches of which somebody was told that they are committed.
        has_blocks: whether the cells of each table are one block, and may share files.
    """

    tables: tuple[Table, ...]
    state: State
    processes: tuple[Process, ...]
    crashes: int = 0
    lapses: int = 0
    days: int = 0
    expiries: int = 0
    expired: bool = False
    told: frozenset[int] = frozenset()
    has_blocks: bool = False

    @property
    def last_move(self) -> str:
        """Whether the plan was promoted, and rolled back: the kind of its last publication."""
        return self.state.moves[-1].kind if self.state.moves else ""


class Actor(NamedTuple):
    """A process in a world, about to take its next step."""

    world: World
    number: int
    rules: Rules

    @property
    def process(self) -> Process:
        return self.world.processes[self.number]

    @property
    def memory(self) -> Memory:
        return self.world.processes[self.number].memory

    @property
    def operation(self) -> Operation:
        return self.world.processes[self.number].program[0]

    @property
    def id(self) -> int:
        """Who holds what this process takes: another one after each start, and in each command."""
        process = self.process
        return self.number * 20 + process.life * 4 + len(process.program)

    @property
    def folder(self) -> int:
        """By whom its files are: those of a publication that a fill finishes are none of the fill's."""
        return -self.id if self.memory.finishing else self.id

    @property
    def table(self) -> Table:
        return self.world.tables[self.memory.table]

    @property
    def token(self) -> int:
        return self.memory.tokens[self.memory.table]

    def goes(self, at: str, **memory: Any) -> Actor:  # noqa: ANN401 - fields of the memory
        """Let the process go on at a step, and remember."""
        process = self.process
        kept = process.memory._replace(**memory) if memory else process.memory
        return self._with(process._replace(at=at, memory=kept))

    def ends(self) -> Actor:
        """Let the process end its command, and begin the next one."""
        process = self.process
        rest = process.program[1:]
        at = f"{rest[0].kind}.begin" if rest else DONE
        return self._with(
            Process(rest or process.program, at, process.life, memory=fresh(self.world))
        )

    def writes(self, **changes: Any) -> Actor:  # noqa: ANN401 - fields of the table
        """Change the table that the process is at."""
        at, tables = self.memory.table, self.world.tables
        changed = tables[at]._replace(**changes)
        return self.sees(tables=(*tables[:at], changed, *tables[at + 1 :]))

    def says(self, **changes: Any) -> Actor:  # noqa: ANN401 - fields of the state
        """Change the state."""
        return self.sees(state=self.world.state._replace(**changes))

    def sees(self, **changes: Any) -> Actor:  # noqa: ANN401 - fields of the world
        """Change the world."""
        return self._replace(world=self.world._replace(**changes))

    def _with(self, process: Process) -> Actor:
        all_ = self.world.processes
        return self.sees(processes=(*all_[: self.number], process, *all_[self.number + 1 :]))


def fresh(world: World) -> Memory:
    """Give the memory of a process that has read nothing."""
    none = (0,) * len(world.tables)
    return Memory(tokens=none, made=tuple(-1 for _ in none))


def is_heard(world: World, holder: int) -> bool:
    """Whether a holder is alive, and was heard of within the lease."""
    index = holder // 20
    process = world.processes[index]
    if process.at in OVER or process.silent:
        return False
    return holder == index * 20 + process.life * 4 + len(process.program)
