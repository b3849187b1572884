"""What deletes, what intrudes, and what sets things right at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets_tests.protocol.entries import released
from backfill_assets_tests.protocol.world import FOREIGN, STRANGER, Entry, File, fresh, is_heard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets_tests.protocol.entries import Outcome
    from backfill_assets_tests.protocol.world import Actor, Table


def begin(actor: Actor) -> Iterator[Outcome]:
    """`collecting._oldest_needed`: read before any lock is taken."""
    keep = tuple(_oldest_needed(actor, at) for at in range(len(actor.world.tables)))
    yield (
        f"finds that versions from {list(keep)} on are needed",
        actor.goes("collect.clock", keep=keep),
    )


def read_clock(actor: Actor) -> Iterator[Outcome]:
    """`collecting._vacuumed`: what is old is told by a clock that is read before the lock is taken."""
    first, table = "turn.token" if actor.rules.collector_locked else "collect.list", actor.table
    after = actor.goes(first, old=table.old, old_head=table.old_head)
    yield f"finds {len(table.old)} files older than the grace", after


def _oldest_needed(actor: Actor, at: int) -> int:
    world, table, rules = actor.world, actor.world.tables[at], actor.rules
    needed = [table.pin if rules.pins_kept else table.head]
    if rules.promises_kept and not world.expired:
        needed += [move.old_pins[at] for move in world.state.moves]
    return min(needed)


def list_files(actor: Actor) -> Iterator[Outcome]:
    """`collection.vacuum`, `vacuum_unborn`: which files go is read from the folder and the log."""
    table, keep = actor.table, actor.memory.keep[actor.memory.table]
    unknown = keep < 0 <= table.head  # of this table the state knows nothing
    going = frozenset[File]() if unknown else _not_needed(actor, table, keep)
    doomed = tuple(sorted(going))
    after = actor.goes("", doomed=doomed, old=frozenset(), until=-1, adopted=False)
    yield f"lists {len(doomed)} files to delete", _following(after)


def _not_needed(actor: Actor, table: Table, keep: int) -> frozenset[File]:
    kept, memory = actor.rules.grace_kept, actor.memory
    first = max(min(keep, memory.old_head if kept else table.head), 0)
    needed = {file for entry in table.log[first:] for file in entry.holds}
    return (memory.old & table.files if kept else table.files) - needed


def delete(actor: Actor) -> Iterator[Outcome]:
    """`table_files.delete_files`: one file after the other."""
    file, *rest = actor.memory.doomed
    after = actor.writes(files=actor.table.files - {file}, old=actor.table.old - {file})
    said = f"deletes the file of batch {file.batch}, cell {file.cell}"
    yield said, _following(after.goes("", doomed=tuple(rest)))


def _following(actor: Actor) -> Actor:
    if actor.memory.doomed:
        return actor.goes("collect.delete")
    return actor.goes("collect.let_go")


def let_go(actor: Actor) -> Iterator[Outcome]:
    """`collecting._alone`: the lock is given back; the next table follows."""
    after, at = released(actor), actor.memory.table
    if at + 1 < len(actor.world.tables):
        more = after.goes("collect.clock", table=at + 1)
        yield "releases the lock", more
    elif actor.world.has_blocks:
        joins = after.goes("join.begin", **fresh(actor.world)._asdict())
        yield "releases the lock", joins
    else:
        yield "releases the lock", after.ends()


def intrude(actor: Actor) -> Iterator[Outcome]:
    """Commit without the lock, as a stranger's job or a person would."""
    table = actor.table
    if not table.log:
        yield "finds no table", actor.ends()
        return
    file = File(STRANGER, 0, good=False, folder=STRANGER)
    entry = Entry(FOREIGN, 0, STRANGER, (file, *table.log[-1].holds[1:]), names=(0,))
    made = actor.writes(log=(*table.log, entry), files=table.files | {file})
    yield f"writes commit {made.table.head} without the lock", made.ends()


def settle(actor: Actor) -> Iterator[Outcome]:
    """`commit_turn.reconcile_table`, once an unfinished publication is finished: a turn without a batch."""
    intent = actor.world.state.intent
    if intent is not None and not is_heard(actor.world, intent.holder):
        resumed = actor.goes("finish.begin", resumes="settle.begin")
        yield "finds a publication whose holder is silent", resumed
    else:
        yield "looks at what is left", actor.goes("turn.token", table=0)


def settled(actor: Actor) -> Iterator[Outcome]:
    """`commit_turn.reconcile_table`: the lock is given back; the next table follows."""
    after, at = released(actor), actor.memory.table
    if at + 1 < len(actor.world.tables):
        more = after.goes("turn.token", table=at + 1, until=-1, adopted=False)
        yield "releases the lock", more
    else:
        yield "releases the lock", after.ends()


STEPS = {
    "collect.begin": begin,
    "collect.clock": read_clock,
    "collect.list": list_files,
    "collect.delete": delete,
    "collect.let_go": let_go,
    "intrude.begin": intrude,
    "settle.begin": settle,
    "settle.let_go": settled,
}
