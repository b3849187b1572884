"""Environments: named sets of pointers, model -> (version, delta_version).

An environment may follow another one: where it has no pointer of its own it reads what the other
reads. Development environments and plans' workspaces are environments of this kind.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

PROD = "prod"
_WORKSPACE = "plan:"
_UNDO = ".undo"


@dataclass(frozen=True, slots=True)
class Environment:
    """A named set of pointers.

    Attributes:
        name: such as ``prod``; a workspace is named after its plan.
        protected: published history of it changes only through a plan.
        follows: whose pointers it reads where it has none of its own; None for one that stands alone.
        expires_at: when it may be collected at the earliest; None for never. A change puts it off.
        opened: of a workspace, the counter when it was opened; None for an environment that people
            read.
    """

    name: str
    protected: bool
    follows: str | None = None
    expires_at: datetime | None = None
    opened: int | None = None

    @property
    def is_workspace(self) -> bool:
        """Whether it is a workspace: a plan builds here and no reader reads it."""
        return self.opened is not None


@dataclass(frozen=True, slots=True)
class Layer:
    """One table under another: it answers for the cells that no table above it holds.

    Attributes:
        version: the physical table's id.
        delta_version: its pin.
    """

    version: str
    delta_version: int


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where an environment reads one model.

    Attributes:
        environment: whose pointer it is: the environment's own, or the one that it follows.
        model: what it points for.
        fingerprint: the snapshot that the environment runs.
        version: the physical table's id.
        delta_version: the pin; -1 until the first commit.
        under: the tables that are read in the cells which this one does not hold, the upper first;
            empty for a table that stands alone, as every table of a protected environment does.
        certain: cells that this table must come to hold: not ready until it does, whatever lies
            under it. Only a workspace has some.
    """

    environment: str
    model: str
    fingerprint: str
    version: str
    delta_version: int
    under: tuple[Layer, ...] = ()
    certain: IntervalSet = field(default_factory=IntervalSet.empty)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The tables that it reads, the upper first."""
        return (Layer(self.version, self.delta_version), *self.under)

    def is_as(self, other: Pointer) -> bool:
        """Whether the same definition is read in the same tables, at whatever pins."""
        tables, others = ([layer.version for layer in each.layers] for each in (self, other))
        return self.fingerprint == other.fingerprint and tables == others

    def raised(self, pins: Mapping[str, int]) -> Pointer:
        """Give it with each table under its own one at the pin of another reader, where that is higher."""
        under = (
            Layer(each.version, max(each.delta_version, pins.get(each.version, each.delta_version)))
            for each in self.under
        )
        return replace(self, under=tuple(under))


def workspace_name(plan_id: str) -> str:
    """Name the workspace of a plan."""
    return f"{_WORKSPACE}{plan_id}"


def undo_name(plan_id: str) -> str:
    """Name the plan as whose own the workspace is opened in which a plan is undone."""
    return f"{plan_id}{_UNDO}"


def undone_in(environment: str) -> str | None:
    """Name the plan that is undone in this workspace; None for any other environment."""
    plan_id = plan_of(environment)
    return plan_id.removesuffix(_UNDO) if plan_id and plan_id.endswith(_UNDO) else None


def plan_of(environment: str) -> str | None:
    """Name the plan whose workspace this is; None for an environment that people read."""
    return environment.removeprefix(_WORKSPACE) if environment.startswith(_WORKSPACE) else None
