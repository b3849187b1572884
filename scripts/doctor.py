"""What a machine needs before anything is installed: a Python and a Java that fit.

Any Python from 3.6 on must be able to read this file, for its first duty is to say that the Python
is too old: no `from __future__ import annotations`, no `list[str]` in a signature.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST_PYTHON = (3, 11)
FIRST_UNTRIED_PYTHON = (3, 14)
JAVA_VERSIONS = (17, 21)
JAVA_SECONDS = 60


def main() -> int:
    """Print every problem with its remedy; return 1 when there is one."""
    problem = python_problem(sys.version_info[:2], sys.executable)
    problem = problem or java_problem()
    if problem:
        print(f"\n{problem}\n", file=sys.stderr)
    return 1 if problem else 0


def python_problem(version: tuple, executable: str) -> str:
    """Return why this Python does not fit, or an empty text."""
    if OLDEST_PYTHON <= version < FIRST_UNTRIED_PYTHON:
        return ""
    found = ".".join(str(part) for part in version)
    return (
        f"Wrong Python: found {found} ({executable}), expected 3.11, 3.12 or 3.13.\n"
        "Install one of them and name it: make env PYTHON=python3.11"
    )


def java_problem() -> str:
    """Return why the Java that Spark would start does not fit, or an empty text."""
    home = os.environ.get("JAVA_HOME", "")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java") or ""
    origin = f"{java}, named by JAVA_HOME" if home else java
    if not java:
        return f"No Java: found no `java` on PATH, and JAVA_HOME is not set.\n{java_remedy()}"
    if not os.access(java, os.X_OK):
        return f"No Java: JAVA_HOME is {home}, but {java} is not a program.\n{java_remedy()}"

    said = words_of(java)
    version = java_version(said)
    if version is None:
        return f"Broken Java: {origin} said {first_line(said)!r} for -version.\n{java_remedy()}"
    if version not in JAVA_VERSIONS:
        return f"Wrong Java: found {version} ({origin}), expected 17 or 21.\n{java_remedy()}"
    return ""


def words_of(java: str) -> str:
    """Return all that `java -version` prints; it prints to its error stream."""
    try:
        done = subprocess.run(
            [java, "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=JAVA_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout.decode(errors="replace")


def java_version(said: str):  # noqa: ANN201 - an optional int can't be written for Python 3.6
    """Return the feature version: 17 for "17.0.15", 8 for "1.8.0_392"; None when there is none."""
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found.group(1)) if found else None


def first_line(said: str) -> str:
    """Return the first line that says something."""
    return next((line.strip() for line in said.splitlines() if line.strip()), "nothing")


def java_remedy() -> str:
    """Return how to get a Java that fits, on this machine."""
    installed = java_homes()
    if installed:
        return f"This machine has one that fits: export JAVA_HOME={installed[0]}"
    if platform.system() == "Darwin":
        return (
            "Install Java 17 or 21: brew install openjdk@17, "
            "then export JAVA_HOME=$(brew --prefix openjdk@17)"
        )
    if shutil.which("apt-get"):
        return "Install Java 17 or 21: sudo apt-get install openjdk-17-jre-headless"
    if shutil.which("dnf"):
        return "Install Java 17 or 21: sudo dnf install java-21-openjdk-headless"
    return "Install Java 17 or 21 (any OpenJDK build) and set JAVA_HOME to its folder."


def java_homes() -> list:
    """Return the Java folders in the usual place whose own words say that they fit."""
    named = [home for v in JAVA_VERSIONS for home in Path("/usr/lib/jvm").glob(f"*{v}*")]
    programs = [home / "bin" / "java" for home in named]
    return [
        str(java.parent.parent)
        for java in programs
        if os.access(str(java), os.X_OK) and java_version(words_of(str(java))) in JAVA_VERSIONS
    ]


if __name__ == "__main__":
    sys.exit(main())
