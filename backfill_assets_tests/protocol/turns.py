"""A turn at a table: its commit lock is taken, and what the state does not know is accounted for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets_tests.protocol.entries import (
    accounted,
    entered,
    fails,
    has_lock,
    is_ours,
    newest_token,
    opened,
    publishes,
    recorded,
    released,
)
from backfill_assets_tests.protocol.world import BATCH, FENCED, RESTORED, Entry, is_heard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets_tests.protocol.entries import Outcome
    from backfill_assets_tests.protocol.world import Actor


def read_token(actor: Actor) -> Iterator[Outcome]:
    """`table_turn.take`: the largest token that the log shows is read before the lock is taken."""
    above = newest_token(actor.table)
    yield f"reads token {above} in the log", actor.goes("turn.take", above=above)


def take(actor: Actor) -> Iterator[Outcome]:
    """`Locks.take_commit_lock`: one transaction, unless an intent or a live holder is in the way."""
    world, table, intent = actor.world, actor.table, actor.world.state.intent
    if actor.rules.tables_closed and intent is not None and intent.holder != actor.id:
        if is_heard(world, intent.holder):
            return
        yield from _pending(actor)
        return
    taken = table.holder not in (0, actor.id)
    if taken and actor.rules.lock_exclusive and is_heard(world, table.holder):
        return
    token = max(actor.memory.above, table.token) + 1
    tokens = list(actor.memory.tokens)
    tokens[actor.memory.table] = token
    fenced = table.holder != 0 and actor.rules.takeover_fenced and table.head >= 0
    after = actor.writes(token=token, holder=actor.id).goes(
        actor.process.at, above=0, tokens=tuple(tokens)
    )
    how = "takes over" if table.holder else "takes"
    yield (
        f"{how} the lock of table {actor.memory.table} with token {token}",
        after.goes("turn.fence") if fenced else _has_taken(after),
    )


def _pending(actor: Actor) -> Iterator[Outcome]:
    """`commit_turn._taken` finishes what died; a collection and a publication end with an error."""
    if publishes(actor) or actor.operation.kind == "collect":
        yield "meets an unfinished publication, and gives up", fails(actor)
    else:
        resumed = actor.goes("finish.begin", resumes="turn.token", above=0)
        yield "meets a publication whose holder is silent", resumed


def fence(actor: Actor) -> Iterator[Outcome]:
    """`housekeeping.fence`, its first half: the log's end and token are read."""
    after = opened(actor)
    if after is None:
        yield "may not fence the table: its token is passed", fails(actor)
    else:
        yield "reads how the log ends, to fence it", after.goes("turn.fence_write")


def fence_write(actor: Actor) -> Iterator[Outcome]:
    """`housekeeping.fence`, its second half: an entry that holds nothing."""
    after = entered(actor, Entry(FENCED, actor.token, 0, actor.table.log[-1].holds))
    if after is None:
        yield "can't fence the table: another entry came first", fails(actor)
    else:
        yield f"fences the table with token {actor.token}", _has_taken(after.goes("", before=-1))


def _has_taken(actor: Actor) -> Actor:
    """Go on after a lock: a publication takes all of them before it looks (`publishing.publish`)."""
    if not publishes(actor):
        return actor.goes("turn.look")
    if actor.memory.table + 1 < len(actor.world.tables):
        return actor.goes("turn.token", table=actor.memory.table + 1)
    intent = actor.world.state.intent
    if intent is not None and intent.noted:
        first = "find" if actor.rules.copies_before_pointers else "publish"
        return actor.goes(f"publish.{first}", table=0)
    return actor.goes("turn.look", table=0)


def look(actor: Actor) -> Iterator[Outcome]:
    """`table_turn.reconcile`: the commits that the state does not know are read from the log."""
    table = actor.table
    if actor.rules.birth_fenced and table.head == 0 and table.log[0].token != actor.token:
        yield "finds a table that another has only just created", actor.goes("turn.fence")
        return
    seen = actor.writes(looked=max(table.looked, actor.token)) if table.log else actor
    after = seen.goes(
        "turn.settle", since=table.known, before=table.known + 1, until=table.head, adopted=False
    )
    if not actor.rules.reconciled or table.known == table.head:
        after = _has_looked(after)
    yield f"finds the log at {table.head}, of which {table.known} is known", after


