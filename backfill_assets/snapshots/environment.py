"""Environments: named sets of pointers, model -> (version, delta_version)."""

from __future__ import annotations

from dataclasses import dataclass

PROD = "prod"


@dataclass(frozen=True, slots=True)
class Environment:
    """A named set of pointers.

    Attributes:
        name: such as ``prod``.
        protected: published history of it changes only through a plan.
    """

    name: str
    protected: bool


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where an environment reads one model.

    Attributes:
        environment: whose pointer it is.
        model: what it points for.
        fingerprint: the snapshot that the environment runs.
        version: the physical table's id.
        delta_version: the pin; -1 until the first commit.
    """

    environment: str
    model: str
    fingerprint: str
    version: str
    delta_version: int
