"""One Spark for many commands of a process: each of them would start one of its own."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from backfill_assets.warehouse.spark.connect import hang_up
from backfill_assets.warehouse.spark.shared_session import SharedSession

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def shared_spark(session: Any = None) -> Iterator[None]:  # noqa: ANN401 - a Spark session
    """Let all commands, and all runs of Dagster, of this process share one Spark; nothing is started before the first that needs it.

    Args:
        session: a session to take, which is left running; unless given, the first command's is kept
            until the block ends.
    """
    started, starting, usual = [session] if session else [], Lock(), SharedSession.__call__

    def kept(self: SharedSession) -> Any:  # noqa: ANN401 - a Spark session
        with starting:
            if not started:
                started.append(usual(self))
            return started[0]

    with (
        patch.object(SharedSession, "__call__", kept),
        patch.object(SharedSession, "stop", lambda _: None),
    ):
        try:
            yield
        finally:
            if started and session is None:
                hang_up(started[0])
