"""The private names of PySpark that we use: why, and which public name is missing.

After its JVM was killed, PySpark keeps a gateway to nowhere and hands out the dead session for ever;
`stop()` raises before it has forgotten it. What it keeps is removed here, as `stop()` itself would
do. What is missing: a public `stop()` that works without a JVM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backfill_assets.errors import PrivateNameError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext

TRIED = "4.2.0"
"""A release of PySpark that has all of these names."""
_OF_CONTEXT = ("_active_spark_context", "_gateway", "_jvm")
_OF_SESSION = ("_instantiatedSession", "_activeSession")


def check_names() -> None:
    """Check, before a driver is started, that it can be forgotten when it has died.

    Raises:
        PrivateNameError: PySpark keeps it elsewhere.
    """
    for kind, name in _kept():
        if not hasattr(kind, name):
            missing = f"{kind.__name__} has no {name}"
            raise PrivateNameError("pyspark", missing, tried=TRIED, where=__name__)


def gateway_of(context: SparkContext) -> Any:  # noqa: ANN401 - py4j's, untyped
    """Give the connection to a context's driver, which knows the driver's process as `proc`."""
    return context._gateway


def forget_gateway(gateway: Any) -> bool:  # noqa: ANN401 - py4j's, untyped
    """Forget session and context of a driver; whether it was this process's last one."""
    from pyspark import SparkContext  # noqa: PLC0415 - half a second that planning must not pay

    if SparkContext._gateway is not gateway:  # another one has been started since
        return False
    for kind, name in _kept():
        setattr(kind, name, None)
    return True


def _kept() -> Iterator[tuple[Any, str]]:
    """Yield the attributes in which PySpark keeps a driver for the whole process."""
    from pyspark import SparkContext  # noqa: PLC0415 - half a second that planning must not pay
    from pyspark.sql import SparkSession  # noqa: PLC0415

    yield from ((SparkContext, name) for name in _OF_CONTEXT)
    yield from ((SparkSession, name) for name in _OF_SESSION)
