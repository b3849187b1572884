"""A new model over an edit that is not promoted: what it reads of it may not be there yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError

if TYPE_CHECKING:
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.model import Model


def refuse_unpromoted_columns(run: RunContext, model: Model) -> None:
    """Refuse to compute a model that reads columns which only the declared upstream has, not the environment's.

    Raises:
        RequestError: it reads one; the message names the plan that brings both.
    """
    for upstream, lacking in unpromoted_columns(run, model).items():
        environment = run.environment.name
        raise RequestError(
            found=f"'{model.name}' reads {', '.join(lacking)} of '{upstream}', which '{environment}' does "
            f"not have: the edit of '{upstream}' is not promoted",
            do=f"Promote both: {promoting_both(environment, upstream)}",
        )


def unpromoted_columns(run: RunContext, model: Model) -> dict[str, list[str]]:
    """Name the columns that a model reads and that only the declared upstream has, by upstream."""
    loaded = run.project.loaded
    if model.name in run.changed or model.name not in loaded.graph.models:
        return {}
    lacking: dict[str, list[str]] = {}
    for upstream in (upstream.name for upstream in model.reads if upstream.name in run.changed):
        there = {column.name.lower() for column in run.graph.model(upstream).schema}
        declared = {column.name for column in loaded.graph.model(upstream).schema}
        named = loaded.reads[model.name].get(upstream, frozenset[str]()) & declared
        if names := sorted(name for name in named if name.lower() not in there):
            lacking[upstream] = names
    return lacking


def promoting_both(environment: str, upstream: str) -> str:
    """Give the command that plans for the edit of an upstream model together with what reads it."""
    return f"backfill plan {environment} --select {upstream}+"
