"""`backfill diff`: show how a plan, or another environment, differs, day by day."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli.comparing import Pair, compared, pairs
from backfill_assets.cli.exits import CHANGES
from backfill_assets.cli.operating import Operating, operating
from backfill_assets.cli.options import AsJson, Verbose  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import Heading, counted, err, print_json, print_table, say
from backfill_assets.cli.progress import AT_WORK
from backfill_assets.cli.why import cells_asked
from backfill_assets.engine.batch.kept_rows import kept_rows_in
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.model import CELL_COLUMN
from backfill_assets.planning.plan.written_options import chosen
from backfill_assets.render import diff_text
from backfill_assets.warehouse.compare.compare import (
    BY_CELL,
    Comparison,
    Difference,
    Question,
    compare,
    comparison_sql,
    differences,
)
from backfill_assets.warehouse.compare.compare_rows import compare_rows
from backfill_assets.warehouse.spark.spark_errors import NeedsSparkError

if TYPE_CHECKING:
    from backfill_assets.engine.batch.kept_rows import KeptRowsFound
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.compare.compare import Compared

_GROUPS = 20
_CELL = "cell"


def diff(  # noqa: PLR0913, PLR0917 - one option for each thing that can be asked
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="PLAN|ENV ENV [MODEL]",
            help="A plan against what its environment reads, or two environments; perhaps one model.",
        ),
    ],
    by: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Group by it instead of by cell; `cell` is one too."),
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=VALUE", help="Only rows with this value. Repeatable."),
    ] = None,
    cells: Annotated[
        str | None, typer.Option(metavar="A..B", help="Only these cells: keys or dates.")
    ] = None,
    rows: Annotated[int, typer.Option(min=0, help="How many rows that differ are shown.")] = 3,
    sql: Annotated[
        bool, typer.Option("--sql", help="Print the query instead of running it.")
    ] = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Compare what is read with what would be, key by key: day by day, with totals at the end.

    Before a promotion a plan's workspace is compared with what its environment reads; after it, what was read before with what is
    read since.

    Exit code: 0 when nothing differs, 2 when something does, 1 when it can't be compared.

    Example: backfill diff p1a2b3c4d5

    Example: backfill diff prod dev_cpa marketing.campaign_performance --by campaign_id --cells 2024-03-01..2024-03-31

    Example: backfill diff p1a2b3c4d5 marketing.roi_analysis --keys campaign_id=7 --sql
    """
    with operating() as at:
        before, after, listed = pairs(at, names)
        if sql:
            for pair in listed:
                both = compared(at, pair)
                asked = _question(both.model, pair, by=by, keys=keys, cells=cells)
                _print_sql(pair.model, comparison_sql(both, asked), as_json=as_json)
            return
        model_diffs: list[_ModelDiff] = []
        kept = kept_rows_in(at.store.plans.events(after))
        for pair in listed:
            both = compared(at, pair)
            asked = _question(both.model, pair, by=by, keys=keys, cells=cells)
            say(f"comparing {pair.model}", to=err)
            model_diffs.append(_compared(at, both, asked, rows, kept.get(pair.model)))
    if as_json:
        plain = [model_diff.plain() for model_diff in model_diffs]
        print_json({"old": before, "new": after, "models": plain})
    else:
        _print_all(model_diffs, f"{before} -> {after}", whole=verbose)
    if any(model_diff.differs for model_diff in model_diffs):
        raise typer.Exit(CHANGES)


@dataclass(frozen=True, slots=True)
class _ModelDiff:
    """The differences of one model."""

    model: Model
    comparison: Comparison
    sample: tuple[Difference, ...]
    kept: KeptRowsFound | None = None

    @property
    def differs(self) -> bool:
        return diff_text.differs(self.comparison)

    def plain(self) -> dict[str, Any]:
        """Give it as JSON has it."""
        totals = [asdict(total) for total in diff_text.totals(self.comparison)]
        return {
            "model": self.model.name,
            "differs": self.differs,
            **asdict(self.comparison),
            "totals": totals,
            "kept_rows": None if self.kept is None else asdict(self.kept),
            "sample": [asdict(difference) for difference in self.sample],
        }


