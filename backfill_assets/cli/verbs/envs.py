"""`backfill envs`: list the environments and their own models, or drop an environment."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli import project
from backfill_assets.cli.asking import Yes, confirm
from backfill_assets.cli.options import AsJson  # noqa: TC001 - typer reads it
from backfill_assets.cli.output import Heading, print_json, print_table, say
from backfill_assets.cli.project import open_store, store_looked_at
from backfill_assets.engine.project.holds import refuse_hold
from backfill_assets.intervals.text import counted
from backfill_assets.settings import read_settings

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.snapshots.environment import Environment
    from backfill_assets.state.store import Store

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def envs(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the environments, the environment that each follows, and its own models.

    A new environment is made by planning for it: `backfill plan dev_refunds`, then `backfill apply`. It costs nothing: models that it
    does not have itself are read from the environment that it follows.

    Example: backfill envs

    Example: backfill envs drop dev_refunds
    """
    if ctx.invoked_subcommand is not None:
        return
    settings = read_settings()
    with store_looked_at(settings) as store:
        until = store.environments.expirations(timedelta(days=settings.environment_days))
        rows = [
            _row(store, environment, until.get(environment.name))
            for environment in store.environments.by_name()
            if not environment.is_workspace
        ]
    if as_json:
        print_json(rows)
        return
    _print(rows)


@app.command()
def drop(
    name: Annotated[str, typer.Argument(help="An environment that is not protected.")],
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Drop an unprotected environment; its tables are kept until `backfill gc` deletes them.

    Example: backfill envs drop dev_refunds --yes
    """
    with open_store(read_settings()) as store:
        refuse_hold(store, name)
        own = store.environments.own_pointers(store.environments.get(name).name)
        confirm(f"drop environment {name} with {counted(len(own), 'pointer')} of its own", yes=yes)
        store.environments.drop_environment(name)
    if as_json:
        print_json({"dropped": name, "pointers": sorted(own)})
        return
    say("Next: backfill gc --dry-run")
    say(f"{name}: dropped, with {counted(len(own), 'pointer')} of its own.")


def _row(store: Store, environment: Environment, until: datetime | None) -> dict[str, Any]:
    last = store.environments.finalized(environment.name)
    own = store.environments.own_pointers(environment.name)
    return {
        "name": environment.name,
        "protected": environment.protected,
        "follows": environment.follows,
        "own": sorted(own),
        "finalized_at": last.at if last else None,
        "finalized_by": last.plan_id if last else None,
        "removed": list(last.removed) if last else [],
        "expires_at": until,
        "expired": bool(until and until <= project.now()),
    }


_HEADINGS = (
    Heading("environment"),
    Heading("protected"),
    Heading("follows"),
    Heading("own", number=True),
    Heading("finalized", spare=2),
    Heading("by plan", spare=1),
    Heading("expires", spare=3),
)


def _print(rows: list[dict[str, Any]]) -> None:
    if rows:
        print_table(_HEADINGS, [_cells(row) for row in rows])
    for row in rows:
        if row["removed"]:
            text = f"{row['name']}: {row['finalized_by']} removed {', '.join(row['removed'])}"
            say(text, indent=2)
    expired = [row["name"] for row in rows if row["expired"]]
    if expired:
        say(f"Next: backfill gc, which collects {', '.join(expired)}")
    say(f"{counted(len(rows), 'environment')}, {len(expired):,} expired.")


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["name"],
        "yes" if row["protected"] else "no",
        row["follows"] or "",
        str(len(row["own"])),
        _minute(row["finalized_at"]),
        row["finalized_by"] or "",
        _minute(row["expires_at"]) + (" (expired)" if row["expired"] else ""),
    )


def _minute(instant: datetime | None) -> str:
    return f"{instant:%Y-%m-%d %H:%M}" if instant else ""
