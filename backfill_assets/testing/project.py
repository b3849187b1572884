"""A project in a temporary folder: a package of models, a data folder with its state, and `backfill`.

The package lies there as files, and is edited as a person edits theirs. Commands run in this process, so that
they can share one Spark; each reads the package from disk again.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from unittest.mock import patch

from deltalake import DeltaTable

from backfill_assets.cli import project as cli_project
from backfill_assets.cli.exits import CHANGES
from backfill_assets.errors import RequestError
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.reading import Resolved, ResolvedLayers, resolve
from backfill_assets.settings import Settings, read_settings
from backfill_assets.testing.command import Ended, UnexpectedEndError, backfill

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from backfill_assets.planning.plan.plan import Plan


AnyProject = TypeVar("AnyProject", bound="TemporaryProject")


@dataclass(frozen=True)
class TemporaryProject:
    """A folder with a package of models, its data, and the commands.

    Attributes:
        folder: in which the package lies and, unless told otherwise, the data folder.
        catalog: the module with MODELS and SOURCES.
        given: variables beside, or instead of, the usual ones.
    """

    folder: Path
    catalog: str
    given: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def data(self) -> Path:
        """The data folder: `data` in the project's, unless a variable names another one."""
        return self.folder / self.given.get("BACKFILL_DATA_DIR", "data")

    @property
    def settings(self) -> Settings:
        """The settings of this project, for `read` and `resolve`."""
        return Settings(data_dir=self.variables["BACKFILL_DATA_DIR"], catalog=self.catalog)

    @property
    def variables(self) -> dict[str, str]:
        """What a person has exported who works on this project."""
        return {
            "BACKFILL_CATALOG": self.catalog,
            "BACKFILL_DATA_DIR": str(self.data),
            "BACKFILL_SPARK_MEMORY": "1g",
            "BACKFILL_SPARK_MASTER": "local[2]",
            "BACKFILL_USER": "ada",
            "PYTHONPATH": str(self.folder),
            "COLUMNS": "120",
            "NO_COLOR": "1",
            **self.given,
        }

    def backfill(self, *words: str) -> Ended:
        """Run `backfill` in this process, and give how it ended, whatever that was."""
        return backfill(*words)

    def do(self, *words: str, code: int = 0) -> Ended:
        """Run `backfill`, and insist on how it ends.

        Raises:
            UnexpectedEndError: it ended with another exit code.
        """
        ended = self.backfill(*words)
        if ended.code != code:
            raise UnexpectedEndError(ended, code)
        return ended

    def plan(self, *words: str) -> Plan:
        """Plan something that there is to do, and give the plan as it was written.

        Raises:
            UnexpectedEndError: there is nothing to do, or the request can't be met.
        """
        return read_plan(self.do("plan", *words, "--json", code=CHANGES).out)

    def edit(self, file: str, old: str, new: str) -> str:
        """Change one place of a file, and give the difference as unified text.

        Raises:
            RequestError: the file does not have that place exactly once.
        """
        path = self.folder / file
        text = path.read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise RequestError(
                found=f"{file} has {text.count(old)} times: {old}",
                expected="it there exactly once",
                do="name more of its surroundings",
            )
        changed = text.replace(old, new)
        path.write_text(changed, encoding="utf-8")
        lines = unified_diff(text.splitlines(), changed.splitlines(), file, file, lineterm="", n=1)
        return "\n".join(lines) + "\n"

    def published(self, model: str, env: str = "prod") -> pa.Table:
        """Read what an environment publishes of a model, with another library than the product's.

        Raises:
            RequestError: the model is unknown, or consists of several tables there.
        """
        return self._read(model, resolve(model, env=env, settings=self.settings))

    def built(self, model: str, plan: str) -> pa.Table:
        """Read what a plan that is not promoted yet would publish of a model.

        Raises:
            RequestError: the model is unknown, or consists of several tables, since the plan
                rebuilds some of its cells only.
        """
        return self._read(model, resolve(model, plan=plan, settings=self.settings))

    def _read(self, model: str, resolved: Resolved | ResolvedLayers) -> pa.Table:
        if not isinstance(resolved, Resolved):
            raise RequestError(
                found=f"'{model}' consists of several tables there",
                do="read it with `backfill_assets.read`",
            )
        table = DeltaTable(resolved.path, version=resolved.delta_version).to_pyarrow_table()
        return table.drop_columns("_cell")


@contextmanager
def temporary_project(
    *packages: Path, catalog: str, folder: Path | None = None, **given: str
) -> Iterator[TemporaryProject]:
    """Lay out a project in a folder of its own, and work on it until the block ends.

    Args:
        packages: folders of packages (or files) that are copied into it.
        catalog: the module with MODELS and SOURCES.
        folder: where it is to lie; unless given, in a temporary folder that goes with the block.
        given: variables beside, or instead of, the usual ones.
    """
    with ExitStack() as stack:
        place = folder or Path(stack.enter_context(tempfile.TemporaryDirectory())).resolve()
        project = TemporaryProject(place, catalog, given)
        project.data.mkdir(parents=True, exist_ok=True)
        for package in packages:
            _copy(package, place / package.name)
        stack.enter_context(entered(project))
        yield project


def _copy(package: Path, to: Path) -> None:
    if package.is_dir():
        shutil.copytree(package, to, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(package, to)


@contextmanager
def entered(project: AnyProject) -> Iterator[AnyProject]:
    """Work on a project: in its folder, with its variables, its packages importable."""
    jars = str(read_settings().jars_dir.resolve())
    away = ("BACKFILL_", "FORCE_COLOR", "TTY_COMPATIBLE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(away)}
    variables = {**kept, "BACKFILL_JARS_DIR": jars, **project.variables}
    modules_before = set(sys.modules)
    with (
        patch.dict(os.environ, variables, clear=True),
        patch.object(sys, "path", [str(project.folder), *sys.path]),
        chdir(project.folder),
    ):
        try:
            yield project
        finally:
            for name in set(sys.modules) - modules_before:
                if (getattr(sys.modules[name], "__file__", None) or "").startswith(
                    f"{project.folder}/"
                ):
                    del sys.modules[name]


@contextmanager
def leases_over() -> Iterator[None]:
    """Let commands find the claims and locks of dead processes lapsed: their clock is a lease ahead, and a second."""
    with time_passed(timedelta(seconds=read_settings().lease_seconds + 1)):
        yield


@contextmanager
def time_passed(time: timedelta) -> Iterator[None]:
    """Let the clock of commands be so far ahead."""
    real = cli_project.now

    def later() -> datetime:
        return real() + time

    with patch.object(cli_project, "now", later):
        yield
