"""`backfill hold`: keep a consumer on the data that is published now, whatever is promoted later."""

from __future__ import annotations

from typing import Annotated

import typer

from backfill_assets.cli.held import holds_json, say_holds
from backfill_assets.cli.operating import operating
from backfill_assets.cli.options import AsJson, Env, Why  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import print_json, say
from backfill_assets.engine.project.holds import hold_consumer
from backfill_assets.engine.project.iceberg import enter_missing
from backfill_assets.planning.plan import written_options as written

Named = Annotated[str, typer.Argument(help="The consumer's name in CONSUMERS.")]


def hold(
    consumer: Named,
    env: Env = "prod",
    until: Annotated[
        str | None,
        typer.Option(
            metavar="INSTANT",
            help="Planned end of the hold, with offset; afterwards `status` reports it as overdue.",
        ),
    ] = None,
    reason: Why = "",
    as_json: AsJson = False,
) -> None:
    """Keep a declared consumer on the data that is published now, until it is released.

    The models of the consumer get frozen pointers in a separate environment, such as held_yearly_accounts, which
    every reader can name: published(consumer=...), `backfill views --consumer`, and an Iceberg namespace. Plans are
    built and promoted as usual; `backfill gc` keeps the data of the consumer. Only `backfill release` ends a hold.

    Exit code: 0 when the consumer is held; 1 when it was held already, or none of its models is published.

    Example: backfill hold "yearly accounts" --reason "the books close on Friday"

    Example: backfill hold "yearly accounts" --until 2026-12-01T06:00:00Z --json
    """
    with operating() as at:
        at.may_change(env)
        end = written.instant(until, "--until")
        new_hold = hold_consumer(at.project, consumer, env, until=end, reason=reason)
        enter_missing(at.run(env))
        now = at.project.clock()
    if as_json:
        print_json(holds_json([new_hold], now)[0])
        return
    say_holds([new_hold], now)
    say(f"{new_hold.consumer}: held; it reads environment {new_hold.environment}.")
