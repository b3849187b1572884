"""What must hold in every state, between two states, and when everything has come to rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets_tests.protocol.entries import current, record_at
from backfill_assets_tests.protocol.filling import PLANNED
from backfill_assets_tests.protocol.publishing import SEEN
from backfill_assets_tests.protocol.world import BATCH, COPY, DONE, FOREIGN, PLAN, RESTORED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets_tests.protocol.world import File, Table, World

FIRST = 80
"""The batch that had filled the tables when the world began."""

READER = "a reader finds whole, audited cells, each as it is recorded"
MIXTURE = "a reader finds all models as before a publication, or all as after it"
FILES = "files that the head, a pin or a promised way back names are there"
ZOMBIE = "nothing lands with an older token once a new holder has seen how the log ends"
TOKENS = "the token grows with each holder"
PINS = "a log is never rewritten, and pins only go up"
ONCE = "a batch is in a log at most once, and a publication's copy once unless it was taken back"
GAPS = "a gap fill leaves alone what is ready"
NEWER = "a cell is never published with older inputs"
TOLD = "what was told to be committed is recorded"
REST = "at rest, state and log agree, and nothing is open"

Violation = str | None
"""Which of these does not hold, followed by where; None for none."""


def violated(world: World) -> Violation:
    """Say what does not hold in a state."""
    return next(_broken(world), None)


def violated_after(before: World, after: World) -> Violation:
    """Say what does not hold in a state, unless all that is asked about is as it was before."""
    if before is not after and _looked_at(before) == _looked_at(after):
        return None
    return violated(after)


def _looked_at(world: World) -> tuple[int, int, bool, int]:
    return id(world.tables), id(world.state.moves), world.expired, id(world.told)


def _broken(world: World) -> Iterator[str]:
    for number, table in enumerate(world.tables):
        where = f"table {number}"
        if wrong := _misread(table):
            yield f"{READER}: {where}, {wrong}"
        if gone := _gone(world, number, table):
            yield f"{FILES}: {where} lacks that of batch {gone.batch}, cell {gone.cell}"
        if _is_twice(table):
            yield f"{ONCE}: {where}"
        yield from _replaced(table, where)
    found = {
        record.batch
        for table in world.tables
        if (record := record_at(table, PLANNED, table.pin)) is not None
    }
    if {FIRST, PLAN} <= found:
        yield f"{MIXTURE}: cell {PLANNED}"
    recorded = {record.batch for table in world.tables for record in table.records}
    if not world.told <= recorded:
        yield f"{TOLD}: batch {min(world.told - recorded)}"


def _misread(table: Table) -> str:
    """Say what is wrong where the pointer stands."""
    if table.pin < 0:
        return ""
    if table.pin > table.head:
        return f"the pin {table.pin} is beyond the log"
    holds = table.log[table.pin].holds
    held = enumerate(holds)
    return next(
        (wrong for cell, file in held if (wrong := _wrong_in(table, cell, file, holds))), ""
    )


def _wrong_in(table: Table, cell: int, file: File | None, holds: tuple[File | None, ...]) -> str:
    """Say what is wrong with a cell that readers find."""
    record = record_at(table, cell, table.pin)
    rows = file and file.of(cell)
    held, said = rows and rows.batch, record and record.batch
    if held != said:
        return f"cell {cell} holds rows of batch {held}, and is recorded with those of {said}"
    if rows is not None and not rows.good:
        return f"cell {cell} holds rows that fail their audit"
    if file is not None and file not in table.files:
        return f"the file of cell {cell} is gone"
    if any(
        held_file is not None and held_file != file and held_file.of(cell) for held_file in holds
    ):
        return f"rows of cell {cell} are in two files"
    return ""


def _gone(world: World, number: int, table: Table) -> File | None:
    """Find a file that must be there, and is not."""
    if not table.log:
        return None
    needed = [table.head]
    if 0 <= table.pin <= table.head:
        needed.append(table.pin)
    if world.last_move == "promote" and not world.expired:
        needed.append(world.state.moves[-1].old_pins[number])
    for version in needed:
        for file in table.log[version].holds:
            if file is not None and file not in table.files:
                return file
    return None


def _is_twice(table: Table) -> bool:
    seen: dict[tuple[int, int], int] = {}
    for number, entry in enumerate(table.log):
        if entry.kind not in (BATCH, COPY):
            continue
        what = (entry.batch, entry.built_at)
        first = seen.get(what)
        if first is not None and not _is_taken_back(table, first, number):
            return True
        seen[what] = number
    return False


def _is_taken_back(table: Table, first: int, second: int) -> bool:
    between = table.log[first + 1 : second]
    return any(entry.kind == RESTORED and entry.back < first for entry in between)


def _replaced(table: Table, where: str) -> Iterator[str]:
    """Look at each record that another one has replaced."""
    for new in table.records:
        for old in table.records:
            if (old.cell, old.until) != (new.cell, new.since):
                continue
            what = f"{where}, cell {new.cell}, batch {new.batch} after {old.batch}"
            if new.gap:
                yield f"{GAPS}: {what}"
            # The plan's rows have read what there was when it was made, whenever they are published.
            if (SEEN if new.batch == PLAN else new.built_at) < old.built_at:
                yield f"{NEWER}: {what}"


def broken_between(before: World, after: World) -> Violation:
    """Say what a step has done that none may do."""
    for number, (old, new) in enumerate(zip(before.tables, after.tables, strict=True)):
        if old is new:
            continue
        if new.token < old.token or (new.holder not in (0, old.holder) and new.token == old.token):
            return f"{TOKENS}: table {number}"
        if new.pin < old.pin or new.log[: len(old.log)] != old.log:
            return f"{PINS}: table {number}"
        for entry in new.log[len(old.log) :]:
            if entry.kind != FOREIGN and entry.token < old.looked:
                return f"{ZOMBIE}: table {number}, token {entry.token} after {old.looked}"
    return None


def unsettled(world: World) -> Violation:
    """Say what is wrong once nobody is at work and what died is accounted for."""
    if world.state.intent is not None:
        return f"{REST}: a publication stays open"
    for claim in world.state.claims:
        if _has_ended(world, claim.batch):
            return f"{REST}: batch {claim.batch} has ended, and keeps its claim"
    for number, table in enumerate(world.tables):
        if table.holder:
            return f"{REST}: the lock of table {number} is still held"
        if wrong := _differing(table):
            return f"{REST}: table {number}, {wrong}"
    return violated(world)


def _has_ended(world: World, batch: int) -> bool:
    """Whether a batch has come to its end by itself: one that died keeps its claim until it lapses."""
    process = world.processes[batch // 20]
    life, left = divmod(batch % 20, 4)
    return process.life == life and (process.at == DONE or len(process.program) < left)


def _differing(table: Table) -> str:
    """Say where the state is not what the log says."""
    if table.known != table.head:
        return f"the log ends at {table.head}, and {table.known} is known"
    for cell, file in enumerate(table.log[-1].holds if table.log else ()):
        record, rows = current(table, cell), file and file.of(cell)
        if (record and record.batch) != (rows and rows.batch):
            return f"cell {cell} is not recorded as the log has it"
    return ""
