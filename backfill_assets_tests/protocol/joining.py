"""What `gc` does last: the files that have piled up in a block are joined (`collecting._compacted`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets_tests.protocol.entries import (
    accounted,
    entered,
    fails,
    follows_strangers,
    has_lock,
    opened,
    released,
)
from backfill_assets_tests.protocol.world import COMPACTED, Entry, File, file_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets_tests.protocol.entries import Outcome
    from backfill_assets_tests.protocol.world import Actor


def begin(actor: Actor) -> Iterator[Outcome]:
    """`compaction._piles`: which files there are is read from the log before any lock is taken."""
    held = dict.fromkeys(actor.table.log[-1].holds) if actor.table.log else {}
    pile = tuple(file for file in held if file is not None)
    if len(pile) > 1:
        yield f"finds {len(pile)} files to join", actor.goes("join.write", sources=pile)
    else:
        yield "finds nothing to join", _next(actor)


def write(actor: Actor) -> Iterator[Outcome]:
    """`cell_files.join_files`: a file that no log names, with the rows of the others."""
    table = actor.table
    if not set(actor.memory.sources) <= table.files:
        yield "finds that a file is gone", actor.ends()
    else:
        made = actor.writes(files=table.files | {_joined(actor)})
        yield "writes their rows as one file", made.goes("turn.token")


def _joined(actor: Actor) -> File:
    return file_of((rows for file in actor.memory.sources for rows in file.rows), actor.folder)


def check_files(actor: Actor) -> Iterator[Outcome]:
    """`collecting._compacted`, `log_entry.refuse_gone`: the joined file is there, and young."""
    joined, table, rules = _joined(actor), actor.table, actor.rules
    if rules.old_files_refused and joined in table.old:
        yield "finds that its file is older than the grace", actor.goes("join.let_go")
    elif rules.files_checked and joined not in table.files:
        yield "finds that its file is gone", actor.goes("join.let_go", offered=True)
    else:
        yield "finds its file there", actor.goes("join.open", offered=True, until=-1)


def open_entry(actor: Actor) -> Iterator[Outcome]:
    """`log_entry._opened`: the log's end and token are read."""
    after = opened(actor)
    if after is None:
        yield "may not commit: its token is passed", fails(actor)
    else:
        yield f"reads the log's end, {actor.table.head}", after.goes("join.commit")


def commit(actor: Actor) -> Iterator[Outcome]:
    """`log_entry.exchange_files`: an entry that changes no row, if all of the others are still named."""
    table, sources = actor.table, set(actor.memory.sources)
    lost = sources - {*table.log[actor.memory.before].holds}
    if lost and actor.rules.piles_checked:
        yield "finds that one of the others has gone", actor.goes("join.let_go", before=-1)
        return
    joined = _joined(actor)
    holds = tuple(
        joined if joined.of(cell) else held for cell, held in enumerate(table.log[-1].holds)
    )
    after = entered(actor, Entry(COMPACTED, actor.token, 0, holds))
    if after is None:
        yield "can't commit: another entry came first", fails(actor)
    else:
        at = after.table.head
        yield f"lets it stand for the others as {at}", after.goes("join.record", before=at - 1)


def record(actor: Actor) -> Iterator[Outcome]:
    """`state/locks.follow_head`: one transaction, in which pins at the head follow."""
    version = actor.memory.before + 1
    if follows_strangers(actor, version):
        yield "finds a stranger's commit before its own", fails(actor)
    elif not has_lock(actor):
        yield "can't account for its commit: the lock is lost", fails(actor)
    else:
        done = accounted(actor, version).goes("join.let_go", before=-1)
        yield f"accounts for its commit {version}", done


def let_go(actor: Actor) -> Iterator[Outcome]:
    """`collecting._turn`: the lock is given back."""
    after = released(actor)
    yield (
        "releases the lock, if it has it still",
        (_next(after) if actor.memory.offered else after.goes("join.clean")),
    )


def clean(actor: Actor) -> Iterator[Outcome]:
    """`commit.unwritten_cells`: a file that was never offered is taken away."""
    left = actor.table.files - {_joined(actor)}
    yield "takes its file away", _next(actor.writes(files=left))


def _next(actor: Actor) -> Actor:
    at = actor.memory.table
    if at + 1 < len(actor.world.tables):
        clean_ = {"sources": (), "offered": False, "until": -1, "before": -1, "adopted": False}
        return actor.goes("join.begin", table=at + 1, **clean_)
    return actor.ends()


STEPS = {
    "join.begin": begin,
    "join.write": write,
    "join.files": check_files,
    "join.open": open_entry,
    "join.commit": commit,
    "join.record": record,
    "join.let_go": let_go,
    "join.clean": clean,
}
