"""Check, forget and stop the Spark driver inside of this process's session.

After a driver was killed, PySpark keeps a gateway to it and would return the dead session for ever.
Forgetting it does what PySpark does when it stops a session, but without Java.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from backfill_assets.warehouse.spark.private_names import forget_gateway, gateway_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


def is_dead(session: SparkSession) -> bool:
    """Whether the driver of an embedded session is gone, or its context was shut down."""
    try:
        _ = (
            session.sparkContext.defaultParallelism
        )  # asks the driver, which refuses once it was shut down
    except Exception:  # noqa: BLE001 - any error means that it does not answer
        return True
    return False


def forget(session: SparkSession) -> None:
    """Forget a session, so that the next one starts anew: with another driver, if this one is gone."""
    gateway = gateway_of(session.sparkContext)
    with contextlib.suppress(Exception), warnings.catch_warnings(action="ignore"):
        session.stop()
        return
    if not forget_gateway(gateway):
        return
    with contextlib.suppress(Exception):
        gateway.shutdown()
    _kill(getattr(gateway, "proc", None))


def interrupt(session: SparkSession) -> None:
    """Cancel the Spark jobs of a batch's session, from any thread, embedded or over Connect.

    By session, not by tag: an embedded session knows a tag only in the thread that has set it.
    """
    session.interruptAll()


@contextmanager
def keeping_signals() -> Iterator[None]:
    """Keep our handler of Ctrl-C while Spark starts: its own cancels all jobs, commits included."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _kill(process: Any) -> None:  # noqa: ANN401 - a Popen, or nothing
    """Kill a driver whose context is gone, and reap one that has ended."""
    if process is None:
        return
    with contextlib.suppress(Exception):
        process.kill()
        process.wait(10)
