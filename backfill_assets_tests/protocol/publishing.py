"""A publication: `publishing.publish`, and `finish_publication` of what another began.

The plan has built cell 0 of every table in its workspace. A promotion copies it there and moves all
pins; a rollback names again what all cells held at the old pins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets_tests.protocol.entries import (
    back_to_own,
    current,
    ended_publication,
    entered,
    follows_strangers,
    has_lock,
    holding,
    opened,
    parting,
    record_at,
    replaced,
    rest_written,
    rests,
)
from backfill_assets_tests.protocol.filling import PLANNED
from backfill_assets_tests.protocol.world import (
    COPY,
    PLAN,
    Entry,
    File,
    Intent,
    Move,
    Record,
    fresh,
    is_heard,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets_tests.protocol.entries import Outcome
    from backfill_assets_tests.protocol.world import Actor, Table, World

SEEN = 1
"""The state's counter when the plan was made."""


def begin(actor: Actor) -> Iterator[Outcome]:
    """`plan_verbs.promote_plan`, `plan_verbs.rollback_plan`: what died is finished, then it is looked."""
    world, intent = actor.world, actor.world.state.intent
    if intent is not None:
        if is_heard(world, intent.holder):
            yield "finds another at work on the plan, and gives up", actor.ends()
        else:
            resumed = actor.goes("finish.begin", resumes=f"{actor.operation.kind}.begin")
            yield "finds a publication whose holder is silent", resumed
        return
    if not _is_open(actor):
        yield "finds nothing to publish", actor.ends()
    else:
        yield "finds that the way is open", actor.goes("publish.intend")


def _is_open(actor: Actor) -> bool:
    world = actor.world
    if actor.operation.kind == "promote":
        return not world.last_move
    return world.last_move == "promote" and not world.expired


def intend(actor: Actor) -> Iterator[Outcome]:
    """`promotions.begin`: one transaction writes the intent."""
    world, state, kind = actor.world, actor.world.state, actor.operation.kind
    if state.intent is None:
        number = state.counter + 1
        made = actor.says(counter=number, intent=Intent(number, kind, actor.id, noted=False))
        yield f"writes the intent to {kind}", made.goes("turn.token", table=0)
    elif is_heard(world, state.intent.holder):
        yield "finds another at work on the plan, and gives up", actor.ends()
    else:
        resumed = actor.goes("finish.begin", resumes="publish.intend")
        yield "finds a publication whose holder is silent", resumed


def finish(actor: Actor) -> Iterator[Outcome]:
    """`publishing.finish_publication`: takes over the intent of a silent holder."""
    world, intent = actor.world, actor.world.state.intent
    if intent is None:
        yield "finds it finished by another", _resumed(actor)
    elif is_heard(world, intent.holder):
        yield "finds another at it, and gives up", ended_publication(actor.goes("", finishing=True))
    else:
        taken = actor.says(intent=intent._replace(holder=actor.id))
        first = "turn.token" if intent.noted else "publish.withdraw"
        at = taken.goes(first, table=0, finishing=True)
        yield f"takes over the intent to {intent.kind}", at


def _resumed(actor: Actor) -> Actor:
    at = actor.memory.resumes
    if actor.operation.kind == "fill":
        return back_to_own(actor, at)
    return actor.goes(at, **fresh(actor.world)._asdict())


def prepare(actor: Actor) -> Iterator[Outcome]:
    """`promotion._prepared`, `going_back._prepared`: under the locks it is looked again."""
    world, rules = actor.world, actor.rules
    if actor.operation.kind == "promote":
        stale = rules.stale_refused and any(map(_is_built_again, world.tables))
        refused = stale or bool(world.last_move)
    else:
        late = rules.promise_checked and world.expired
        refused = late or world.last_move != "promote"
    if refused:
        yield "finds that the world has moved", actor.goes("publish.withdraw")
    else:
        yield "decides what moves", actor.goes("publish.note")


