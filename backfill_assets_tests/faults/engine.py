"""One warm JVM with Spark, that victims attach to: a process that is killed costs two seconds then.

It outlives them, as a Spark server does: what a dead client had asked for goes on, and may commit
long after its death.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from backfill_assets_tests.spark import start_test_session

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def start_engine(folder: Path) -> tuple[SparkSession, dict[str, str]]:
    """Start it in this process's care.

    Returns:
        The session, and the variables by which a victim attaches.
    """
    session = start_test_session(folder)
    session.sparkContext.setLogLevel("OFF")  # of what is broken on purpose it would say pages
    return session, door_of(session)


def door_of(session: SparkSession) -> dict[str, str]:
    """Name the variables by which another process attaches to a session's JVM."""
    gateway: Any = session.sparkContext._gateway
    door = gateway.java_parameters
    return {"PYSPARK_GATEWAY_PORT": str(door.port), "PYSPARK_GATEWAY_SECRET": door.auth_token}


@cache
def attach() -> SparkSession:
    """Attach to the JVM that the variables name; it is never stopped."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - only a victim pays for it
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    gateway: Any = launch_gateway()
    SparkContext._ensure_initialized(gateway=gateway)
    jvm = gateway.jvm
    running = jvm.org.apache.spark.SparkContext.getOrCreate()
    context = jvm.JavaSparkContext.fromSparkContext(running)
    conf = SparkConf(_jvm=jvm, _jconf=context.getConf())
    return SparkSession(SparkContext(gateway=gateway, jsc=context, conf=conf)).newSession()
