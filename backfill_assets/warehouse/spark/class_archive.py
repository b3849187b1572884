"""The class archive: Spark's classes as the JVM has loaded them once, made by `backfill setup`.

Without it every start of Spark reads some 20,000 classes from jars and checks them again. Java names this
application class-data sharing (JEP 350). It changes no behaviour: a JVM that finds an archive unfit for
it (another Java, other jars) goes on without one.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets.warehouse.spark.jars import run_to_end, submit

if TYPE_CHECKING:
    from collections.abc import Callable

ARCHIVE = "classes.jsa"
WORK = Path(__file__).with_name("archived_work.py")


def archive(jars: Path, spark_home: Path, tell: Callable[[str], None]) -> None:
    """Let a Spark do what batches do, and keep the classes that it has loaded at its end.

    Args:
        jars: holds Delta's jars, and then the archive.
        spark_home: of the installed Spark.
        tell: told in words what is done, and why no archive could be made.
    """
    target = jars / ARCHIVE
    newest = max(path.stat().st_mtime for path in (spark_home / "jars", *jars.glob("*.jar")))
    if target.exists() and target.stat().st_mtime >= newest:
        return
    tell("archiving Spark's classes, so that it starts faster")
    with tempfile.TemporaryDirectory(dir=jars, prefix="archiving-") as folder:
        partial = Path(folder) / ARCHIVE
        done = run_to_end(command(jars, spark_home, partial, Path(folder)))
        if done.returncode or not partial.exists():
            target.unlink(missing_ok=True)
            last = done.stdout.strip().splitlines()[-1:] or ["it said nothing"]
            tell(f"no class archive was made, so Spark starts as before: {last[0]}")
            return
        partial.rename(target)


def command(jars: Path, spark_home: Path, partial: Path, folder: Path) -> list[str]:
    """Give the command that runs the work; its class path is that of every later start."""
    own = sorted(str(jar.resolve()) for jar in jars.glob("*.jar"))
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraClassPath": os.pathsep.join(own),
        "spark.driver.extraJavaOptions": f'"-XX:ArchiveClassesAtExit={partial}" -Xlog:cds=off',
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    options = [word for setting in settings.items() for word in ("--conf", "=".join(setting))]
    return [*submit(spark_home), *options, str(WORK), str(folder)]