def _is_built_again(table: Table) -> bool:
    record = current(table, PLANNED)
    return record is not None and record.built_at > SEEN


def note(actor: Actor) -> Iterator[Outcome]:
    """`promotions.note`: one transaction, by the holder of the intent."""
    intent = actor.world.state.intent
    if intent is None or intent.holder != actor.id:
        yield "finds its intent taken over", ended_publication(actor)
    else:
        first = "find" if actor.rules.copies_before_pointers else "publish"
        made = actor.says(intent=intent._replace(noted=True))
        yield "notes what it is about to do", made.goes(f"publish.{first}", table=0)


def find(actor: Actor) -> Iterator[Outcome]:
    """`rewriting.rewritten`: a copy that is in the log is not made again."""
    intent, table = actor.world.state.intent, actor.table
    if intent is None:
        # What to copy is in the process's memory there; here it is read from the intent.
        yield "finds its intent closed", ended_publication(actor)
        return
    found = [
        number
        for number in range(table.known + 1, len(table.log))
        if table.log[number].kind == COPY and table.log[number].built_at == intent.number
    ]
    if found and actor.rules.copies_found:
        yield from _made(actor, found[0], "finds its copy in the log")
    elif not _touched(actor):
        yield "has nothing to copy here", _next(actor, table.pin)
    elif intent.kind == "promote" or _copies(actor):
        yield "has to copy", actor.goes("publish.copy")
    else:
        yield "has to name old files again", actor.goes("publish.files")


def _touched(actor: Actor) -> bool:
    """Whether a rollback changes the table (`back_steps._brought_back`)."""
    intent = actor.world.state.intent
    if intent is None or intent.kind == "promote":
        return True
    return any(_is_another(actor.world, actor.memory.table, cell) for cell in _cells(actor))


def _is_another(world: World, at: int, cell: int) -> bool:
    before, now = _before(world, at, cell), record_at(world.tables[at], cell, world.tables[at].pin)
    return (before and before.batch) != (now and now.batch)


def _before(world: World, at: int, cell: int) -> Record | None:
    return record_at(world.tables[at], cell, world.state.moves[-1].old_pins[at])


def _cells(actor: Actor) -> range:
    return range(len(actor.table.log[-1].holds))


def copy(actor: Actor) -> Iterator[Outcome]:
    """`cell_files.copy_files`: files that no log names; a disk may be full."""
    sources = {file for file in _old(actor).values() if file is not None}
    if not sources <= actor.table.files:
        yield "finds that files are gone", _gives_up(actor)
        return
    made = actor.writes(files=actor.table.files | _copies(actor))
    yield f"copies what table {actor.memory.table} gets", made.goes("publish.files")
    if actor.operation.bad and not actor.memory.finishing:
        yield "can't copy: the disk is full", _gives_up(actor)


def check_files(actor: Actor) -> Iterator[Outcome]:
    """`log_entry.refuse_gone` of copies; `cell_files.described` of old files."""
    named = _wanted(actor)
    table, new = actor.table, _copies(actor)
    if actor.rules.files_checked and not {file for file in named.values() if file} <= table.files:
        yield "finds that files are gone", _gives_up(actor)
    elif actor.rules.old_files_refused and new & table.old:
        yield "finds that its copies are older than the grace", _gives_up(actor)
    else:
        yield "finds the files there", actor.goes("publish.open")


def _wanted(actor: Actor) -> dict[int, File | None]:
    """Say which cells get which files."""
    intent = actor.world.state.intent
    if intent is None or intent.kind == "promote":
        return {PLANNED: File(PLAN, PLANNED, good=True, folder=actor.folder)}
    old = _old(actor)
    return {cell: file and file.parted(old, actor.folder) for cell, file in old.items()}


