"""The class archive of a checkout: Spark's classes as the JVM has loaded them once, made at set-up.

Without it every start of Spark reads some 20,000 classes from jars and checks them again. Java names this
application class-data sharing (JEP 350). It changes no behaviour: a JVM that finds an archive unfit for
it (another Java, other jars) goes on without one. Runs in the environment's Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

ARCHIVE = "classes.jsa"
WORK = Path(__file__).with_name("archived_work.py")


def main(root: Path) -> int:
    """Make the archive unless it is there; without one Spark only starts slower, so the code is 0."""
    package = find_spec("pyspark")
    if package is None or package.origin is None:
        print("\nFound no pyspark in this Python. Run `make env` instead.\n", file=sys.stderr)
        return 1
    archive(root / ".spark-jars", Path(package.origin).parent)
    return 0


def archive(jars: Path, spark_home: Path) -> None:
    """Let a Spark do what batches do, and keep the classes that it has loaded at its end.

    Args:
        jars: holds Delta's jars, and then the archive.
        spark_home: of the installed Spark.
    """
    target = jars / ARCHIVE
    if target.exists() and target.stat().st_mtime > (spark_home / "jars").stat().st_mtime:
        return
    print("Archiving Spark's classes, so that it starts faster ...", flush=True)
    target.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=jars, prefix="archiving-") as folder:
        partial = Path(folder) / ARCHIVE
        done = subprocess.run(
            command(jars, spark_home, partial, Path(folder)),
            env=os.environ | {"SPARK_HOME": str(spark_home), "PYSPARK_PYTHON": sys.executable},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode or not partial.exists():
            last = done.stdout.strip().splitlines()[-1:] or ["it said nothing"]
            print(
                f"No class archive was made, so Spark starts as before: {last[0]}", file=sys.stderr
            )
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
    options = [word for one in settings.items() for word in ("--conf", "=".join(one))]
    return [str(spark_home / "bin" / "spark-submit"), *options, str(WORK), str(folder)]


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
