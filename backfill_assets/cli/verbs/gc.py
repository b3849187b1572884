"""`backfill gc`: delete the data that no pointer and no promise needs."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.cli.asking import Yes, confirm
from backfill_assets.cli.operating import operating
from backfill_assets.cli.options import AsJson  # noqa: TC001 - typer reads it
from backfill_assets.cli.output import err, print_json, say
from backfill_assets.engine.review.evidence import leave_expired
from backfill_assets.engine.upkeep.collecting import collect, settle_read, what_to_collect
from backfill_assets.intervals.text import counted
from backfill_assets.render.plan_words import bytes_text
from backfill_assets.snapshots.environment import PROD
from backfill_assets.warehouse.files.table_size import bytes_in

if TYPE_CHECKING:
    from backfill_assets.engine.upkeep.collecting import Collected


def gc(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be deleted.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete expired environments, tables that nothing points at, and old files; nothing else deletes.

    The small files that cells finer than a day leave in the files of their day are joined; their rows stay.

    Data that a pointer, a promised way back, a running batch or a promotion needs is kept. A promotion can be rolled back for
    BACKFILL_PROMISE_DAYS. Data that became unneeded less than a day ago is kept for its last readers: old files, and tables of
    abandoned plans, removed models and expired environments.

    The evidence of expired plans is written first.

    Exit code: 0, also when there is nothing to delete.

    Example: backfill gc --dry-run

    Example: backfill gc --yes
    """
    with operating() as at:
        promise = timedelta(days=at.settings.promise_days)
        run = at.run(PROD)
        say("looking for data that is no longer needed", to=err)
        if not dry_run:
            leave_expired(at)
            settle_read(run)
            at.store.collection.forget_remains(at.graph.sources)
        collected = what_to_collect(run, promise)
        sizes = {table.version: bytes_in(table.path) for table in collected.tables}
        if not dry_run and _anything(collected):
            _list(collected, sizes, aside=True)
            join = f", and join {_joined(collected)}" if collected.compacted else ""
            confirm(f"delete {_counts(collected)}{join}", yes=yes)
            collected = collect(run, promise)
    if as_json:
        print_json({"dry_run": dry_run, **asdict(collected), "bytes": sum(sizes.values())})
        return
    _list(collected, sizes)
    if dry_run and _anything(collected):
        say("Next: backfill gc")
    size = bytes_text(sum(sizes.get(table.version, 0) for table in collected.tables))
    say(f"{_counts(collected)} {'would go' if dry_run else 'deleted'}; the tables held {size}.")
    if collected.compacted:
        say(f"{_joined(collected)} {'would be ' if dry_run else ''}joined.")


def _anything(collected: Collected) -> bool:
    return bool(
        collected.environments or collected.tables or collected.vacuumed or collected.compacted
    )


def _counts(collected: Collected) -> str:
    files = sum(len(vacuumed.files) for vacuumed in collected.vacuumed)
    return (
        f"{counted(len(collected.environments), 'environment')}, {counted(len(collected.tables), 'table')} "
        f"and {counted(files, 'old file')}"
    )


def _joined(collected: Collected) -> str:
    return counted(sum(compacted.files for compacted in collected.compacted), "small file")


def _list(collected: Collected, sizes: dict[str, int], *, aside: bool = False) -> None:
    to = err if aside else None
    for name in collected.environments:
        say(f"environment {name}: expired", to=to)
    for table in collected.tables:
        made = f", made by plan {table.made_by}" if table.made_by else ""
        say(
            f"table {table.version}: {bytes_text(sizes.get(table.version, 0))}{made}",
            to=to,
            indent=2,
        )
    for vacuumed in collected.vacuumed:
        say(f"files {vacuumed.path}: {counted(len(vacuumed.files), 'old file')}", to=to, indent=2)
    for compacted in collected.compacted:
        text = f"{counted(compacted.files, 'small file')} joined into {compacted.blocks:,}"
        say(f"files {compacted.path}: {text}", to=to, indent=2)
    for left in collected.passed_over:
        say(f"table {left.version}: left to the next gc: {left.why}", to=to, indent=2)
