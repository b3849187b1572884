"""What holds after each step, whatever came before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets_tests.histories.oracle import Oracle
from backfill_assets_tests.histories.published import WrongError, cell_from

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import date, datetime

    from backfill_assets_tests.histories.models import Declared
    from backfill_assets_tests.histories.oracle import Cells
    from backfill_assets_tests.histories.published import Contents, Looked

EVERYTHING = None
"""Of a model: any of its cells."""

Allowed = dict[str, "Collection[datetime] | None"]


def holds_what_follows(
    found: Contents,
    looked: Looked,
    sales: Mapping[date, Sequence[int]],
    mixed: Mapping[str, Collection[Declared]],
    *,
    written: Mapping[str, Collection[datetime]] | None = None,
) -> None:
    """Each published cell that nothing is said against follows from the sales and the published upstreams.

    A model that keeps older cells by decision may hold in each what one of several definitions gives. Cells that
    an environment reads through another one follow from what that one reads. With `written`, only these
    cells are looked at.
    """
    oracle = Oracle(sales, found.cells)
    for name in found.cells.keys() & looked.works.keys():
        accepted = {found.declared(name), *mixed.get(name, ())}
        cells = found.of(name).keys() if written is None else written.get(name, ())
        for start in set(cells) - looked.unfinished(name) - looked.read_elsewhere(name):
            _follows(oracle, found, name, start, accepted)


def _follows(
    oracle: Oracle, found: Contents, name: str, start: datetime, accepted: Iterable[Declared]
) -> None:
    model, rows = found.models[name], found.of(name)[start]
    wanted = [oracle.rows(name, one, cell_from(model, start)) for one in accepted]
    if rows not in wanted:
        raise WrongError(
            f"{found.environment}: {name} publishes {rows} in {start}, what it reads gives "
            f"{' or '.join(map(str, wanted))}, and nothing is said to be missing or stale"
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
                raise WrongError(f"{what}: {name} {at} was {old.get(at)} and is {new.get(at)}")


def differing(before: Contents, after: Contents) -> dict[str, set[datetime]]:
    """Give the cells of each model that are published otherwise than before, or were not."""
    return {
        name: {at for at, rows in cells.items() if before.of(name).get(at) != rows}
        for name, cells in after.cells.items()
    }


def unchanged(before: Contents, after: Contents, what: str) -> None:
    """Nothing that is published differs."""
    differ_only(before.cells, after.cells, {}, what)


def settled(looked: Looked, what: str) -> None:
    """Nothing needs work, and no declaration differs from what is published."""
    for name, work in looked.works.items():
        if work.gaps or work.stale_cells or work.owed:
            raise WrongError(
                f"{what}, but {name} has gaps {work.gaps}, stale {work.stale}, owed {work.owed}"
            )
    if looked.run.changed:
        raise WrongError(f"{what}, but {looked.run.changed} are declared otherwise")
