"""What several steps do: entries of the log, records, locks, and how a step fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets_tests.protocol.world import (
    COMPACTED,
    CREATED,
    FENCED,
    RESTORED,
    Actor,
    Record,
    fresh,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from backfill_assets_tests.protocol.world import Entry, File, Table

Outcome = tuple[str, Actor]
"""What a step did, as the rest of a sentence that the process begins, and what came of it."""

PUBLICATIONS = ("promote", "rollback")


def newest_token(table: Table) -> int:
    """Read the largest token of a log (`delta_log.last_token`)."""
    return max((entry.token for entry in table.log), default=0)


def opened(actor: Actor) -> Actor | None:
    """Read how the log ends, and whether one may write; None for no (`log_entry._opened`)."""
    if actor.rules.tokens_checked and newest_token(actor.table) > actor.token:
        return None
    return actor.goes(actor.process.at, before=actor.table.head)


def entered(actor: Actor, entry: Entry) -> Actor | None:
    """Write an entry on the version that was read; None where another came first (`log_entry.write_entry`)."""
    table = actor.table
    if actor.rules.compare_and_set and table.head != actor.memory.before:
        return None
    return actor.writes(log=(*table.log, entry))


def holding(table: Table, files: Mapping[int, File | None]) -> tuple[File | None, ...]:
    """Give what the cells hold once some of them hold other files."""
    return tuple(files.get(cell, held) for cell, held in enumerate(table.log[-1].holds))


def parting(table: Table, version: int, cells: Collection[int]) -> tuple[File, ...]:
    """Name the files of a version that hold rows of some cells, and of others, too."""
    held = dict.fromkeys(table.log[version].holds) if table.log else {}
    return tuple(
        file
        for file in held
        if file is not None and file.others
        if 0 < sum(rows.cell in cells for rows in file.rows) < len(file.rows)
    )


def rests(actor: Actor, sources: Iterable[File], cells: Collection[int]) -> dict[int, File | None]:
    """Say which files stand for what some files hold of other cells (`commit.WrittenCells._rest`)."""
    found: dict[int, File | None] = {}
    for file in sources:
        others = {rows.cell for rows in file.rows} - set(cells)
        left = file.parted(others, actor.folder) if actor.rules.rests_kept else None
        found.update(dict.fromkeys(others, left))
    return found


def rest_written(actor: Actor, cells: Collection[int], at: str) -> Actor | None:
    """Write what is left of files that will go, which no log names; None where one is not there."""
    table, memory = actor.table, actor.memory
    sources = parting(table, table.head, cells)
    fresh_, known = set(sources) - set(memory.sources), set(sources) & set(memory.sources)
    there = {file for file in rests(actor, known, cells).values() if file is not None}
    if not fresh_ <= table.files or (actor.rules.files_checked and not there <= table.files):
        return None
    made = {file for file in rests(actor, fresh_, cells).values() if file is not None}
    return actor.writes(files=table.files | made).goes(at, sources=sources)


def has_lock(actor: Actor) -> bool:
    """Whether the lock is still the process's own (`locks.check_lock`)."""
    return (actor.table.token, actor.table.holder) == (actor.token, actor.id)


def released(actor: Actor) -> Actor:
    """Give the lock back, unless another has taken it over (`locks.release_commit_lock`)."""
    if actor.token and actor.table.token == actor.token:
        return actor.writes(holder=0)
    return actor


def is_ours(entry: Entry) -> bool:
    """Whether an entry is one of ours that holds no batch (`housekeeping.is_ours`)."""
    return entry.kind in (CREATED, FENCED, RESTORED, COMPACTED)


def accounted(actor: Actor, version: int) -> Actor:
    """Know of a commit of ours that holds no batch; where it changes no row, pins at the head follow."""
    table = actor.table
    follows = table.log[version].kind in (FENCED, COMPACTED) and table.pin == table.known
    pin = version if follows and actor.rules.pins_followed else table.pin
    return actor.writes(known=version, pin=pin)


def follows_strangers(actor: Actor, version: int) -> bool:
    """Whether more than our own housekeeping stands before a commit (`table_turn.refuse_foreign_commits`)."""
    table = actor.table
    between = table.log[table.known + 1 : version]
    return actor.rules.strangers_refused and not all(is_ours(entry) for entry in between)


def recorded(actor: Actor, entry: Entry, version: int) -> Actor | None:
    """Record a batch's commit in one transaction; None where that is refused (`recording.record`)."""
    table = actor.table
    if any((record.since, record.batch) == (version, entry.batch) for record in table.records):
        return actor
    if not has_lock(actor) or version <= table.known:
        return None
    opened_ = [
        Record(cell, version, 0, entry.batch, entry.built_at, entry.gap) for cell in entry.names
    ]
    made = actor.writes(
        records=replaced(table.records, entry.names, opened_, version),
        known=version,
        pin=max(table.pin, version),
    )
    claims = made.world.state.claims
    return made.says(claims=frozenset(claim for claim in claims if claim.batch != entry.batch))


def replaced(
    records: tuple[Record, ...], cells: Iterable[int], opened_: Iterable[Record], version: int
) -> tuple[Record, ...]:
    """Close the current records of cells and open others (`ready.replace_records`)."""
    going = set(cells)
    closed = (
        record._replace(until=version) if record.cell in going and not record.until else record
        for record in records
    )
    return tuple(sorted((*closed, *opened_)))


def current(table: Table, cell: int) -> Record | None:
    """Read the record of a cell that nothing has replaced yet."""
    return next(
        (record for record in table.records if record.cell == cell and not record.until), None
    )


def record_at(table: Table, cell: int, version: int) -> Record | None:
    """Read the record of a cell that is valid at a delta_version (`ready.valid_at`)."""
    for record in table.records:
        if (
            record.cell == cell
            and record.since <= version
            and (not record.until or record.until > version)
        ):
            return record
    return None


def publishes(actor: Actor) -> bool:
    """Whether a process is at a publication, its own or another's."""
    return actor.memory.finishing or actor.operation.kind in PUBLICATIONS


def fails(actor: Actor) -> Actor:
    """Let an error end what the process does, on the way that the code takes."""
    if publishes(actor):
        intent = actor.world.state.intent
        undecided = intent is not None and not intent.noted and intent.holder == actor.id
        return actor.goes("publish.withdraw") if undecided else ended_publication(actor)
    if actor.operation.kind == "fill":
        return actor.goes("fill.let_go")
    return actor.goes("join.let_go" if actor.memory.sources else "turn.let_go")


def ended_publication(actor: Actor) -> Actor:
    """Let a publication end with an error: its process ends, or what it was finished for fails."""
    if not actor.memory.finishing or actor.operation.kind != "fill":
        return actor.ends()
    return back_to_own(actor, "fill.let_go")


def back_to_own(actor: Actor, at: str) -> Actor:
    """Let a process that was at another's publication go on with its own work."""
    clean = fresh(actor.world)
    kept = actor.memory
    own = clean._replace(
        table=actor.operation.table,
        built_at=kept.built_at,
        good=kept.good,
        offered=kept.offered,
        sources=kept.sources,
    )
    return actor.goes(at, **own._asdict())
