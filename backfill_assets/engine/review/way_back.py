"""How a plan is taken back: the exact commands, until when they can be given, and what they bring back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.instants import minute_text
from backfill_assets.snapshots.stored_plan import dropped_at

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
        commands: each of them takes the plan back; empty if nothing can be taken back.
        until: the instant until which they work; None if nothing can be taken back.
        instead: what to do if there is no way back, or afterwards.
    """

    commands: tuple[str, ...]
    until: datetime | None
    instead: str


def way_back(facts: Facts) -> WayBack:
    """Find the way back of a plan as it stands."""
    gone = _gone(facts)
    if gone is not None or not facts.promoted:
        return WayBack((), None, gone or _unpublished(facts))
    name, move = facts.plan_id, facts.promoted[0]
    until = move.promised_until or move.at + timedelta(days=facts.noted.promise_days)
    return WayBack((f"backfill rollback {name}", f"backfill undo {name}"), until, _anew(facts))


def _gone(facts: Facts) -> str | None:
    """Say why nothing is there any more of what a plan has published; None in every other case."""
    if facts.taken_back:
        return (
            "It has been taken back: `backfill plan` plans the change again, as it is declared now."
        )
    dropped = dropped_at(facts.events)
    if dropped is None:
        return None
    return (
        f"Environment '{facts.stored.environment}' was dropped at {minute_text(dropped)}, and with it what the "
        "plan had published there."
    )


def _unpublished(facts: Facts) -> str:
    """Say why there is nothing to take back of a plan that was never promoted."""
    if facts.unfinished:
        return (
            f"It is about to be published; then `backfill rollback {facts.plan_id}` takes it back."
        )
    if any(row.environment == facts.stored.environment for row in facts.committed):
        return (
            "It filled cells that were never published: there is nothing before them to go back to. "
            "`backfill plan --restate MODEL` builds them again."
        )
    return "Nothing of it is published, so there is nothing to take back."


def _anew(facts: Facts) -> str:
    how = how_to_build_anew(facts.stored.environment, facts.promoted)
    return f"After that the old tables may be deleted; then {how}."


def how_to_build_anew(environment: str, moves: Iterable[PointerMove]) -> str:
    """Say how the data from before these moves is built again; where they changed a definition, by that of before."""
    published = [*moves]
    if redefined := sorted(move.model for move in published if move.redefines):
        return (
            f"restore the code from before the plan, which changed {', '.join(redefined)}, and `backfill plan "
            f"{environment}` builds the old data again"
        )
    return f"build the old data again with `{command_to_build_anew(environment, published)}`"


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
    """Write a range as instants, which are the same in every model's zone; empty for a model of one cell."""
    if hull == WHOLE_CELL:
        return ""
    return f":{hull.start:%Y-%m-%dT%H:%M:%SZ}..{hull.end:%Y-%m-%dT%H:%M:%SZ}"


def way_back_text(facts: Facts) -> str:
    """Write how a plan is taken back, as Markdown."""
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
