"""Compile a Java file into a jar with the compiler that Spark brings: `spark-submit compiling.py SOURCE JAR`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

from pyspark.java_gateway import launch_gateway


def compile_java(source: Path, target: Path) -> None:
    """Compile one Java file, its nested classes included."""
    gateway: Any = launch_gateway()  # its names are those of the JVM
    compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(source.read_text())
    with ZipFile(target, "w") as jar:
        for name, code in compiler.getBytecodes().items():
            jar.writestr(ZipInfo(f"{name.replace('.', '/')}.class"), bytes(code))


if __name__ == "__main__":
    compile_java(Path(sys.argv[1]), Path(sys.argv[2]))
