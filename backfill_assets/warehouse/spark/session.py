"""The Spark session: every Delta and tuning setting in one place, embedded or over Connect."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.warehouse.spark.class_archive import ARCHIVE
from backfill_assets.warehouse.spark.connect import cloned, connect
from backfill_assets.warehouse.spark.local_files import LOCAL_FILES, jar_in
from backfill_assets.warehouse.spark.private_names import check_names
from backfill_assets.warehouse.spark.quiet_gateway import quiet_gateway

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from backfill_assets.settings import Settings

LOG_STORE_KEY = "spark.delta.logStore.file.impl"
_ATOMIC_LOG_STORE = "io.delta.storage.HDFSLogStore"
_SHUFFLE_PARTITIONS = 4
CLASS_PATH_KEY = "spark.driver.extraClassPath"
_JAVA_KEY = "spark.driver.extraJavaOptions"
_SILENT = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"
# On few cores Java's optimizing compiler takes four of ten CPU seconds of a command. Of a server it takes more than
# it saves until eighty million events have been read; then it saves a fifth.
# The code of its quick compiler needs a larger cache than the default for that compiler alone.
_FEW_CORES = 4
_QUICKLY_COMPILED = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
)
# There its collector takes two thirds of the default one's memory. A JVM refuses two collectors.
_SMALL_HEAP, _COLLECTOR = "-XX:+UseSerialGC", re.compile(r"-XX:\+Use\w+GC\b")
_FAIR = Path(__file__).with_name("fair_scheduler.xml")


class UnsafeLogStoreError(BackfillAssetsError):
    """Local tables would be committed through a log store that can lose commits."""

    def __init__(self, found: str) -> None:
        self.found = found
        super().__init__(
            f"Delta would commit to local disk through {found}, which lets two processes both "
            f"claim one commit; start Spark with {LOG_STORE_KEY}={_ATOMIC_LOG_STORE}"
        )


class MissingJarsError(BackfillAssetsError):
    """The folder that Delta's jars belong in holds none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        super().__init__(
            f"no jar of Delta lies in {folder}; `backfill setup` fetches them once, or name the folder that "
            "has them in BACKFILL_JARS_DIR"
        )


class MissingS3JarsError(BackfillAssetsError):
    """Tables lie in S3, and the jars by which Spark reaches it have not been fetched."""

    def __init__(self, warehouse: str, folder: Path) -> None:
        self.warehouse, self.folder = warehouse, folder
        super().__init__(
            f"Spark can't reach {warehouse}: no jar of Hadoop's S3 client lies in {folder}; "
            "`backfill setup --s3` fetches them once"
        )


def _cores() -> int:
    """Count the cores that this process may use; on macOS, which has no such limit, those of the machine."""
    limit = getattr(os, "sched_getaffinity", None)
    return len(limit(0)) if limit else os.cpu_count() or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Where Spark runs, and with which resources.

    Attributes:
        jars_dir: the folder with Delta's jars, and in its folder `s3` those for S3, if fetched; unused
            when `remote` is set.
        warehouse: the folder or URI below which tables lie.
        master: a Spark master; ``local[*]`` is this process.
        remote: the URL of a Spark Connect server; None for a session of our own.
        patience: how many seconds to wait for a server that does not answer.
        driver_memory: of the embedded JVM.
        shuffle_partitions: few, since batches are small.
        cores: of this machine that this process may use.
        java_options: those that every JVM of this process takes from the environment.
        extra: settings that override ours.
    """

    jars_dir: Path
    warehouse: str
    master: str = "local[*]"
    remote: str | None = None
    patience: float = 60.0
    driver_memory: str = "4g"
    shuffle_partitions: int = _SHUFFLE_PARTITIONS
    cores: int = field(default_factory=_cores)
    java_options: str = ""
    extra: Mapping[str, str] = field(default_factory=dict[str, str])


def spark_settings(settings: Settings, extra: Mapping[str, str] | None = None) -> SparkSettings:
    """Give Spark's part of the settings; `extra` overrides ours."""
    return SparkSettings(
        jars_dir=settings.jars_dir,
        warehouse=f"{settings.data_root}/spark-warehouse",
        master=settings.spark_master,
        remote=settings.spark_remote or None,
        patience=settings.spark_patience,
        driver_memory=settings.spark_memory,
        java_options=" ".join(
            (settings.java_tool_options, settings.jdk_java_options, settings.hotspot_options)
        ),
        extra=extra or {},
    )


