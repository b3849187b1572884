"""What holds after each step, whatever came before it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from backfill_assets.intervals import WHOLE_CELL, Interval
from backfill_assets_tests.histories.deliveries import ARRIVALS
from backfill_assets_tests.histories.oracle import Oracle
from backfill_assets_tests.histories.published import WrongError, cell_from
from backfill_assets_tests.histories.receipts import RECEIPTS, doubled_keys, lost_keys
from backfill_assets_tests.histories.weights import slack

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import date, datetime
    from pathlib import Path

    from backfill_assets.intervals import Cadence
    from backfill_assets_tests.histories.declared import Declared
    from backfill_assets_tests.histories.oracle import Cells, Landed, Row
    from backfill_assets_tests.histories.published import Contents, Looked


class ChangedError(WrongError):
    """A step has changed something that was not its own to change."""


EVERYTHING = None
"""Of a model: any of its cells."""

Allowed = dict[str, "Collection[datetime] | None"]


def holds_what_follows(
    found: Contents,
    looked: Looked,
    landed: Landed,
    mixed: Mapping[str, Collection[Declared]],
    blank: Mapping[str, Collection[datetime]],
    *,
    written: Mapping[str, Collection[datetime]] | None = None,
) -> None:
    """Each published cell that nothing is said against follows from the sources and the published upstreams.

    A model that keeps older cells by decision may hold in each what one of several definitions gives; `blank` cells
    were recorded as empty by decision, and may hold nothing until they are built. Cells that
    an environment reads through another one follow from what that one reads. With `written`, only these
    cells are looked at.
    """
    if doubled := doubled_keys(found.of(RECEIPTS)):
        raise WrongError(f"{found.environment}: {RECEIPTS} holds {doubled} more than once")
    oracles = Oracle(landed, found.cells), Oracle(landed, _within_lives(found))
    for name in found.cells.keys() & looked.works.keys():
        accepted = {found.declared(name), *mixed.get(name, ())}
        cells = found.of(name).keys() if written is None else written.get(name, ())
        nothing = {at for at in blank.get(name, ()) if found.of(name).get(at) == ()}
        for start in set(cells) - looked.unfinished(name) - looked.read_elsewhere(name) - nothing:
            _follows(oracles, found, name, start, accepted)


def waits_for_rows(
    found: Contents, told: Collection[date], blank: Mapping[str, Collection[datetime]]
) -> None:
    """No cell is published of a day that no delivery was ever told of, unless it was recorded as empty."""
    cells = found.of(ARRIVALS).keys() - {*blank.get(ARRIVALS, ())}
    if untold := [at for at in cells if at.date() not in told]:
        raise WrongError(f"{found.environment}: {ARRIVALS} does not wait for rows of {untold}")


def _within_lives(found: Contents) -> dict[str, Cells]:
    """Leave out what models keep from outside their lives: readers that are built again don't read it."""
    lives = {name: _life(model.cadence) for name, model in found.models.items()}
    return {
        name: {at: rows for at, rows in cells.items() if lives[name].start <= at < lives[name].end}
        for name, cells in found.cells.items()
    }


def _life(cadence: Cadence) -> Interval:
    return Interval(cadence.start or WHOLE_CELL.start, cadence.end or WHOLE_CELL.end)


def _follows(
    oracles: Iterable[Oracle],
    found: Contents,
    name: str,
    start: datetime,
    accepted: Iterable[Declared],
) -> None:
    model, rows = found.models[name], found.of(name)[start]
    cell = cell_from(model, start)
    may_be = [
        (oracle.rows(name, one, cell), slack(name, one)) for oracle in oracles for one in accepted
    ]
    if not any(_agree(rows, wanted, by) for wanted, by in may_be):
        wanted = [each for each, _ in may_be]
        raise WrongError(
            f"{found.environment}: {name} publishes {rows} in {start}, what it reads gives "
            f"{' or '.join(map(str, wanted))}, and nothing is said to be missing or stale"
        )


def _agree(rows: Sequence[Row], wanted: Sequence[Row], by: float) -> bool:
    """Whether rows are equal, but for totals that may differ by a number."""
    if not by:
        return rows == wanted
    return len(rows) == len(wanted) and all(
        {**one, "total": 0} == {**other, "total": 0} and abs(one["total"] - other["total"]) <= by
        for one, other in zip(rows, wanted, strict=True)
    )


def differ_only(
    before: Mapping[str, Cells], after: Mapping[str, Cells], allowed: Allowed, what: str
) -> None:
    """What is published differs in no cell but those that a step was allowed to change."""
    for name in before.keys() | after.keys():
        if (may := allowed.get(name, ())) is None:
            continue
        old, new = before.get(name, {}), after.get(name, {})
        for at in old.keys() | new.keys():
            if at not in may and old.get(at) != new.get(at):
                raise ChangedError(f"{what}: {name} {at} was {old.get(at)} and is {new.get(at)}")


def differing(before: Contents, after: Contents) -> dict[str, set[datetime]]:
    """Give the cells of each model that are published otherwise than before, or were not."""
    return {
        name: {at for at, rows in cells.items() if before.of(name).get(at) != rows}
        for name, cells in after.cells.items()
    }


def keeps(before: Contents, after: Contents, what: str, *, but: Collection[datetime] = ()) -> None:
    """A receipt that was published still is, where the model deletes none; in some cells it may not be."""
    model = after.models.get(RECEIPTS)
    if model is not None and model.keeps_rows:
        held = {at: rows for at, rows in before.of(RECEIPTS).items() if at not in but}
        if lost := [*lost_keys(held, after.of(RECEIPTS))]:
            raise WrongError(f"{what} has lost the receipts {lost}")


def unchanged(before: Contents, after: Contents, what: str) -> None:
    """Nothing that is published differs."""
    differ_only(before.cells, after.cells, {}, what)


def settled(looked: Looked, what: str) -> None:
    """Nothing needs work but gaps that wait for a cron, and no declaration differs from what is published."""
    for name, work in looked.works.items():
        if work.runnable or work.stale_cells or work.owed:
            raise WrongError(
                f"{what}, but {name} has gaps {work.runnable}, stale {work.stale}, owed {work.owed}"
            )
    if looked.run.changed:
        raise WrongError(f"{what}, but {looked.run.changed} are declared otherwise")


def evidence_is_whole(folder: Path) -> None:
    """No part of a plan's evidence failed to be written."""
    for manifest in folder.rglob("evidence/*/manifest.json"):
        lacks = json.loads(manifest.read_text())["lacks"]
        if lacks:
            raise WrongError(f"the evidence of plan {manifest.parent.name} lacks {lacks}")