def _compared(
    at: Operating, both: Compared, asked: Question, rows: int, kept: KeptRowsFound | None
) -> _ModelDiff:
    with AT_WORK.at(Phase.COMPARING, both.model.name):
        comparison, sample = _asked(at, both, asked, rows)
    return _ModelDiff(both.model, comparison, sample, kept)


def _asked(
    at: Operating, both: Compared, asked: Question, rows: int
) -> tuple[Comparison, tuple[Difference, ...]]:
    """Compare few rows of plain types here, and all others with Spark."""
    try:
        compared_rows = compare_rows(both, asked)
    except NeedsSparkError:
        comparison = compare(at.spark(), both, asked)
        some = rows and any(group.differs for group in comparison.groups)
        return comparison, differences(at.spark(), both, asked, rows) if some else ()
    return compared_rows.comparison(), compared_rows.differences(rows)


def _question(
    model: Model,
    pair: Pair,
    *,
    by: list[str] | None,
    keys: list[str] | None,
    cells: str | None,
) -> Question:
    grouped = tuple(CELL_COLUMN if column == _CELL else column for column in chosen(by)) or BY_CELL
    known = {column.name for column in model.schema}
    for column in grouped:
        if column not in {*known, CELL_COLUMN}:
            raise RequestError(
                found=f"--by {column!r} can't be read: expected a column of {model.name}: "
                f"{', '.join(known)}"
            )
    within = pair.cells
    if cells is not None:
        within = IntervalSet.of([cells_asked(model.cadence, cells)])
    return Question(by=grouped, cells=within, where=_condition(keys, known, model.name))


def _condition(keys: list[str] | None, known: set[str], model: str) -> str | None:
    parts: list[str] = []
    for key in keys or ():
        column, equals, value = key.partition("=")
        if not equals or column not in known:
            raise RequestError(
                found=f"--keys {key!r} can't be read: expected COLUMN=VALUE with a column of "
                f"{model}"
            )
        text = value.replace("\\", "\\\\").replace("'", "\\'")
        parts.append(f"CAST(`{column}` AS STRING) = '{text}'")
    return " AND ".join(parts) or None


def _print_sql(model: str, sql: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"model": model, "sql": sql})
    else:
        typer.echo(f"-- {model}\n{sql};\n")


_COUNTS = (
    Heading("before", number=True),
    Heading("after", number=True),
    Heading("+keys", number=True),
    Heading("-keys", number=True),
    Heading("~rows", number=True),
    Heading("differs in", spare=1),
)
_TOTALS = (
    Heading("column"),
    Heading("~rows", number=True),
    Heading("filled before", number=True, spare=2),
    Heading("filled after", number=True, spare=1),
    Heading("sum before", number=True),
    Heading("sum after", number=True),
    Heading("change"),
)


def _print_all(model_diffs: list[_ModelDiff], what: str, *, whole: bool) -> None:
    changed = [model_diff for model_diff in model_diffs if model_diff.differs]
    for model_diff in changed:
        _print(model_diff, whole=whole)
    same = [model_diff.model.name for model_diff in model_diffs if not model_diff.differs]
    if same:
        say(f"the same in both: {', '.join(same)}", indent=2)
    say(f"{what}: {counted(len(changed), 'model')} of {len(model_diffs):,} differ.")


def _print(model_diff: _ModelDiff, *, whole: bool) -> None:
    by = model_diff.comparison.by
    groups = [group for group in model_diff.comparison.groups if group.differs]
    shown = groups if whole else groups[:_GROUPS]
    say(model_diff.model.name, style="bold")
    if shown:
        names = (Heading(_CELL if column == CELL_COLUMN else column) for column in by)
        rows = [diff_text.group_row(model_diff.model, by, group) for group in shown]
        print_table((*names, *_COUNTS), rows)
    if len(groups) > len(shown):
        say(f"and {len(groups) - len(shown):,} more that differ: -v shows them")
    totals = [total for total in diff_text.totals(model_diff.comparison) if total.differs or whole]
    if totals:
        print_table(_TOTALS, [diff_text.total_row(total) for total in totals])
    for difference in model_diff.sample:
        say(diff_text.difference_text(difference), indent=2)
    for text in () if model_diff.kept is None else model_diff.kept.words:
        say(f"rows whose source is gone: {text}", indent=2)
    say(f"{model_diff.model.name}: {diff_text.counts_text(model_diff.comparison)}.", indent=2)
    say("")
