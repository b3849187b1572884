"""Versions that nobody needs any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError

if TYPE_CHECKING:
    from datetime import datetime


class VersionNeededError(BackfillAssetsError):
    """A version can't be deleted: somebody needs it."""

    def __init__(self, version: str, why: str) -> None:
        self.version = version
        super().__init__(
            f"the table of version '{version}' stays: {why}. Only what no pointer, promise, claim or "
            "open promotion needs is collected"
        )


@dataclass(frozen=True, slots=True)
class Collectable:
    """A version that nobody needs.

    Attributes:
        version: its id.
        model: of which model.
        path: where its table lies.
        made_by: the plan that made it; None for one that no plan did.
        collecting: whether its deletion has begun already.
    """

    version: str
    model: str
    path: str
    made_by: str | None
    collecting: bool


@dataclass(frozen=True, slots=True)
class Needs:
    """Since when a pointer move, and a claim's heartbeat, count."""

    promised_since: datetime
    heard_after: datetime


def collectable_versions(
    connection: object, since: datetime, heard_after: datetime
) -> list[Collectable]:
    raise NotImplementedError


def mark_collecting(connection: object, version: str, needs: Needs, now: datetime) -> None:
    raise NotImplementedError


def forget_version(connection: object, version: str) -> None:
    raise NotImplementedError
