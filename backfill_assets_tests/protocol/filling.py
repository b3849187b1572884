"""A fill: `batch_run.run_batch`, one effect after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets_tests.protocol.entries import (
    current,
    entered,
    fails,
    follows_strangers,
    holding,
    opened,
    parting,
    recorded,
    released,
    rest_written,
    rests,
)
from backfill_assets_tests.protocol.world import BATCH, CREATED, Claim, Entry, File, is_heard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets_tests.protocol.entries import Outcome
    from backfill_assets_tests.protocol.world import Actor

PLANNED = 0
"""The cell that the plan rebuilds in every table."""


def begin(actor: Actor) -> Iterator[Outcome]:
    """`state/opening.open_batch`: one transaction claims the cells and pins what is read."""
    operation, state = actor.operation, actor.world.state
    at = actor.goes("", table=operation.table)
    mine, others = set(operation.cells), set[Claim]()
    for held_claim in state.claims:
        if held_claim.table == operation.table and mine & set(held_claim.cells):
            others.add(held_claim)
    if any(is_heard(actor.world, other_claim.batch) for other_claim in others):
        return
    if operation.gap and any(current(at.table, cell) for cell in mine):
        yield "finds its cells ready, and leaves them alone", actor.ends()
        return
    claim, number = Claim(actor.id, operation.table, operation.cells), state.counter + 1
    claims = (state.claims - others) | {claim}
    after = at.says(claims=claims, counter=number).goes("fill.write", built_at=number)
    yield (
        f"claims cells {list(operation.cells)} of table {operation.table} as batch {actor.id}",
        after,
    )


def write(actor: Actor) -> Iterator[Outcome]:
    """`cell_files.write_files`: files that no log names."""
    for good in (True, False) if actor.operation.bad else (True,):
        files = _files(actor, good=good)
        after = actor.writes(files=actor.table.files | files)
        shared = parting(actor.table, actor.table.head, actor.operation.cells)
        at = "fill.prepare" if shared else _written(actor)
        said = "writes its files" if good else "writes files whose rows are wrong"
        yield said, after.goes(at, good=good)


def _written(actor: Actor) -> str:
    return "fill.audit" if actor.rules.audit_before_commit else "turn.token"


def prepare(actor: Actor) -> Iterator[Outcome]:
    """`commit.WrittenCells.prepare`: what other cells have in its cells' files, before the lock."""
    after = rest_written(actor, actor.operation.cells, _written(actor))
    if after is None:
        yield "finds that a file of its cells is gone", fails(actor)
    else:
        yield "writes what other cells have in the files of its own", after


def audit(actor: Actor) -> Iterator[Outcome]:
    """`audited`: reads the files. Rows that fail go no further."""
    if actor.memory.good:
        after = "turn.token" if actor.rules.audit_before_commit else "fill.record"
        yield "audits its files", actor.goes(after)
    else:
        yield "finds that its rows fail their audit", fails(actor)


def check_claims(actor: Actor) -> Iterator[Outcome]:
    """`commit_turn.commit_turn`: `claims.check_claims`."""
    held = any(claim.batch == actor.id for claim in actor.world.state.claims)
    if held or not actor.rules.claims_checked:
        yield "still holds its claims", actor.goes("fill.inputs")
    else:
        yield "finds that its claims are lost", fails(actor)


def check_inputs(actor: Actor) -> Iterator[Outcome]:
    """`overtaking.check_inputs`: nothing that it rewrites was published anew since it was opened."""
    newer = any(move.number > actor.memory.built_at for move in actor.world.state.moves)
    if newer and PLANNED in actor.operation.cells and actor.rules.overtaken_refused:
        yield "finds that a publication has overtaken it", fails(actor)
    else:
        yield "finds its inputs as they were", actor.goes("fill.ready")


def check_ready(actor: Actor) -> Iterator[Outcome]:
    """`state/opening.refuse_done`: a gap fill leaves alone what is ready by now."""
    rules, adopted = actor.rules, actor.memory.adopted
    asked = rules.adopted_refused if adopted else rules.ready_refused
    cells = actor.operation.cells
    if actor.operation.gap and asked and any(current(actor.table, cell) for cell in cells):
        yield "finds its cells ready by now", fails(actor)
    elif rules.commit_before_record:
        yield "goes to commit", actor.goes("fill.create", adopted=False)
    else:
        yield "goes to record before it commits", actor.goes("fill.record_early", adopted=False)


def create(actor: Actor) -> Iterator[Outcome]:
    """`housekeeping.create_table`: the first entry, unless there is one."""
    table = actor.table
    if not table.log:
        first = Entry(CREATED, actor.token, 0, (None,) * _CELLS)
        made = actor.writes(log=(first,), looked=max(table.looked, actor.token))
        yield "creates the table", made.goes("fill.files")
    elif actor.memory.until < 0 and actor.rules.birth_fenced:
        yield "finds a table that was not there before, and fences it", actor.goes("turn.fence")
    else:
        seen = actor.writes(looked=max(table.looked, actor.token))
        yield "finds the table there", seen.goes("fill.files")


_CELLS = 2