def _old(actor: Actor) -> dict[int, File | None]:
    """Say which cells go back to which old files, whatever else these hold."""
    world, at = actor.world, actor.memory.table
    intent = world.state.intent
    if intent is None or intent.kind == "promote":
        return {}
    then = actor.table.log[world.state.moves[-1].old_pins[at]].holds
    return {cell: then[cell] for cell in _cells(actor) if _is_another(world, at, cell)}


def _copies(actor: Actor) -> set[File]:
    """Name the files that are written for what the cells get."""
    return {file for file in _wanted(actor).values() if file and file.folder == actor.folder}


def open_entry(actor: Actor) -> Iterator[Outcome]:
    """`log_entry._opened`: the log's end and token are read."""
    after = opened(actor)
    if after is None:
        yield "may not commit: its token is passed", _gives_up(actor)
    else:
        shared = parting(actor.table, actor.table.head, [*_wanted(actor)])
        at = "publish.rest" if shared else "publish.commit"
        yield f"reads the log's end, {actor.table.head}", after.goes(at, sources=())


def rest(actor: Actor) -> Iterator[Outcome]:
    """`log_entry.set_cells`: what other cells have in files that go is written, under the lock."""
    after = rest_written(actor, [*_wanted(actor)], "publish.commit")
    if after is None:
        yield "finds that files of its block are gone", _gives_up(actor)
    else:
        yield "writes what other cells have in the files that go", after


def commit(actor: Actor) -> Iterator[Outcome]:
    """`copies.copy_cells`, `restore_cells`: one entry that names its publication."""
    intent = actor.world.state.intent
    if intent is None:
        yield "finds its intent closed", ended_publication(actor)
        return
    wanted = _wanted(actor)
    holds = holding(actor.table, rests(actor, actor.memory.sources, [*wanted]) | wanted)
    entry = Entry(
        COPY,
        actor.token,
        PLAN,
        holds,
        built_at=intent.number,
        names=tuple(wanted),
    )
    after = entered(actor, entry)
    if after is None:
        yield "can't commit: another entry came first", _gives_up(actor)
    else:
        at = after.table.head
        yield from _made(after, at, f"commits what table {actor.memory.table} gets as {at}")


def _made(actor: Actor, version: int, said: str) -> Iterator[Outcome]:
    """Go on from a copy that is in the log, unless a stranger's commit stands before it."""
    if follows_strangers(actor, version):
        yield f"{said}, after a stranger's commit", _gives_up(actor)
    else:
        yield said, _next(actor, version)


def _next(actor: Actor, version: int) -> Actor:
    memory = actor.memory
    made = (*memory.made[: memory.table], version, *memory.made[memory.table + 1 :])
    if memory.table + 1 < len(actor.world.tables):
        return actor.goes("publish.find", table=memory.table + 1, made=made, before=-1, sources=())
    at = "publish" if actor.rules.copies_before_pointers else "close"
    return actor.goes(f"publish.{at}", table=0, made=made, before=-1, sources=())


def publish(actor: Actor) -> Iterator[Outcome]:
    """`state/publications.publish`: one transaction moves every pointer and closes the intent."""
    intent, tables = actor.world.state.intent, range(len(actor.world.tables))
    held = intent is not None and intent.holder == actor.id
    if actor.rules.intent_checked and not held:
        yield "finds its intent taken over, or closed", ended_publication(actor)
        return
    if not all(has_lock(actor.goes("", table=at)) for at in tables) and actor.rules.intent_checked:
        yield "can't publish: a lock is lost", ended_publication(actor)
        return
    counted = actor.says(counter=actor.world.state.counter + 1)
    at, together = actor.memory.table, actor.rules.pointers_together
    moved = counted
    for table_number in tables if together else [at]:
        moved = _moved(moved.goes(moved.process.at, table=table_number))
    if not together and at + 1 < len(tables):
        yield f"moves the pointer of table {at}", moved.goes("publish.publish", table=at + 1)
    elif not actor.rules.copies_before_pointers:
        yield "moves all pointers before it copies", moved.goes("publish.find", table=0)
    else:
        before = tuple(table.pin for table in actor.world.tables)
        yield "moves all pointers", _closed(moved, before)


