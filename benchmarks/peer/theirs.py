"""SQLMesh's side: an environment of its own, made on demand, and each step as a process in it."""

from __future__ import annotations

import json
import shutil
import subprocess
import venv
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.peer import subject
from benchmarks.peer.project import warehouse, write_project
from benchmarks.peer.steps import Place, Taken
from benchmarks.process import measured

if TYPE_CHECKING:
    from benchmarks.peer.steps import Step
    from benchmarks.peer.subject import Size
    from benchmarks.process import Measured

SQLMESH = "sqlmesh==0.236.4"
_PROGRAM = Path(__file__).with_name("sqlmesh_step.py")
_APPLIED = "plan and apply"


def environment(folder: Path) -> Path:
    """Make SQLMesh's environment, with the Spark and Delta of ours, unless it is there.

    Returns:
        Its Python.
    """
    wanted = [SQLMESH, *(f"{name}=={version(name)}" for name in ("pyspark", "delta-spark"))]
    home = (folder / "sqlmesh").resolve()
    stamp, python = home / "installed", home / "bin" / "python"
    if not stamp.exists() or stamp.read_text() != " ".join(wanted):
        venv.create(home, clear=True, with_pip=True, symlinks=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *wanted], check=True)  # noqa: S603 - our own words
        stamp.write_text(" ".join(wanted))
    return python


@dataclass(frozen=True, slots=True)
class SqlMesh:
    """A new SQLMesh project, which knows the events and has computed nothing.

    Attributes:
        python: of SQLMesh's environment.
        folder: of the project, its tables and its state.
        size: how much there is to compute.
    """

    python: Path
    folder: Path
    size: Size

    @classmethod
    def new(cls, python: Path, folder: Path, size: Size, raw: Path) -> SqlMesh:
        """Lay the project out anew, and register the events with it.

        Args:
            python: of SQLMesh's environment.
            folder: is emptied.
            size: how much there is to compute.
            raw: where the events lie.
        """
        shutil.rmtree(folder, ignore_errors=True)
        made = cls(python, folder.resolve(), size)
        write_project(made.folder, size, subject.NO_EDIT)
        made._run({"register": str(raw / "sources" / "peer" / "ad_events")})
        return made

    def take(self, step: Step) -> Taken:
        """Edit the project, plan and apply."""
        write_project(self.folder, self.size, step.edit)
        run = self._run({"plan": _arguments(step)})
        lines = run.output.splitlines()
        places = {
            model: Place(warehouse(self.folder) / f"{schema}.db" / table)
            for model, (schema, table) in json.loads(lines[-1]).items()
        }
        return Taken({_APPLIED: run}, places)

    def _run(self, request: dict[str, object]) -> Measured:
        command = [str(self.python), "-P", str(_PROGRAM), str(self.folder), json.dumps(request)]
        # What SQLMesh prints of its progress belongs into no terminal.
        return measured(command, {"PYSPARK_PYTHON": str(self.python), "PYTHONPATH": ""})


def _arguments(step: Step) -> dict[str, object]:
    """Give the arguments of SQLMesh's plan."""
    now = str(subject.LAST_DAY + timedelta(days=1))
    asked: dict[str, object] = {"execution_time": now}
    if step.restated:
        first, last = map(str, subject.RESTATED)
        asked |= {"restate_models": [subject.PERFORMANCE], "start": first, "end": last}
    if step.forward_only:
        asked["forward_only"] = True
    return asked
