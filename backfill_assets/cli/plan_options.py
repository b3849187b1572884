"""The options of a request for a plan, and how they are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.errors import RequestError, why_unreadable
from backfill_assets.planning.review.contract_text import expectations_of_toml, written_expectations

if TYPE_CHECKING:
    from collections.abc import Iterable

Environment = Annotated[
    str, typer.Argument(metavar="[ENV]", help="The environment; a new one follows prod.")
]
Restate = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MODEL[:A..B]",
        help="A model or source that was wrong, all of it or from A to B (dates included). Repeatable.",
    ),
]
AllSnapshots = Annotated[
    bool,
    typer.Option(
        "--restate-all-snapshots",
        help="Mark the restated cells as owed in all tables of the model, in every environment.",
    ),
]
Start = Annotated[
    str | None, typer.Option(metavar="WHEN", help="First date, or instant with offset.")
]
End = Annotated[
    str | None, typer.Option(metavar="WHEN", help="Last date (included), or instant (excluded).")
]
EndBounded = Annotated[
    bool,
    typer.Option(
        "--end-bounded",
        help="Plan no cell that ends after --end, or after the ranges of --restate.",
    ),
]
IgnoreCron = Annotated[bool, typer.Option("--ignore-cron", help="Plan up to now, ignoring cron.")]
SkipUpstream = Annotated[
    bool,
    typer.Option(
        "--skip-upstream", help="Do not add missing upstream cells of the selected models."
    ),
]
ForwardOnly = Annotated[
    bool, typer.Option("--forward-only", help="Apply changes from now on; compute no history.")
]
EffectiveFrom = Annotated[
    str | None,
    typer.Option(
        metavar="DATE", help="Apply changes from this local date on; needs --forward-only."
    ),
]
Empty = Annotated[
    bool, typer.Option("--empty", help="Record missing cells as ready without computing.")
]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="SQL",
        help="Only rows of the restated model that meet this condition may differ; needs --restate.",
    ),
]
Cutoff = Annotated[
    str | None,
    typer.Option(metavar="DATE", help="Older cells keep the old definition; needs --reason."),
]
LiftCutoffs = Annotated[
    list[str] | None,
    typer.Option(
        "--lift-cutoff",
        metavar="MODEL",
        help="End the cutoff of this model: older cells get the definition that runs now. Repeatable.",
    ),
]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why, for the history.")]
DualRun = Annotated[
    int,
    typer.Option(
        "--dual-run",
        metavar="DAYS",
        help="How many days a dual run fills the old and the new table and compares them, before promotion.",
    ),
]
PauseSchedules = Annotated[
    bool,
    typer.Option(
        "--pause-schedules",
        help="Pause the sensor and the schedules for the plan's models until it is promoted or abandoned.",
    ),
]
Canary = Annotated[
    bool,
    typer.Option(
        "--canary", help="Build a few representative cells first, and wait for the next apply."
    ),
]
Categories = Annotated[
    list[str] | None,
    typer.Option(
        "--category",
        metavar="MODEL=CATEGORY",
        help="Set the category of a change: breaking, non-breaking, forward-only, metadata. Repeatable.",
    ),
]
Strategies = Annotated[
    list[str] | None,
    typer.Option(
        "--strategy",
        metavar="MODEL=STRATEGY",
        help="Set how history is changed: full-rebuild, partition-repair, column-enrichment, dual-run. Repeatable.",
    ),
]
Kept = Annotated[
    str | None,
    typer.Option(
        "--kept-rows",
        metavar="carry|drop",
        help="Carry or drop rows that are no longer in the source, in models that keep such rows.",
    ),
]
Spark = Annotated[
    list[str] | None,
    typer.Option(
        "--spark",
        metavar="KEY=VALUE",
        help="Spark setting for the plan's batches; overrides the settings of the models. Repeatable.",
    ),
]
Expect = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MODEL: RULE; ...|FILE.toml",
        help="What may change, such as `shop.revenue: only amount; amount within 1% a month`. Repeatable.",
    ),
]
Out = Annotated[
    str | None,
    typer.Option(
        "--out", metavar="FILE", help="Write the plan to this file too, for `backfill apply FILE`."
    ),
]


def expected(asked: Iterable[str] | None) -> tuple[tuple[str, str], ...]:
    """Give (model, rule) of every line and file, in their order.

    Raises:
        RequestError: a file can't be read, or a text is not a rule.
    """
    return tuple(pair for text in asked or () for pair in _read(text))


def _read(text: str) -> tuple[tuple[str, str], ...]:
    if not text.endswith(".toml"):
        return written_expectations([text])
    try:
        return expectations_of_toml(Path(text).read_text(encoding="utf-8"), text)
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(
            found=f"--expect {text}: {why_unreadable(error)}",
            do="give a file of rules, or MODEL: RULE; RULE",
        ) from error