def _moved(actor: Actor) -> Actor:
    """Write the records and the pin of one table (`restamping._copied`, `publications._update_tables`)."""
    table, at = actor.table, actor.memory.table
    version = actor.memory.made[at]
    if version < 0:  # the broken order: where it will be
        version = table.head + 1
    if version == table.pin:
        return actor
    intent = actor.world.state.intent
    number = actor.world.state.counter
    if intent is None or intent.kind == "promote":
        opened_ = [Record(PLANNED, version, 0, PLAN, number, gap=False)]
        cells = [PLANNED]
    else:
        cells = [cell for cell in _cells(actor) if _is_another(actor.world, at, cell)]
        earlier = [(cell, _before(actor.world, at, cell)) for cell in cells]
        opened_ = [
            Record(cell, version, 0, record.batch, number, gap=False)
            for cell, record in earlier
            if record
        ]
    records = replaced(table.records, cells, opened_, version)
    return actor.writes(records=records, pin=version, known=max(table.known, version))


def close(actor: Actor) -> Iterator[Outcome]:
    """A broken order: the intent is closed after the copies, and the pointers have moved before."""
    yield "closes its intent", _closed(actor, tuple(table.pin for table in actor.world.tables))


def _closed(actor: Actor, before: tuple[int, ...]) -> Actor:
    """`publications._close`, in the same transaction: the intent is done and the locks are free."""
    state = actor.world.state
    kind = state.intent.kind if state.intent else actor.operation.kind
    moves = (*state.moves, Move(state.counter, kind, before))
    after = _all_released(actor.says(intent=None, moves=moves))
    return _resumed(after) if actor.memory.finishing else after.ends()


def _gives_up(actor: Actor) -> Actor:
    """`publishing._give_up`: what is copied is taken back, and the intent withdrawn."""
    given_up = (-2,) * len(actor.world.tables)
    return actor.goes("publish.give_up", table=0, made=given_up, before=-1)


def give_up(actor: Actor) -> Iterator[Outcome]:
    """`publishing._give_up`: one table after the other."""
    table, last = actor.table, len(actor.world.tables) - 1
    if table.head > table.known:
        yield "has to take its copy back", actor.goes("turn.back")
    elif actor.memory.table < last:
        yield (
            "has nothing to take back",
            actor.goes("publish.give_up", table=actor.memory.table + 1),
        )
    else:
        yield "has nothing to take back", actor.goes("publish.withdraw")


def withdraw(actor: Actor) -> Iterator[Outcome]:
    """`promotions.withdraw`: one transaction closes the intent and gives the locks back."""
    intent = actor.world.state.intent
    if intent is None or intent.holder != actor.id:
        yield "finds its intent taken over", ended_publication(actor)
        return
    after = _all_released(actor.says(intent=None))
    finished = actor.memory.finishing and not _is_given_up(actor)
    yield "withdraws the intent", _resumed(after) if finished else ended_publication(after)


def _is_given_up(actor: Actor) -> bool:
    return actor.memory.made[0] == -2


def _all_released(actor: Actor) -> Actor:
    tables = tuple(
        table._replace(holder=0) if table.holder == actor.id else table
        for table in actor.world.tables
    )
    return actor.sees(tables=tables)


STEPS = {
    "promote.begin": begin,
    "rollback.begin": begin,
    "finish.begin": finish,
    "publish.intend": intend,
    "publish.prepare": prepare,
    "publish.note": note,
    "publish.find": find,
    "publish.copy": copy,
    "publish.files": check_files,
    "publish.open": open_entry,
    "publish.rest": rest,
    "publish.commit": commit,
    "publish.publish": publish,
    "publish.close": close,
    "publish.give_up": give_up,
    "publish.withdraw": withdraw,
}
