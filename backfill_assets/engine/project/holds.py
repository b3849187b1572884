"""Holds of consumers: what a consumer reads is frozen, and nothing is built there."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.intervals.instants import minute_text
from backfill_assets.snapshots.hold import Hold, held_name

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from backfill_assets.engine.project.project import Project
    from backfill_assets.models.cells_by_model import CellsByModel
    from backfill_assets.state.store import Store


def holds_of(store: Store, environment: str, models: Collection[str]) -> tuple[Hold, ...]:
    """Read the holds of an environment that concern some of these models."""
    return tuple(
        hold
        for hold in store.holds.all()
        if hold.of == environment and not set(hold.models).isdisjoint(models)
    )


def hold_consumer(
    project: Project, name: str, environment: str, *, until: datetime | None, reason: str
) -> Hold:
    """Keep a declared consumer on what an environment publishes now.

    Raises:
        RequestError: no consumer of this name is declared, or another one would have the same hold; or it is
            held already, or nothing that it reads is published, or the environment is not protected, or
            `until` is past.
        UnknownEnvironmentError: there is no environment of that name.
    """
    consumer, now = project.loaded.graph.consumer(name), project.clock()
    if until is not None and until <= now:
        raise RequestError(
            found=f"--until {minute_text(until)} is in the past",
            expected="an instant in the future",
            do=f"name a later one, or leave --until out: then `backfill release {shlex.quote(name)}` ends the hold",
        )
    frozen, others = held_name(consumer.name), set(project.loaded.graph.consumers) - {consumer.name}
    if twin := next((other for other in sorted(others) if held_name(other) == frozen), None):
        raise RequestError(
            found=f"consumers '{consumer.name}' and '{twin}' would both read environment '{frozen}'",
            expected="names that differ in a letter or digit",
            do="rename one of them; nothing was written",
        )
    models = tuple(reading.model for reading in consumer.reads)
    hold = Hold(
        frozen,
        consumer.name,
        environment,
        models,
        now,
        until,
        project.who,
        reason,
    )
    return project.store.holds.hold(hold)


def release_consumer(project: Project, name: str) -> tuple[Hold, CellsByModel]:
    """Let a consumer read what is published again; also one that is not declared any more.

    Returns:
        The hold that has ended, and the cells in which both differ.

    Raises:
        RequestError: it is not held.
    """
    return project.store.holds.release(name)


def refuse_hold(store: Store, environment: str) -> None:
    """Refuse to build in an environment that is a hold.

    Raises:
        RequestError: it is one.
    """
    hold = store.holds.of_environment(environment)
    if hold is not None:
        raise RequestError(
            found=f"environment '{environment}' is the hold of consumer '{hold.consumer}': nothing is "
            "built in it",
            do=f"work in '{hold.of}'; `backfill release {shlex.quote(hold.consumer)}` ends the hold",
        )
