"""The commands that fill the cells of an environment, or plan for it: each table is written by its own environment, or by a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.project.plan_age import open_plans
from backfill_assets.engine.review.before_publishing import commands_now
from backfill_assets.snapshots.environment import PROD, workspace_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from backfill_assets.engine.project.run_context import RunContext


def filling_commands(run: RunContext, names: Iterable[str]) -> dict[str, list[str]]:
    """Give the commands that fill these models; what is followed comes first, what a plan is to publish last.

    Returns:
        By command, the models that it can be restricted to: none where a plan, which fills its own, goes on.
    """
    pointers = {name: run.pointer(run.graph.model(name)) for name in names}
    writers = {name: run.store.versions.find_owner(at.version) for name, at in pointers.items()}
    going_on = _plans_going_on(run, {writer for writer in writers.values() if writer})
    commands: dict[str, list[str]] = {}
    for name, at in sorted(
        pointers.items(), key=lambda each: each[1].environment == run.environment.name
    ):
        if writers[name] not in going_on:
            commands.setdefault(f"backfill run{in_environment(at.environment)}", []).append(name)
    return commands | {command: [] for command in going_on.values()}


def restricted(commands: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Write each of these commands for its models alone."""
    for command, names in commands.items():
        listed = ",".join(names)
        yield f"{command} --select {listed}" if listed else command


def _plans_going_on(run: RunContext, workspaces: set[str]) -> dict[str, str]:
    """Give by workspace the command that brings its plan nearer to its publication, where there is one."""
    if not workspaces:
        return {}
    plans = {workspace_name(plan.plan_id): plan for plan in open_plans(run.store)}
    commands = {name: commands_now(run.project, plans[name]) for name in workspaces & plans.keys()}
    return {name: each[0] for name, each in sorted(commands.items()) if each}


def in_environment(name: str) -> str:
    """Write the option that names an environment; `prod` needs none."""
    return "" if name == PROD else f" --env {name}"


def plan_for(name: str) -> str:
    """Give the command that makes a plan for an environment; `prod` need not be named."""
    return "backfill plan" if name == PROD else f"backfill plan {name}"
