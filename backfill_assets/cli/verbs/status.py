"""`backfill status`: show per model which cells are required, ready, missing and stale."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli.exits import FAILED, WAITS
from backfill_assets.cli.held import holds_json, of_hold, say_holds
from backfill_assets.cli.looking import left_json, say_looked
from backfill_assets.cli.operating import looking
from backfill_assets.cli.options import AsJson, AsOf, Env, Select  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import Heading, bar, print_json, print_table, say
from backfill_assets.cli.project import clock_at
from backfill_assets.cli.run_commands import (
    filling_commands,
    in_environment,
    plan_for,
    removed_words,
)
from backfill_assets.cli.waiting_plans import say_waiting, waiting_plans, watched_plans
from backfill_assets.engine.automatic.needed_plan import standing_plan
from backfill_assets.engine.fill.late_cells import late_work_of
from backfill_assets.engine.fill.observing import observe_sources, sources_of
from backfill_assets.engine.fill.outstanding import A_PLAN, outstanding, stale_by_need
from backfill_assets.engine.fill.unresolved_failures import unresolved_failures
from backfill_assets.engine.project.holds import holds_of
from backfill_assets.intervals.instants import minute_text
from backfill_assets.intervals.text import counted, ranges_text
from backfill_assets.models.fingerprint import edited
from backfill_assets.planning.plan.selecting import selected
from backfill_assets.planning.plan.written_options import chosen
from backfill_assets.planning.rule.late_work import beyond_words
from backfill_assets.snapshots.cutoff import Cutoff

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from backfill_assets.engine.fill.outstanding import Outstanding
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.model import Model
    from backfill_assets.planning.rule.late_work import LateWork
    from backfill_assets.planning.rule.needs_work import Work
    from backfill_assets.planning.rule.unresolved import Unresolved
    from backfill_assets.snapshots.hold import Hold
    from backfill_assets.snapshots.state_view import StateView

_LATELY = timedelta(days=7)


def status(
    select: Select = None,
    env: Env = "prod",
    check: Annotated[
        bool, typer.Option("--check", help="End with 1 when a cell is missing or stale.")
    ] = False,
    now: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """Show per model what is required, ready, missing and stale, and its last failure.

    Required cells are the cells of a model's life that are due; ready cells hold audited data; stale cells
    are ready, but an upstream has changed after they were built, also by late rows of a source, as
    far as its log shows. Spared cells are cells that a plan did not need to build, since their input did not change. Failed is the last failure of a model after
    which cells still need work, with the command that shows more. Removed models are published, and not declared any
    more. Waiting plans are named, with the time until which they block late data. Nothing is computed.

    Exit code: 0, also when cells are missing or stale, unless --check is given: then 1 (a failure counts as long as its
    cells need work); 3 when a source has commits that were not looked at, so that there may be more to do than is shown.

    Example: backfill status

    Example: backfill status --select marketing.campaign_performance --json

    Example: backfill status --check
    """
    with looking(clock=clock_at(now)) as at:
        run = at.run(env)
        hold = run.store.holds.of_environment(env)
        names = of_hold(selected(run.graph, chosen(select)), hold)
        sources = sources_of(run, names)
        looks = observe_sources(run.store, sources, run.data_root, None, run.at_work)
        say_looked(looks)
        view, moment, late = run.view(), run.clock(), late_work_of(run)
        works = {name: run.work(name, view, moment) for name in names}
        rows = _rows(run, view, works, late)
        remaining = outstanding(run, names, looks)
        is_runnable = remaining.buildable or any(row["refresh"] for row in rows)
        commands = filling_commands(run, _runnable(works, late)) if is_runnable else ()
        holds = holds_of(run.store, env, names)
        needed = standing_plan(run, late) if A_PLAN in remaining.waits else None
        open_ones = _Open(waiting_plans(run), holds, watched_plans(run), moment, needed)
        edited = any(row["changed"] for row in rows) and not open_ones.plans
        planning = _planning(env, needed, remaining, edited=edited)
        to_do = _to_do(env, hold, remaining, commands, planning)
        removed = {} if select or hold is not None else _removed(run, view)
    if as_json:
        summary = {"environment": env, "models": rows, "removed": [*removed]}
        print_json(summary | {"left": left_json(remaining)} | open_ones.as_json())
    else:
        _print(env, rows, removed, remaining, open_ones, to_do)
    if check and (remaining.missing or remaining.stale):
        raise typer.Exit(FAILED)
    if remaining.unlooked:
        raise typer.Exit(WAITS)


def _removed(run: RunContext, view: StateView) -> dict[str, str]:
    """Name the models of which an environment publishes cells and that are not declared any more, with what becomes of them."""
    gone = sorted({*run.pointers} - {*run.project.loaded.graph.models})
    return {name: removed_words(run, name) for name in gone if view.ready(name)}


def _runnable(works: Mapping[str, Work], late: LateWork) -> list[str]:
    """Name the models of which a run would build a cell."""
    return [
        name
        for name, work in works.items()
        if work.runnable | late.in_place[name] | late.automatic[name]
    ]


def _rows(
    run: RunContext, view: StateView, works: Mapping[str, Work], late: LateWork
) -> list[dict[str, Any]]:
    spared = run.store.plans.spared(run.clock() - _LATELY)
    failures = unresolved_failures(run, view, works)
    return [
        _row(run, name, work, view.claimed[name], late)
        | _stale_waits(run, name, work, late)
        | {
            "beyond": [*late.beyond(name)],
            "spared": spared.get(name, 0),
            "cutoff": _cutoff(view.cutoffs.get(name)),
            "failure": _failure(run, failures.get(name)),
        }
        for name, work in works.items()
    ]


def _row(
    run: RunContext, name: str, work: Work, claimed: IntervalSet, late: LateWork
) -> dict[str, Any]:
    model = run.graph.model(name)
    count = model.cadence.count
    refresh = late.in_place[name] | late.automatic[name]
    waiting = late.waiting[name]
    return {
        "model": name,
        "required": count(work.required),
        "ready": count(work.ready),
        "missing": count(work.gaps),
        "stale": count(work.stale_cells),
        "refresh": count(refresh),
        "late": count(work.late_cells),
        "late_needs_plan": count(work.late_cells & waiting),
        "running": count(claimed & (work.gaps | late.in_place[name])),
        "required_ranges": ranges_text(model.cadence, work.required),
        "missing_ranges": ranges_text(model.cadence, work.gaps),
        "stale_ranges": ranges_text(model.cadence, work.stale_cells),
        "stale_because": {
            stale.upstream: ranges_text(
                run.graph.node(stale.upstream).cadence, stale.upstream_cells
            )
            for stale in work.stale
        },
        "waits_for": {up: ranges_text(model.cadence, cells) for up, cells in work.blocked.items()},
        "kept": count(work.kept),
        "kept_ranges": ranges_text(model.cadence, work.kept),
        "watermark": _watermark(run, model),
        "changed": name in run.changed,
        "edited": name in run.changed and edited(model, run.project.loaded.graph.model(name)),
    }


def _stale_waits(run: RunContext, name: str, work: Work, late: LateWork) -> dict[str, Any]:
    """Say what the stale cells wait for that neither the next run builds again nor a plan that is to be made."""
    waiting = work.stale_cells - late.in_place[name] - late.automatic[name] - late.waiting[name]
    cadence = run.graph.model(name).cadence
    by_need = stale_by_need(run, late, name, waiting, None)
    return {
        "stale_waiting": cadence.count(waiting),
        "stale_waits": {whom: ranges_text(cadence, cells) for whom, cells in by_need.items()},
    }


def _failure(run: RunContext, failure: Unresolved | None) -> dict[str, Any] | None:
    """Give a failure as plain values, with the command that tells more of it."""
    if failure is None:
        return None
    cadence = run.graph.model(failure.model).cadence
    first = cadence.key(next(iter(cadence.cells(failure.cells))))
    tells = (
        f"batches {failure.batch_id[:8]}" if failure.batch_id else f"why {failure.model} {first}"
    )
    return {
        "cells": ranges_text(cadence, failure.cells),
        "at": failure.at,
        "kind": failure.kind.value if failure.kind else None,
        "error": failure.error,
        "batch_id": failure.batch_id,
        "command": f"backfill {tells}",
    }


def _cutoff(cutoff: Cutoff | None) -> dict[str, str] | None:
    return None if cutoff is None else asdict(cutoff)


def _watermark(run: RunContext, model: Model) -> datetime | None:
    if model.time_column is None:
        return None
    return run.store.versions.watermark(run.pointer(model).version)


_HEADINGS = (
    Heading("model"),
    Heading("", spare=1),
    Heading("ready", number=True),
    Heading("required", number=True),
    Heading("missing", number=True),
    Heading("stale", number=True),
)


@dataclass(frozen=True, slots=True)
class _Open:
    """What a person has begun and not ended: plans that wait, holds and watches, at an instant; and the plan that stands for late cells."""

    plans: list[dict[str, Any]]
    holds: tuple[Hold, ...]
    watched: dict[str, Any]
    at: datetime
    needed: str | None

    def as_json(self) -> dict[str, Any]:
        holds = holds_json(self.holds, self.at)
        plans = {"needed_plan": self.needed, "plans": self.plans}
        return {**plans, "holds": holds, "watched": self.watched}

    def say(self) -> None:
        say_waiting(self.plans)
        say_holds(self.holds, self.at)
        for plan_id, watch in self.watched.items():
            say(f"watch    {plan_id} {watch['text']}", indent=2)


def _print(
    env: str,
    rows: list[dict[str, Any]],
    removed: Mapping[str, str],
    remaining: Outstanding,
    open_ones: _Open,
    to_do: Iterable[str],
) -> None:
    counts = ("ready", "required", "missing", "stale")
    print_table(
        _HEADINGS,
        [
            (row["model"], bar(row["ready"], row["required"]), *(f"{row[key]:,}" for key in counts))
            for row in rows
        ],
    )
    for row in rows:
        for line in _remarks(env, row, open_ones.needed):
            say(line, indent=2)
    for name, words in removed.items():
        say(f"removed  {name}: {words}", indent=2)
    open_ones.say()
    if remaining.warning:
        say(remaining.warning, indent=2)
    if to_do:
        say(f"Next: {', then '.join(to_do)}")
    left = remaining.waiting_for(open_ones.needed)
    say(f"{env}: {counted(len(rows), 'model')}, {left.words}.")


def _planning(
    env: str, needed: str | None, remaining: Outstanding, *, edited: bool
) -> Iterator[str]:
    """Give the commands that plan: for late cells the plan that stands, if there is one; a new one for edits that no open plan publishes."""
    if needed:
        yield f"backfill show {needed}"
    if edited or (A_PLAN in remaining.waits and not needed):
        yield plan_for(env)


def _to_do(
    env: str,
    hold: Hold | None,
    remaining: Outstanding,
    filling: Iterable[str],
    planning: Iterable[str],
) -> tuple[str, ...]:
    """Give the commands that come next; nothing is built in a hold, so only its release brings what it lacks."""
    if hold is not None:
        is_behind = remaining.missing or remaining.stale
        return (f"backfill release {shlex.quote(hold.consumer)}",) if is_behind else ()
    why = (
        f"backfill why MODEL CELL{in_environment(env)} for a missing one, or the same command later"
    )
    return tuple(filling) or ((why,) if remaining.missing else tuple(planning))


def _remarks(env: str, row: dict[str, Any], needed: str | None) -> list[str]:
    name, remarks = row["model"], []
    if row["missing"]:
        remarks.append(f"missing  {name}: {row['missing_ranges']}")
    if failure := row["failure"]:
        words = " ".join((failure["error"] or "").split())
        remarks.append(
            f"failed   {name}: {failure['cells']} at {minute_text(failure['at'])}: {words} "
            f"(`{failure['command']}`)"
        )
    if row["stale"]:
        because = ", ".join(
            f"{up} changed in {cells}" for up, cells in row["stale_because"].items()
        )
        waits = [f"{cells} {whom}" for whom, cells in row["stale_waits"].items()]
        others = row["stale"] - row["stale_waiting"]
        remedy = _remedy(others, row["refresh"], row["beyond"], needed)
        remedies = "; ".join([*waits, remedy] if others else waits)
        word = "late " if row["late"] else "stale"
        remarks.append(f"{word}    {name}: {row['stale_ranges']}; {because}; {remedies}")
    if row["spared"]:
        remarks.append(
            f"spared   {name}: {counted(row['spared'], 'cell')} in {_LATELY.days} days; what they "
            "read was built again and did not change"
        )
    if row["cutoff"]:
        kept = f"; {row['kept_ranges']} would need work without it" if row["kept"] else ""
        remarks.append(f"cutoff   {name}: {Cutoff(**row['cutoff']).words(name)}{kept}")
    if row["changed"]:
        what = "its declaration" if row["edited"] else "what it reads"
        remarks.append(
            f"changed  {name}: {what} has changed; {env} runs the previous snapshot until a plan is promoted"
        )
    return remarks


def _remedy(stale: int, refresh: int, beyond: Iterable[str] = (), needed: str | None = None) -> str:
    """Name the remedy for stale cells: the next run, inside the late window; else a plan, by its id where one stands."""
    if refresh == stale:
        return "the next run refreshes them"
    run = f"the next run refreshes {refresh:,}; " if refresh else ""
    if needed:
        return f"{run}{'else ' if run else ''}waits for plan {needed}"
    return f"{run}{'else a plan' if run else 'needs a plan'}{beyond_words(beyond)}"