def spark_config(settings: SparkSettings) -> dict[str, str]:
    """Give every setting of a Spark that we start: in this process, or as a server.

    Raises:
        MissingJarsError: the jars have not been fetched.
        MissingS3JarsError: those for S3 have not been, and tables lie there.
    """
    jars = sorted(settings.jars_dir.glob("*.jar"))
    if not jars:
        raise MissingJarsError(settings.jars_dir)
    for_s3 = sorted((settings.jars_dir / "s3").glob("*.jar"))
    if settings.warehouse.startswith("s3://") and not for_s3:
        raise MissingS3JarsError(settings.warehouse, settings.jars_dir / "s3")
    return {
        "spark.jars": ",".join(str(jar.resolve()) for jar in (*jars, *for_s3)),
        "spark.driver.memory": settings.driver_memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": settings.warehouse,
        # Threads of one session share the cores instead of queueing behind each other.
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": str(_FAIR),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        LOG_STORE_KEY: _ATOMIC_LOG_STORE,
        **(_S3 if for_s3 else {}),
        **(_LOOPBACK if settings.master.startswith("local") else {}),
        **_on_class_path(settings, jars),
        **session_config(settings.shuffle_partitions),
        **_listed(settings),
        **settings.extra,
        **_java(settings),
    }


def _brings_class_path(settings: SparkSettings) -> bool:
    """Whether the driver has our class path: a cluster's has its own, and a person may name another."""
    return settings.master.startswith("local") and CLASS_PATH_KEY not in settings.extra


def _on_class_path(settings: SparkSettings, jars: Sequence[Path]) -> dict[str, str]:
    """Let a driver find jars from its start on.

    Hadoop looks for the access to local files before Spark adds the jars that a session names.
    """
    if not _brings_class_path(settings):
        return {}
    return {
        CLASS_PATH_KEY: os.pathsep.join(str(jar.resolve()) for jar in jars),
        **(LOCAL_FILES if jar_in(settings.jars_dir).exists() else {}),
    }


def _java(settings: SparkSettings) -> dict[str, str]:
    """Give the options of a JVM of ours; those that were asked for come last, and win."""
    extra_options = settings.extra.get(_JAVA_KEY, "")
    options = " ".join(
        word for word in (*_for_few_cores(settings), _archived(settings), extra_options) if word
    )
    return {_JAVA_KEY: options} if options else {}


def _for_few_cores(settings: SparkSettings) -> tuple[str, ...]:
    """Let a JVM that computes on few cores compile quickly, and keep its heap small.

    With more cores, optimizing takes no time from the work.
    """
    if not settings.master.startswith("local") or settings.cores > _FEW_CORES:
        return ()
    options = f"{settings.java_options} {settings.extra.get(_JAVA_KEY, '')}"
    return (_QUICKLY_COMPILED,) if _COLLECTOR.search(options) else (_QUICKLY_COMPILED, _SMALL_HEAP)


def _archived(settings: SparkSettings) -> str:
    """Let the JVM map the classes that set-up has archived for our class path; see `class_archive`."""
    archive = settings.jars_dir.resolve() / ARCHIVE
    if not _brings_class_path(settings) or not archive.exists():
        return ""
    return f'-XX:+IgnoreUnrecognizedVMOptions "-XX:SharedArchiveFile={archive}" {_SILENT}'


# One scheme for Spark and for delta-rs, which addresses a bucket by its path, too. The address of the
# store and the credentials are found by both in the environment.
_S3 = {
    "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "spark.hadoop.fs.s3a.path.style.access": "true",
}
# An embedded driver needs only the loopback interface; by default it listens on every one.
_LOOPBACK = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
# Over Connect each session has a class loader of its own, and Spark compiles the code of a query once for each loader:
# a batch would compile all of its code anew. Ours adds no artifact that would have to be kept from others.
_ONE_CLASS_LOADER = {
    "spark.sql.artifact.isolation.enabled": "false",
    "spark.sql.artifact.isolation.alwaysApplyClassloader": "false",
}
# The other settings are set where the server is started.
_AT_RUN_TIME = ("spark.sql.", "spark.databricks.")


