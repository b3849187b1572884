"""How a plan is taken back: the exact commands, until when they can be given, and what they bring back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.instants import minute_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from backfill_assets.engine.review.facts import Facts
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.snapshots.publication import PointerMove


@dataclass(frozen=True, slots=True)
class WayBack:
    """How a plan is taken back.

    Attributes:
        commands: either of them does it; none where nothing can be taken back.
        until: until when; None where nothing can be.
        instead: what to do where there is no way back, or not any more.
    """

    commands: tuple[str, ...]
    until: datetime | None
    instead: str


def way_back(facts: Facts) -> WayBack:
    """Find the way back of a plan as it stands."""
    name = facts.plan_id
    if facts.taken_back:
        return WayBack((), None, "It has been taken back: `backfill plan` proposes what is loaded.")
    if facts.promoted:
        move, noted = facts.promoted[0], timedelta(days=facts.noted.promise_days)
        until = move.promised_until or move.at + noted
        return WayBack((f"backfill rollback {name}", f"backfill undo {name}"), until, _anew(facts))
    if facts.unfinished:
        text = f"It is about to be published; then `backfill rollback {name}` takes it back."
        return WayBack((), None, text)
    if any(row.environment == facts.stored.environment for row in facts.committed):
        text = (
            "It filled cells that were never published: there is nothing before them to go back to. "
            "`backfill plan --restate MODEL` builds them again."
        )
        return WayBack((), None, text)
    return WayBack((), None, "Nothing of it is published, so there is nothing to take back.")


def _anew(facts: Facts) -> str:
    built = command_to_build_anew(facts.stored.environment, facts.promoted).rstrip()
    return f"After that the old tables may be deleted; then `{built}` builds the cells anew."


def command_to_build_anew(environment: str, moves: Iterable[PointerMove]) -> str:
    """Give the command that restates all cells which these moves have published."""
    hulls = {move.model: move.cells.hull() for move in moves}
    options = " ".join(
        f"--restate {model}{_range(hull)}"
        for model, hull in sorted(hulls.items())
        if hull is not None
    )
    return f"backfill plan {environment} {options}"


def _range(hull: Interval) -> str:
    """Write a range as instants, which are the same in every model's zone; none of a table that is one cell."""
    if hull == WHOLE_CELL:
        return ""
    return f":{hull.start:%Y-%m-%dT%H:%M:%SZ}..{hull.end:%Y-%m-%dT%H:%M:%SZ}"


def way_back_text(facts: Facts) -> str:
    """Write it as Markdown."""
    back = way_back(facts)
    lines = [f"# How to take back plan {facts.plan_id}", ""]
    if back.commands and back.until:
        lines += [f"Until {minute_text(back.until)}:", ""]
        lines += [f"    {command}" for command in back.commands]
        lines += [
            "",
            "`rollback` brings back all models as they were before, `undo` the plan's cells alone.",
        ]
        lines += ["", "Read again afterwards:", "", *_read_again(facts.promoted), ""]
    return "\n".join([*lines, back.instead]) + "\n"


def _read_again(moves: list[PointerMove]) -> Iterator[str]:
    for move in moves:
        at = move.old
        what = f"{at.version} at delta_version {at.delta_version}" if at else "nothing: it was new"
        yield f"- {move.model}: {what}"
