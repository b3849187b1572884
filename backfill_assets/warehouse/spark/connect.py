"""Connect to a shared Spark Connect server, wait for it, and check that it fits this project."""

from __future__ import annotations

import atexit
import os
import socket
from math import ceil
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit
from weakref import WeakSet

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from backfill_assets.errors import BackfillAssetsError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as RemoteSession

DEFAULT_PORT = 15002
_CATALOG_KEY = "spark.sql.catalog.spark_catalog"
_LONGEST_WAIT = 10  # seconds between two tries
_LOST = ("INVALID_HANDLE.SESSION_", "StatusCode.UNAVAILABLE", "on closed channel")


class SparkUnreachableError(BackfillAssetsError):
    """No Spark Connect server answers at the address in the settings."""

    def __init__(self, server: str, seconds: float, reason: str) -> None:
        self.server = server
        super().__init__(
            f"the Spark Connect server {server} did not answer within {seconds:g} s: {reason}. Published "
            "and recorded data is unchanged. Start it (here: `make spark-server`), or "
            "correct SPARK_REMOTE, and run again"
        )


class SparkVersionError(BackfillAssetsError):
    """The server runs another Spark than this client was made for."""

    def __init__(self, server: str, found: str, expected: str) -> None:
        self.server, self.found, self.expected = server, found, expected
        super().__init__(
            f"the Spark Connect server {server} runs Spark {found}, and this client is Spark "
            f"{expected}; expected the same major and minor version. Nothing was written. Give the "
            "server Spark and Delta of requirements.lock"
        )


class SparkWithoutDeltaError(BackfillAssetsError):
    """The server was started without Delta."""

    def __init__(self, server: str) -> None:
        self.server = server
        super().__init__(
            f"the Spark Connect server {server} does not know Delta ({_CATALOG_KEY} is not its "
            "catalog). Nothing was written. Start it with the settings in docs/deploy.md (here: "
            "`make spark-server`)"
        )


def connect(url: str, config: Mapping[str, str], *, patience: float) -> SparkSession:
    """Open a session on a server; wait for one that does not answer yet.

    Args:
        url: ``sc://host:port/;...``; its parameters may hold a token, so it is never shown.
        config: the settings that the session sets at run time.
        patience: how many seconds to wait for an answer, now and whenever the server is away.

    Raises:
        SparkUnreachableError: it did not answer in time.
        SparkVersionError: it is another Spark.
        SparkWithoutDeltaError: it can't read or write our tables.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415 - as heavy as Spark itself

    server = _wait_for(url, patience)
    session = _session(url)
    _OPEN.add(_remote(session))
    be_patient(session, patience)
    try:
        _refuse_unfit(session, server)
        for key, value in config.items():
            session.conf.set(key, value)
    except PySparkException as error:
        hang_up(session)
        raise SparkUnreachableError(server, patience, _first_line(error)) from error
    except BackfillAssetsError:
        hang_up(session)
        raise
    return session


def _session(url: str) -> SparkSession:
    """Open a session on a connection of its own.

    gRPC lets the channels of a process share one connection to a server, and after failures waits for
    up to two minutes before it dials again: a new session would wait for an old one's failures.
    """
    from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415 - as heavy, too
    from pyspark.sql.connect.session import SparkSession as Remote  # noqa: PLC0415

    options = [
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_reconnect_backoff_ms", _LONGEST_WAIT * 1000),
    ]
    # `SparkSession.builder.remote` does the same, but takes no options of a channel.
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # noqa: TID251 - it is set, not read
    opened = Remote.builder.channelBuilder(DefaultChannelBuilder(url, options)).create()
    return cast("SparkSession", opened)


def be_patient(session: SparkSession, patience: float) -> None:
    """Set how long a session waits for a server that is away: Spark's default is longer than ours."""
    from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415

    policy = DefaultPolicy(
        max_retries=4 + ceil(patience / _LONGEST_WAIT) if patience else 0,
        max_backoff=_LONGEST_WAIT * 1000,
        max_server_retry_delay=_LONGEST_WAIT * 1000,
    )
    session.client.set_retry_policies([policy])


def cloned(session: SparkSession) -> SparkSession:
    """Open another session with the settings of this one, its patience included."""
    clone = _remote(session).cloneSession()
    clone.client.set_retry_policies(session.client.get_retry_policies())
    clone.release_session_on_close = True  # a clone is made without its constructor
    _OPEN.add(clone)
    _CLONES.add(clone)
    return cast("SparkSession", clone)


def release(session: SparkSession) -> None:
    """Let the server forget a session that was cloned for one batch; any other is left alone."""
    if _remote(session) in _CLONES:
        hang_up(session)


def hang_up(session: SparkSession) -> None:
    """Stop a session, without waiting for a server that is away."""
    if _remote(session) in _OPEN and not _remote(session).is_stopped:
        be_patient(session, 0)
    session.stop()


def _remote(session: SparkSession) -> RemoteSession:
    """Give a session its real class: pyspark declares one class for both kinds."""
    return cast("RemoteSession", session)


_OPEN: WeakSet[RemoteSession] = WeakSet()
_CLONES: WeakSet[RemoteSession] = WeakSet()


@atexit.register
def _close_all() -> None:
    """Close all connections: an open one keeps the interpreter from ending."""
    for session in tuple(_OPEN):
        if not session.is_stopped:
            session.client.close()


def is_lost(session: SparkSession) -> bool:
    """Ask whether a session's server has forgotten it, or is away."""
    if _remote(session).is_stopped:
        return True
    try:
        session.conf.get("spark.sql.session.timeZone")
    except Exception as error:  # noqa: BLE001 - all errors arrive as the same class
        return tells_lost(str(error))
    return False


def tells_lost(text: str) -> bool:
    """Whether an error's text means that the session, or its server, is gone."""
    return any(mark in text for mark in _LOST)


def _endpoint(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or DEFAULT_PORT


def _wait_for(url: str, patience: float) -> str:
    host, port = _endpoint(url)
    retrying = Retrying(
        retry=retry_if_exception_type(OSError),
        stop=stop_after_delay(patience),
        wait=wait_random_exponential(multiplier=0.25, max=_LONGEST_WAIT),
        reraise=True,
    )
    try:
        retrying(lambda: socket.create_connection((host, port), timeout=_LONGEST_WAIT).close())
    except OSError as error:
        reason = error.strerror or str(error)
        raise SparkUnreachableError(f"{host}:{port}", patience, reason) from error
    return f"{host}:{port}"


def _refuse_unfit(session: SparkSession, server: str) -> None:
    import pyspark  # noqa: PLC0415

    version, expected = session.version, pyspark.__version__
    if version.split(".")[:2] != expected.split(".")[:2]:
        raise SparkVersionError(server, version, expected)
    if not str(session.conf.get(_CATALOG_KEY, "")).endswith("DeltaCatalog"):
        raise SparkWithoutDeltaError(server)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"[:300]
