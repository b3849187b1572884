"""The options of a request for a plan, and how they are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.errors import RequestError
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
        "--restate-all-snapshots", help="Mark it owed in every version, of every environment."
    ),
]
Start = Annotated[
    str | None, typer.Option(metavar="WHEN", help="First date, or instant with offset.")
]
End = Annotated[
    str | None, typer.Option(metavar="WHEN", help="Last date (included), or instant (excluded).")
]
EndBounded = Annotated[
    bool, typer.Option("--end-bounded", help="Nothing past the end, whatever whole cells add.")
]
IgnoreCron = Annotated[
    bool, typer.Option("--ignore-cron", help="Up to now, whatever the cron says.")
]
SkipUpstream = Annotated[
    bool, typer.Option("--skip-upstream", help="Not what the selected models need from upstream.")
]
ForwardOnly = Annotated[
    bool, typer.Option("--forward-only", help="Changes count from now on; no history is computed.")
]
EffectiveFrom = Annotated[
    str | None, typer.Option(metavar="DATE", help="From this local date on; needs --forward-only.")
]
Empty = Annotated[
    bool, typer.Option("--empty", help="Record missing cells as ready without computing.")
]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="SQL",
        help="Only rows of the restated model that fulfil this may differ; needs --restate.",
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
        help="End its cutoff: older cells get the definition that runs now. Repeatable.",
    ),
]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why, for the history.")]
DualRun = Annotated[
    int,
    typer.Option(
        "--dual-run",
        metavar="DAYS",
        help="For how many days a dual run fills both, each day compared, before it can be promoted.",
    ),
]
PauseSchedules = Annotated[
    bool,
    typer.Option(
        "--pause-schedules",
        help="Let the sensor and the schedules leave its models alone until it is promoted or abandoned.",
    ),
]
Canary = Annotated[
    bool,
    typer.Option("--canary", help="Build a few telling cells first, and wait for the next apply."),
]
Categories = Annotated[
    list[str] | None,
    typer.Option(
        "--category",
        metavar="MODEL=CATEGORY",
        help="Decide what a change means: breaking, non-breaking, forward-only, metadata. Repeatable.",
    ),
]
Strategies = Annotated[
    list[str] | None,
    typer.Option(
        "--strategy",
        metavar="MODEL=STRATEGY",
        help="Decide how: full-rebuild, partition-repair, column-enrichment, dual-run. Repeatable.",
    ),
]
Kept = Annotated[
    str | None,
    typer.Option(
        "--kept-rows",
        metavar="carry|drop",
        help="What a breaking change does with rows whose source is gone, where a model keeps them.",
    ),
]
Spark = Annotated[
    list[str] | None,
    typer.Option(
        "--spark",
        metavar="KEY=VALUE",
        help="A Spark setting for the plan's batches, over those of their models. Repeatable.",
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
        "--out", metavar="FILE", help="Write the plan here too, for `backfill apply FILE`."
    ),
]


def expected(asked: Iterable[str] | None) -> tuple[tuple[str, str], ...]:
    """Give (model, rule) of every line and file, in their order.

    Raises:
        RequestError: a file can't be read, or a rule is none.
    """
    return tuple(pair for text in asked or () for pair in _read(text))


def _read(text: str) -> tuple[tuple[str, str], ...]:
    if not text.endswith(".toml"):
        return written_expectations([text])
    try:
        return expectations_of_toml(Path(text).read_text(encoding="utf-8"), text)
    except (OSError, UnicodeDecodeError) as error:
        found = getattr(error, "strerror", None) or "it is no text"
        raise RequestError(
            found=f"--expect {text}: {found}", do="give a file of rules, or MODEL: RULE; RULE"
        ) from error
