"""The driver inside this process's session: whether it lives, how it is forgotten, and stopped.

A driver that was killed leaves PySpark with a gateway to nowhere, and PySpark would hand out the dead
session for ever. Forgetting it is what PySpark itself does when it stops one, but without Java.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


def is_dead(session: SparkSession) -> bool:
    """Whether the driver of an embedded session is gone, or its context was shut down."""
    context: Any = session.sparkContext
    process = getattr(context._gateway, "proc", None)  # noqa: SLF001 - PySpark tells it nowhere else
    if process is not None and process.poll() is not None:
        return True
    try:
        return bool(context._jsc.sc().isStopped())  # noqa: SLF001
    except Exception:  # noqa: BLE001 - what doesn't answer is dead, however it says so
        return True


def forget(session: SparkSession) -> None:
    """Let the next session of this process start a driver of its own."""
    from pyspark import SparkContext  # noqa: PLC0415 - half a second that planning must not pay
    from pyspark.sql import SparkSession  # noqa: PLC0415

    context: Any = session.sparkContext
    gateway: Any = context._gateway  # noqa: SLF001
    with contextlib.suppress(Exception):
        context.stop()
    with contextlib.suppress(Exception):
        gateway.shutdown()
    _kill(getattr(gateway, "proc", None))
    known: tuple[tuple[Any, tuple[str, ...]], ...] = (
        (SparkContext, ("_active_spark_context", "_gateway", "_jvm")),
        (SparkSession, ("_instantiatedSession", "_activeSession")),
    )
    for kind, names in known:
        for name in names:
            setattr(kind, name, None)


def interrupt(session: SparkSession) -> None:
    """Cancel the Spark jobs of a session of its own, from any thread, embedded or over Connect.

    By session, not by tag: an embedded session knows a tag only in the thread that has set it.
    """
    session.interruptAll()


@contextmanager
def keeping_signals() -> Iterator[None]:
    """Start Spark without its own answer to Ctrl-C, which cancels all jobs, commits included."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _kill(process: Any) -> None:  # noqa: ANN401 - a Popen, or nothing
    """End a driver whose context is gone, and take leave of one that has ended."""
    if process is None:
        return
    with contextlib.suppress(Exception):
        process.kill()
        process.wait(10)
