"""`backfill diff`: show how a plan, or another environment, differs, day by day."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli import diff_options as ask  # noqa: TC001 - typer reads them
from backfill_assets.cli.comparing import Pair, compared, pairs, refuse_gone_files
from backfill_assets.cli.diff_options import DiffOptions, question
from backfill_assets.cli.exits import CHANGES
from backfill_assets.cli.operating import Operating, operating
from backfill_assets.cli.options import AsJson, Verbose  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import Heading, print_json, print_table, say
from backfill_assets.cli.progress import AT_WORK
from backfill_assets.engine.batch.kept_rows import kept_rows_in
from backfill_assets.engine.plans.comparing import shown_once
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.engine.review.compared import Shown
from backfill_assets.intervals.text import counted
from backfill_assets.models.column import CELL_COLUMN
from backfill_assets.render import diff_text
from backfill_assets.warehouse.compare.compare import Comparison, Difference, compare, differences
from backfill_assets.warehouse.compare.compare_rows import compare_rows
from backfill_assets.warehouse.compare.comparison_sql import Question, comparison_sql
from backfill_assets.warehouse.spark.spark_errors import NeedsSparkError

if TYPE_CHECKING:
    from backfill_assets.engine.batch.kept_rows import KeptRowsFound
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.compare.comparison_sql import Compared

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
    by: ask.By = None,
    keys: ask.Keys = None,
    cells: Annotated[
        str | None, typer.Option(metavar="A..B", help="Only these cells: keys or dates.")
    ] = None,
    tolerance: ask.Tolerance = None,
    profile: ask.Profile = False,
    most: ask.Most = "",
    rows: Annotated[int, typer.Option(min=0, help="How many differing rows are shown.")] = 3,
    sql: Annotated[
        bool, typer.Option("--sql", help="Print the query instead of running it.")
    ] = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Compare the published data with that of a plan or of another environment, key by key: day by day, with totals at the end.

    Before a promotion a plan's workspace is compared with the data that its environment reads; afterwards, the old data with the
    new. The result for a plan is kept with it: as long as no file has changed, the same question is answered at once.

    Exit code: 0 when nothing differs, 2 when something differs, 1 when the comparison is not possible.

    Example: backfill diff p1a2b3c4d5

    Example: backfill diff prod dev_cpa marketing.campaign_performance --by campaign_id --cells 2024-03-01..2024-03-31

    Example: backfill diff p1a2b3c4d5 marketing.roi_analysis --by month --by channel --tolerance roi=0.0001 --profile

    Example: backfill diff p1a2b3c4d5 marketing.roi_analysis --keys campaign_id=7 --sql
    """
    options = DiffOptions(
        by=tuple(part.strip() for part in by or ()), keys=tuple(keys or ()), cells=cells,
        tolerances=tuple(tolerance or ()), profile=profile, most=most,
    )  # fmt: skip
    with operating() as at:
        before, after, listed = pairs(at, names)
        if sql:
            queries = {pair.model: _query(compared(at, pair), options, pair) for pair in listed}
            _print_sql(before, after, queries, as_json=as_json)
            return
        model_diffs = [_compared(at, pair, options, rows, after) for pair in listed]
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

    @property
    def has_rows(self) -> bool:
        return any(group.old_rows or group.new_rows for group in self.comparison.groups)

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


def _compared(at: Operating, pair: Pair, options: DiffOptions, rows: int, after: str) -> _ModelDiff:
    """Compare a model; of a plan, what an earlier comparison of the same files has found is given."""
    both = compared(at, pair)
    diff_question = question(both.model, options, pair.cells)

    def ask() -> Shown:
        refuse_gone_files(both, pair)
        return _shown(at, both, diff_question, rows, options.most)

    with AT_WORK.at(Phase.COMPARING, pair.model):
        if pair.plan_id:
            asked = (diff_question, (rows, options.most))
            result = shown_once(at.store, pair.plan_id, both, asked, ask)
        else:
            result = ask()
    comparison = replace(result.comparison, sql=comparison_sql(both, diff_question))
    kept = kept_rows_in(at.store.plans.events(after)).get(pair.model)
    sample = tuple(difference.as_declared(both.model) for difference in result.sample)
    return _ModelDiff(both.model, comparison, sample, kept)


def _shown(at: Operating, both: Compared, diff_question: Question, rows: int, most: str) -> Shown:
    """Compare few rows of plain types here, and all others with Spark."""
    try:
        compared_rows = compare_rows(both, diff_question)
    except NeedsSparkError:
        comparison = compare(at.spark(), both, diff_question)
        some = rows and any(group.differs for group in comparison.groups)
        sample = differences(at.spark(), both, diff_question, rows, most) if some else ()
    else:
        comparison, sample = compared_rows.comparison(), compared_rows.differences(rows, most)
    return Shown(comparison.to_keep(both.model, diff_question), sample)


def _query(both: Compared, options: DiffOptions, pair: Pair) -> str:
    return comparison_sql(both, question(both.model, options, pair.cells))


def _print_sql(before: str, after: str, queries: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        models = [{"model": model, "sql": query} for model, query in queries.items()]
        print_json({"old": before, "new": after, "models": models})
        return
    for model, query in queries.items():
        typer.echo(f"-- {model}\n{query};\n")


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

_PROFILE = (
    Heading("group"),
    Heading("column"),
    Heading("distinct before", number=True),
    Heading("after", number=True),
    Heading("p5 before", number=True, spare=2),
    Heading("after", number=True, spare=2),
    Heading("p50 before", number=True, spare=1),
    Heading("after", number=True, spare=1),
    Heading("p95 before", number=True, spare=2),
    Heading("after", number=True, spare=2),
)


def _print_all(model_diffs: list[_ModelDiff], what: str, *, whole: bool) -> None:
    changed = [model_diff for model_diff in model_diffs if model_diff.differs]
    for model_diff in changed:
        _print(model_diff, whole=whole)
    for words, has_rows in (("the same in both", True), ("no rows on either side", False)):
        names = [
            model_diff.model.name
            for model_diff in model_diffs
            if not model_diff.differs and model_diff.has_rows is has_rows
        ]
        if names:
            say(f"{words}: {', '.join(names)}", indent=2)
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
    comparison = model_diff.comparison
    for text in (*diff_text.retyped_texts(comparison), *diff_text.null_rates(comparison)):
        say(text, indent=2)
    profiled = diff_text.profile_rows(model_diff.model, model_diff.comparison, whole=whole)
    if profiled:
        print_table(_PROFILE, profiled)
    for difference in model_diff.sample:
        say(diff_text.difference_text(difference), indent=2)
    for text in () if model_diff.kept is None else model_diff.kept.words:
        say(f"rows whose source is gone: {text}", indent=2)
    say(f"{model_diff.model.name}: {diff_text.counts_text(model_diff.comparison)}.", indent=2)
    say("")
