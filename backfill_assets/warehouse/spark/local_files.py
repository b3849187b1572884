"""Hadoop's access to local files without a process for each permission, compiled by `backfill setup`.

Where Hadoop's native library is missing, as from the Spark of PyPI, Hadoop runs `chmod` up to four times for
every file that it writes: two thirds of the time in which a task writes the files of thirty small cells.
`LocalFiles.java` sets permissions through Java. Spark brings the compiler (Janino), so no JDK is needed. A
Spark whose folder of jars lacks the result works as before.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets.warehouse.spark.jars import run_to_end, submit, telling_lines

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE = Path(__file__).with_name("LocalFiles.java")
COMPILING = Path(__file__).with_name("compiling.py")
LOCAL_FILES = {"spark.hadoop.fs.file.impl": "backfill_assets.LocalFiles"}
"""The setting by which Spark uses it, where the jar is on its class path."""
_PREFIX = "backfill-assets-local-files-"


def jar_in(jars: Path) -> Path:
    """Name the jar that the present source is compiled into."""
    return jars / f"{_PREFIX}{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:8]}.jar"


def compile_local_files(jars: Path, spark_home: Path, tell: Callable[[str], None]) -> None:
    """Compile the source into a jar, unless that has been done.

    Args:
        jars: the folder with Delta's jars, which receives this one.
        spark_home: of the installed Spark.
        tell: told in words what is done, and why no jar could be made.
    """
    target = jar_in(jars)
    if target.exists():
        return
    tell("compiling how Spark writes local files")
    for older in jars.glob(f"{_PREFIX}*"):
        older.unlink()
    partial = target.with_suffix(".partial")
    program = [str(COMPILING), str(SOURCE), str(partial)]
    done = run_to_end([*submit(spark_home), "--master", "local[1]", *program])
    if done.returncode or not partial.exists():
        partial.unlink(missing_ok=True)
        tell(f"that failed, so Spark writes local files as before: {telling_lines(done.stdout)}")
        return
    partial.rename(target)