def settle(actor: Actor) -> Iterator[Outcome]:
    """`table_turn.reconcile`: accounts for one commit, in a transaction of its own."""
    memory, table = actor.memory, actor.table
    number = memory.before
    entry, gone = table.log[number], _taken_back(actor)
    after = actor.goes(actor.process.at, before=number + 1)
    if number in gone and actor.rules.restores_counted_whole:
        yield f"leaves out commit {number}, which was taken back", _settled(after)
    elif number in gone or _is_kept(entry, memory.since):
        yield from _advanced(after, number)
    elif entry.kind == BATCH:
        adopted = recorded(after, entry, number)
        if adopted is None:
            yield f"can't adopt commit {number}: the lock is lost", fails(actor)
        else:
            done = _settled(adopted.goes(actor.process.at, adopted=True))
            yield f"adopts commit {number} of batch {entry.batch}", done
    elif table.known < 0:
        yield "finds a table that is not ours", fails(actor)
    else:
        yield f"finds that commit {number} does not count", actor.goes("turn.back")


def _advanced(actor: Actor, number: int) -> Iterator[Outcome]:
    """`locks.advance_head`, `state/locks.follow_head`: one transaction."""
    if has_lock(actor):
        yield f"accounts for commit {number}", _settled(accounted(actor, number))
    else:
        yield f"can't account for commit {number}: the lock is lost", fails(actor)


def _settled(actor: Actor) -> Actor:
    return actor if actor.memory.before <= actor.memory.until else _has_looked(actor)


def _taken_back(actor: Actor) -> set[int]:
    """`table_turn._taken_back`: the commits that a later one has taken back already."""
    memory, gone = actor.memory, set[int]()
    for number in range(memory.until, memory.since, -1):
        entry = actor.table.log[number]
        if entry.kind == RESTORED and number not in gone:
            gone.update(range(entry.back + 1, number))
    return gone


def _is_kept(entry: Entry, known: int) -> bool:
    """`table_turn._is_kept`: ours, and takes nothing away that the state knows."""
    return is_ours(entry) and (entry.kind != RESTORED or entry.back >= known)


def back(actor: Actor) -> Iterator[Outcome]:
    """`table_turn.take_back`, `housekeeping.restore`: the log's end and token are read."""
    after = opened(actor)
    if after is None:
        yield "may not restore the table: its token is passed", fails(actor)
    else:
        yield (
            "reads how the log ends, to restore it",
            after.goes("turn.back_write", back=actor.table.known),
        )


def back_write(actor: Actor) -> Iterator[Outcome]:
    """`housekeeping.restore`: an entry that names what the table held at the known head."""
    to, table = actor.memory.back, actor.table
    after = entered(actor, Entry(RESTORED, actor.token, 0, table.log[to].holds, back=to))
    if after is None:
        yield "can't restore the table: another entry came first", fails(actor)
    else:
        yield f"restores the table to {to}", after.goes("turn.back_known")


def back_known(actor: Actor) -> Iterator[Outcome]:
    """`table_turn.take_back`: its last line accounts for the restore."""
    restored = actor.memory.before + 1
    if not has_lock(actor):
        yield "can't account for the restore: the lock is lost", fails(actor)
    else:
        after = actor.writes(known=restored).goes("", back=-1)
        yield f"accounts for the restore as commit {restored}", _has_looked(after)


def let_go(actor: Actor) -> Iterator[Outcome]:
    """`table_turn.reconciled`: an error gives the lock back and ends the command."""
    yield "releases the lock, if it has it still", released(actor).ends()


def _has_looked(actor: Actor) -> Actor:
    """Go on once all that the log holds is accounted for."""
    clean = actor.goes(actor.process.at, since=-1, before=-1)
    memory = clean.memory
    if not publishes(clean):
        collects = "join.files" if memory.sources else "collect.list"
        after = {"fill": "fill.claims", "collect": collects, "settle": "settle.let_go"}
        return clean.goes(after[clean.operation.kind])
    last = len(clean.world.tables) - 1
    if memory.made == _GIVEN_UP[: last + 1]:
        following = "publish.give_up" if memory.table < last else "publish.withdraw"
        return clean.goes(following, table=min(memory.table + 1, last))
    if memory.table < last:
        return clean.goes("turn.look", table=memory.table + 1)
    return clean.goes("publish.prepare", table=0, until=-1, adopted=False)


_GIVEN_UP = (-2, -2, -2)
"""What the copies of a publication are that is given up; see `publishing._give_up`."""

STEPS = {
    "turn.token": read_token,
    "turn.take": take,
    "turn.fence": fence,
    "turn.fence_write": fence_write,
    "turn.look": look,
    "turn.settle": settle,
    "turn.back": back,
    "turn.back_write": back_write,
    "turn.back_known": back_known,
    "turn.let_go": let_go,
}
