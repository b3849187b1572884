"""`backfill notices`: list the notices to consumers about plans, delivered or not."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.cli.exits import FAILED
from backfill_assets.cli.operating import operating
from backfill_assets.cli.options import AsJson  # noqa: TC001 - typer reads it
from backfill_assets.cli.output import print_json, say
from backfill_assets.cli.stored_plans import kept_plan
from backfill_assets.engine.review.notices import send_notices
from backfill_assets.intervals.instants import minute_text
from backfill_assets.intervals.text import counted

if TYPE_CHECKING:
    from backfill_assets.snapshots.notice import Notice

_LISTED = 50


def notices(
    plan: Annotated[
        str | None, typer.Argument(help="Only notices of this plan; of all plans unless given.")
    ] = None,
    send: Annotated[
        bool,
        typer.Option(
            "--send", help="First send the notices that are due, as every command on a plan does."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the notices to consumers about plans, and the notices that are still to be delivered.

    BACKFILL_CHANNELS names the file with the addresses. The delivery of a notice is retried after 1, 2, 4 minutes, up to
    6 hours; after 3 days it is given up.

    Exit code: 0 when all notices were delivered or are still retried; 1 when a notice was given up.

    Example: backfill notices p1a2b3c4d5

    Example: backfill notices --send --json
    """
    with operating() as at:
        plan_id = None if plan is None else kept_plan(at.store, plan).plan_id
        if send:
            send_notices(at)
        latest = at.store.notices.latest(_LISTED, plan_id)
    lost = [notice for notice in latest if notice.given_up]
    if as_json:
        print_json({"notices": [asdict(notice) for notice in latest]})
    else:
        for notice in latest:
            say(_line(notice), indent=2, style="red" if notice.given_up else None)
        waiting = sum(notice.next_at is not None for notice in latest)
        counts = f"{waiting} not delivered yet, {len(lost)} given up"
        say(f"{counted(len(latest), 'notice')}, {counts}.")
    if lost:
        raise typer.Exit(FAILED)


def _line(notice: Notice) -> str:
    to = f"{notice.consumer} over {notice.channel}" if notice.consumer else "those whom it concerns"
    what = f"{notice.plan_id} {notice.event}: {to}"
    if notice.delivered_at:
        return f"{what}, delivered {minute_text(notice.delivered_at)}"
    tried = f"{notice.error} ({counted(notice.attempts, 'attempt')})" if notice.error else ""
    if notice.next_at is None:
        return f"{what}, GIVEN UP: {tried}"
    return f"{what}, next attempt {minute_text(notice.next_at)}{f': {tried}' if tried else ''}"
