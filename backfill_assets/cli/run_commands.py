"""The commands that fill the cells of an environment, or plan for it: each table is written by its own environment, or by a plan."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.unpromoted import promoting_both, unpromoted_columns
from backfill_assets.engine.project.opening import added_by_plans_alone
from backfill_assets.engine.project.plan_age import open_plans
from backfill_assets.engine.review.before_publishing import commands_now
from backfill_assets.snapshots.environment import PROD, plan_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.snapshots.environment import Pointer


def filling_commands(run: RunContext, names: Iterable[str]) -> dict[str, list[str]]:
    """Give the commands that fill these models; what is followed comes first, what needs a plan last.

    Returns:
        By command, the models that it can be restricted to: none of a plan, which fills its own.
    """
    pointers = {name: run.pointer(run.graph.model(name)) for name in names}
    added = dict.fromkeys(added_by_plans_alone(run, pointers), plan_for(run.environment.name))
    by_plan = added | _plans_going_on(run, pointers) | _plans_for_both(run, pointers)
    commands: dict[str, list[str]] = {}
    for name, at in sorted(
        pointers.items(), key=lambda each: each[1].environment == run.environment.name
    ):
        if name not in by_plan:
            commands.setdefault(f"backfill run{in_environment(at.environment)}", []).append(name)
    return commands | {command: [] for command in by_plan.values()}


def restricted(commands: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Write each of these commands for its models alone."""
    for command, names in commands.items():
        listed = ",".join(names)
        yield f"{command} --select {listed}" if listed else command


def _plans_going_on(run: RunContext, pointers: Mapping[str, Pointer]) -> dict[str, str]:
    """Give by model the command that brings the plan nearer to its publication whose workspace writes its table."""
    owners = run.store.versions.owners({at.version for at in pointers.values()})
    planned = {
        name: plan_id
        for name, at in pointers.items()
        if (plan_id := plan_of(owners.get(at.version, "")))
    }
    if not planned:
        return {}  # the open plans are not asked for
    going_on: dict[str, str] = {}
    for plan in sorted(open_plans(run.store), key=lambda each: each.plan_id):
        names = [name for name, plan_id in planned.items() if plan_id == plan.plan_id]
        if names and (commands := commands_now(run.project, plan)):
            going_on |= dict.fromkeys(names, commands[0])
    return going_on


def _plans_for_both(run: RunContext, names: Iterable[str]) -> dict[str, str]:
    """Give by model the plan for what it reads of an edit that is not promoted: no run can build it before."""
    return {
        name: promoting_both(run.environment.name, upstream)
        for name in names
        for upstream in unpromoted_columns(run, run.graph.model(name))
    }


def in_environment(name: str) -> str:
    """Write the option that names an environment; `prod` needs none."""
    return "" if name == PROD else f" --env {name}"


def removed_words(run: RunContext, name: str) -> str:
    """Say what becomes of a model that an environment publishes, or follows, and that is not declared any more."""
    env = run.pointers[name].environment
    if hold := run.store.holds.of_environment(env):
        return (
            f"it is not declared any more; {env} keeps what it has of it until the hold ends "
            f"(`backfill release {shlex.quote(hold.consumer)}`)"
        )
    is_filled = name in run.graph.models and name not in run.removed
    filled = (
        f"{env} fills it for what still reads it there"
        if is_filled
        else f"{env} publishes what it has of it, and nothing fills it"
    )
    return (
        f"it is not declared any more; {filled}, until a plan that removes it is promoted "
        f"(`{plan_for(env)}`)"
    )


def plan_for(name: str) -> str:
    """Give the command that makes a plan for an environment; `prod` need not be named."""
    return "backfill plan" if name == PROD else f"backfill plan {name}"
