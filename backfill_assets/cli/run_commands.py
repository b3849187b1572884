"""The commands that fill the cells of an environment, or plan for it: each table is written by its own environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.snapshots.environment import PROD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.engine.project.run_context import RunContext


def runs_by_environment(run: RunContext, names: Iterable[str]) -> dict[str, list[str]]:
    """Give the commands that fill these models, each with its models; what is followed comes first."""
    commands: dict[str, list[str]] = {}
    owners = {name: run.pointer(run.graph.model(name)).environment for name in names}
    for name, owner in sorted(owners.items(), key=lambda pair: pair[1] == run.environment.name):
        commands.setdefault(f"backfill run{in_environment(owner)}", []).append(name)
    return commands


def in_environment(name: str) -> str:
    """Write the option that names an environment; `prod` needs none."""
    return "" if name == PROD else f" --env {name}"


def plan_for(name: str) -> str:
    """Give the command that makes a plan for an environment; `prod` need not be named."""
    return "backfill plan" if name == PROD else f"backfill plan {name}"