def check_files(actor: Actor) -> Iterator[Outcome]:
    """`log_entry.refuse_gone`, once the files are offered: they are there as they were written."""
    mine, table = _files(actor, good=actor.memory.good), actor.table
    written = {file for file in table.files if file.folder == actor.folder}
    offered = actor.goes("fill.open", offered=True, until=-1)
    if actor.rules.files_checked and not mine <= table.files:
        yield "finds that its files are gone", fails(offered)
    elif actor.rules.old_files_refused and written & table.old:
        yield "finds that its files are older than the grace", fails(offered)
    else:
        yield "finds its files there", offered


def open_entry(actor: Actor) -> Iterator[Outcome]:
    """`log_entry._opened`: the log's end and token are read."""
    after = opened(actor)
    if after is None:
        yield "may not commit: its token is passed", fails(actor)
    else:
        shared = parting(actor.table, actor.table.head, actor.operation.cells)
        after = after.goes("fill.commit")
        if actor.rules.rests_under_lock:
            after = after.goes("fill.rest") if shared else after.goes("fill.commit", sources=())
        yield f"reads the log's end, {actor.table.head}", after


def rest(actor: Actor) -> Iterator[Outcome]:
    """`log_entry.set_cells`: what has come to the block since is written; the rest is there."""
    after = rest_written(actor, actor.operation.cells, "fill.commit")
    if after is None:
        yield "finds that files of its block are gone", fails(actor)
    else:
        yield "has what its block holds of other cells", after


def commit(actor: Actor) -> Iterator[Outcome]:
    """`log_entry.set_cells`: the entry, on the very version that was read."""
    after = entered(actor, _entry(actor))
    if after is None:
        yield "can't commit: another entry came first", fails(actor)
        return
    at = "fill.record" if actor.rules.audit_before_commit else "fill.audit"
    if not actor.rules.commit_before_record:
        at = "fill.done"
    if at == "fill.record" and _unused(after):
        at = "fill.tidy"
    # Where nothing is compared an entry may land further on.
    landed = after.goes(at, before=after.table.head - 1)
    yield f"commits its cells as {after.table.head}", landed


def _unused(actor: Actor) -> frozenset[File]:
    named = {*actor.table.log[-1].holds}
    return frozenset(
        file for file in actor.table.files if file.folder == actor.folder and file not in named
    )


def tidy(actor: Actor) -> Iterator[Outcome]:
    """`commit.WrittenCells.commit`: what it has written, and no cell got, is taken away."""
    left = actor.table.files - _unused(actor)
    yield "takes away what no cell got", actor.writes(files=left).goes("fill.record")


def _entry(actor: Actor) -> Entry:
    operation, memory = actor.operation, actor.memory
    files = rests(actor, memory.sources, operation.cells)
    files |= {file.cell: file for file in _files(actor, good=memory.good)}
    holds = holding(actor.table, files)
    return Entry(
        BATCH,
        actor.token,
        actor.id,
        holds,
        gap=operation.gap,
        built_at=memory.built_at,
        names=operation.cells,
    )


def record(actor: Actor) -> Iterator[Outcome]:
    """`commit_turn.record`: no stranger's commit stands before it; then one transaction."""
    version = actor.memory.before + 1
    if follows_strangers(actor, version):
        yield "finds a stranger's commit before its own, and records nothing", fails(actor)
        return
    after = recorded(actor, actor.table.log[version], version)
    if after is None:
        yield "can't record its commit: the lock is lost", fails(actor)
    else:
        told = after.sees(told=after.world.told | {actor.id})
        yield f"records its commit {version}", told.goes("fill.done")


def record_early(actor: Actor) -> Iterator[Outcome]:
    """A broken order: the record comes before the entry."""
    after = recorded(actor, _entry(actor), actor.table.head + 1)
    yield "records a commit that it has not made yet", (after or actor).goes("fill.create")


def done(actor: Actor) -> Iterator[Outcome]:
    """`commit_turn._turn`: the lock is given back."""
    yield "releases the lock", released(actor).ends()


def let_go(actor: Actor) -> Iterator[Outcome]:
    """`commit_turn._turn`: a batch that failed gives the lock back first."""
    yield "releases the lock, if it has it still", released(actor).goes("fill.clean")


def clean(actor: Actor) -> Iterator[Outcome]:
    """`commit.written_cells`: files that were never offered are taken away."""
    if actor.memory.offered:
        yield "leaves its files to the collector", actor.goes("fill.fail")
    else:
        left = frozenset(file for file in actor.table.files if file.folder != actor.folder)
        yield "takes its files away", actor.writes(files=left).goes("fill.fail")


def fail(actor: Actor) -> Iterator[Outcome]:
    """`recording.fail_batch`: its claims are given back."""
    claims = actor.world.state.claims
    left = frozenset(claim for claim in claims if claim.batch != actor.id)
    yield "gives its cells back", actor.says(claims=left).ends()


def _files(actor: Actor, *, good: bool) -> frozenset[File]:
    return frozenset(File(actor.id, cell, good, actor.folder) for cell in actor.operation.cells)


STEPS = {
    "fill.begin": begin,
    "fill.write": write,
    "fill.prepare": prepare,
    "fill.audit": audit,
    "fill.claims": check_claims,
    "fill.inputs": check_inputs,
    "fill.ready": check_ready,
    "fill.create": create,
    "fill.files": check_files,
    "fill.open": open_entry,
    "fill.rest": rest,
    "fill.commit": commit,
    "fill.tidy": tidy,
    "fill.record": record,
    "fill.record_early": record_early,
    "fill.done": done,
    "fill.let_go": let_go,
    "fill.clean": clean,
    "fill.fail": fail,
}
