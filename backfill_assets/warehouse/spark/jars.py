"""Delta's jars, and those for S3: fetched once by Spark's own resolver into a folder.

Later starts of Spark name these files and resolve nothing. The folder is whole or absent: it is filled
under another name and renamed at the end.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SCALA = "2.13"
STAMP = "fetched"
AWS_SDK = "2.35.4"
"""The version that Hadoop 3.5.0 was built and tested with."""
AWS_BUNDLE = "software.amazon.awssdk:bundle"
"""Clients of every service of AWS, 600 MB: the few that S3 needs are named instead of it."""
OURS = ("io.delta_", "org.apache.hadoop_hadoop-aws-", "software.amazon.")
UNLESS_BROUGHT = ("org.locationtech.jts_", "org.reactivestreams_")
NO_NETWORK = (
    "connect this machine, or name a mirror (export DEFAULT_ARTIFACT_REPOSITORY=<address>) or a proxy (export "
    'JAVA_TOOL_OPTIONS="-Dhttps.proxyHost=<host> -Dhttps.proxyPort=<port>"), and run `backfill setup` again; '
    "nothing was left half done"
)


def fetch_jars(folder: Path, *, s3: bool = False, tell: Callable[[str], None]) -> None:
    """Let a folder hold Delta's jars, and its folder `s3` those for S3 if wanted; what is there stays.

    Args:
        folder: where; it is made.
        s3: whether Spark is to read and write S3.
        tell: told in words what is fetched.

    Raises:
        RequestError: Spark could not resolve them.
    """
    home = spark_home()
    fetch(folder, coordinate(), home, tell)
    if s3:
        fetch(folder / "s3", s3_coordinates(home), home, tell)


def spark_home() -> Path:
    """Give the folder of the installed Spark, which is not imported for it."""
    package = find_spec("pyspark")
    if package is None or package.origin is None:  # pragma: no cover - it is a dependency
        raise ModuleNotFoundError("pyspark")
    return Path(package.origin).parent


def coordinate() -> str:
    """Return the Maven name of the Delta that fits the installed packages."""
    spark = ".".join(version("pyspark").split(".")[:2])
    return f"io.delta:delta-spark_{spark}_{SCALA}:{version('delta-spark')}"


def s3_coordinates(spark_home: Path) -> str:
    """Return the Maven names of what Spark needs for S3, for the Hadoop that it brings.

    Raises:
        RequestError: it is not known which Hadoop that is.
    """
    for jar in (spark_home / "jars").glob("hadoop-client-api-*.jar"):
        hadoop = jar.stem.removeprefix("hadoop-client-api-")
        sdk = (
            f"software.amazon.awssdk:{name}:{AWS_SDK}" for name in ("s3-transfer-manager", "sts")
        )
        return ",".join([f"org.apache.hadoop:hadoop-aws:{hadoop}", *sdk])
    raise RequestError(
        found="the installed pyspark has no hadoop-client-api jar", do="install pyspark again"
    )


def submit(spark_home: Path) -> list[str]:
    """Give the words that begin a program of this very Spark in this very Python, whatever is set."""
    own = [f"SPARK_HOME={spark_home}", f"PYSPARK_PYTHON={sys.executable}"]
    return ["/usr/bin/env", *own, str(spark_home / "bin" / "spark-submit")]


def run_to_end(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a program of Spark's to its end, and give its exit code and all that it said."""
    return subprocess.run(  # noqa: S603 - Spark's own program
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )


def fetch(target: Path, wanted: str, spark_home: Path, tell: Callable[[str], None]) -> None:
    """Make `target` hold the jars of `wanted` that Spark does not bring itself.

    Raises:
        RequestError: Spark could not resolve them.
    """
    if is_filled(target, wanted):
        return
    tell(f"fetching {wanted} into {target}")
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        jars = partial / "jars"
        jars.mkdir(parents=True)
        resolve(wanted, partial / "ivy", spark_home)
        for jar in needed_jars((partial / "ivy" / "jars").glob("*.jar"), spark_home / "jars"):
            shutil.copy2(jar, jars)
        names = sorted(jar.name for jar in jars.iterdir())
        (jars / STAMP).write_text("\n".join([wanted, *names]) + "\n")
        shutil.rmtree(target, ignore_errors=True)
        jars.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def is_filled(target: Path, wanted: str) -> bool:
    """Return whether `target` was filled for `wanted` and still has every file."""
    stamp = target / STAMP
    if not stamp.exists():
        return False
    fetched, *names = stamp.read_text().splitlines()
    return fetched == wanted and all((target / name).exists() for name in names)


def resolve(wanted: str, ivy: Path, spark_home: Path) -> None:
    """Let spark-submit resolve `wanted` into `ivy` around a program that does nothing.

    Raises:
        RequestError: it ended with another code than 0, or did not bring the first of them.
    """
    nothing = ivy.with_name("nothing.py")
    nothing.write_text("")
    settings = [f"spark.jars.ivy={ivy}", "spark.master=local[1]", "spark.ui.enabled=false"]
    options = [word for setting in settings for word in ("--conf", setting)]
    packages = ("--packages", wanted, "--exclude-packages", AWS_BUNDLE)
    done = run_to_end([*submit(spark_home), *packages, *options, str(nothing)])
    group, name, version_ = wanted.partition(",")[0].split(":")
    if done.returncode or not (ivy / "jars" / f"{group}_{name}-{version_}.jar").exists():
        raise RequestError(
            found=f"Spark's resolver could not fetch {wanted}: {telling_lines(done.stdout)}",
            expected="an answer of the Maven repository that Spark asks by default",
            do=NO_NETWORK,
        )


def telling_lines(said: str) -> str:
    """Return the lines of a resolver's long report that name a cause."""
    lines = [line.strip() for line in said.splitlines()]
    causes = re.compile(
        "not found|unresolved|exception|error|refused|timed out|unknown", re.IGNORECASE
    )
    telling = [line for line in lines if causes.search(line) and not line.startswith("at ")]
    return "\n".join((telling or lines)[:5])


def needed_jars(resolved: Iterable[Path], shipped: Path) -> list[Path]:
    """Return the jars of Delta and of S3, and those beside them that Spark does not bring.

    The other jars are older versions of what Spark brings, or clients of Unity Catalog.
    """
    brought = {artifact(jar.name) for jar in shipped.glob("*.jar")}
    return [
        jar
        for jar in resolved
        if jar.name.startswith(OURS)
        or (jar.name.startswith(UNLESS_BROUGHT) and artifact(jar.name) not in brought)
    ]


def artifact(file_name: str) -> str:
    """Return a jar's artifact id: "jts-core" of "org.locationtech.jts_jts-core-1.20.0.jar"."""
    without_version = re.sub(r"-\d[^_]*\.jar$", "", file_name)
    return re.sub(r"^[\w-]+(\.[\w-]+)+?_(?!\d)", "", without_version)