def _listed(settings: SparkSettings) -> dict[str, str]:
    """Let the driver look at files of a disk itself; Spark would run a task for each, from 33 on."""
    if "://" in settings.warehouse:
        return {}
    return {"spark.sql.sources.parallelPartitionDiscovery.threshold": "100000"}


def session_config(shuffle_partitions: int) -> dict[str, str]:
    """Give the settings that any session can take at run time, one of a batch included."""
    return {
        "spark.sql.session.timeZone": "UTC",
        # With the older form, Spark's default, files have neither a least nor a largest value.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        # A query runs as it is written: no ${env:NAME} in it is replaced by a variable of the process.
        "spark.sql.variable.substitute": "false",
        # The log of one table is small: one partition costs a third of the default fifty.
        "spark.databricks.delta.snapshotPartitions": "1",
        # An ordinary checkpoint must not delete commits that pins and rebuilds still need.
        "spark.databricks.delta.properties.defaults.enableExpiredLogCleanup": "false",
        **{
            f"spark.databricks.delta.properties.defaults.{name}": value
            for name, value in RETENTION.items()
        },
    }


RETENTION = {
    "logRetentionDuration": "interval 36500 days",
    "deletedFileRetentionDuration": "interval 36500 days",
}
"""Delta's own retention never removes what a pin needs; only our collection removes files."""


def start_session(settings: SparkSettings) -> SparkSession:
    """Start Spark here, or connect to the server that the settings name.

    Raises:
        MissingJarsError: the jars have not been fetched.
        UnsafeLogStoreError: local tables would be committed unsafely.
        SparkUnreachableError: the server does not answer.
        SparkVersionError: it is another Spark than ours.
        SparkWithoutDeltaError: it does not know Delta.
    """
    spark = _connected(settings) if settings.remote else _embedded(settings)
    refuse_local_log_store(spark)
    return spark


def _connected(settings: SparkSettings) -> SparkSession:
    extra = {key: value for key, value in settings.extra.items() if key.startswith(_AT_RUN_TIME)}
    ours = session_config(settings.shuffle_partitions) | _ONE_CLASS_LOADER | _listed(settings)
    config = ours | extra
    return connect(str(settings.remote), config, patience=settings.patience)


def _embedded(settings: SparkSettings) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - half a second that planning must not pay

    # The settings have read it and name no server. PySpark would still use it, even if it is empty.
    os.environ.pop("SPARK_REMOTE", None)  # noqa: TID251 - nothing is read from it
    if settings.master.startswith("local"):
        # Otherwise functions of Python models run in the first `python3` of the search path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # noqa: TID251 - nothing is read from it
    check_names()
    quiet_gateway()
    builder = SparkSession.builder.master(settings.master).appName("backfill_assets")
    for key, value in spark_config(settings).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def refuse_local_log_store(spark: SparkSession) -> None:
    """Check through which log store Delta commits to `file:`.

    Raises:
        UnsafeLogStoreError: it is `LocalLogStore`, by setting or by Delta's default.
    """
    log_store = spark.conf.get(LOG_STORE_KEY, None) or spark.conf.get(
        "spark.delta.logStore.class", None
    )
    if log_store is None or log_store.endswith("LocalLogStore"):
        raise UnsafeLogStoreError(log_store or "Delta's default, LocalLogStore")


def batch_session(spark: SparkSession, tuning: Mapping[str, str] | None = None) -> SparkSession:
    """Open a session of its own for one batch: own views and own commit settings, same engine.

    Args:
        spark: the run's.
        tuning: settings of this batch alone; see `models.spark_tuning`.
    """
    session = _session_beside(spark)
    for key, value in (tuning or {}).items():
        session.conf.set(key, value)
    return session


def _session_beside(spark: SparkSession) -> SparkSession:
    if hasattr(spark, "cloneSession"):  # only a Connect session has it
        return cloned(spark)
    session = spark.newSession()
    for key, ours in session_config(_SHUFFLE_PARTITIONS).items():
        session.conf.set(key, spark.conf.get(key, None) or ours)
    return session
