"""A scratch project: the marketing models as somebody's own package, their events, and `backfill`.

The package lies in a folder of its own and is edited there, as a person edits theirs. The command
runs in this process, so that all stories share one Spark; it reads the package from disk each time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets.pipelines.marketing.ad_events import generate_events
from backfill_assets.pipelines.marketing.sources import FIRST_DAY, LAST_DAY
from backfill_assets.testing import Ended, TemporaryProject
from backfill_assets_tests.spark import jars_dir

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE = "ads"
PERFORMANCE = "marketing.campaign_performance"
TRENDS = "marketing.campaign_trends_monthly"
ROI = "marketing.roi_analysis"
MODELS = (PERFORMANCE, TRENDS, ROI)
EVENTS = "sources/marketing/ad_events"
QUARTER, FILLED = 91, 84
"""The days of the shorter history, and those of them that a project which goes on has filled."""
LAST_OF_QUARTER = date(2024, 3, 31)
LAST_OF_YEAR = date.fromisoformat(LAST_DAY)

_CHECKOUT = Path(__file__).resolve().parents[2]
_MARKETING = _CHECKOUT / "backfill_assets" / "pipelines" / "marketing"
_TAKEN = ("models.py", "schemas.py", "sources.py", "*.sql")
_CATALOG = f'''"""The catalog of a scratch project."""

from {PACKAGE} import models, sources

MODELS = models.MODELS
SOURCES = sources.SOURCES
'''


@dataclass(frozen=True)
class Project(TemporaryProject):
    """A folder with a package of models, a data folder, and the commands of this checkout."""

    catalog: str = f"{PACKAGE}.catalog"

    @property
    def package(self) -> Path:
        """The folder of the package that holds the models."""
        return self.folder / PACKAGE

    @property
    def variables(self) -> dict[str, str]:
        """What a person has exported who works on this project."""
        return {
            **super().variables,
            "BACKFILL_JARS_DIR": str(jars_dir().resolve()),
            "BACKFILL_LEASE_SECONDS": "20",
            "COLUMNS": "200",
        }

    def process(self, *words: str) -> Ended:
        """Run the command as a process of its own, as a person would."""
        done = subprocess.run(
            [str(Path(sys.executable).parent / "backfill"), *words],
            cwd=self.folder,
            env={**os.environ, **self.variables},
            capture_output=True,
            text=True,
            check=False,
        )
        return Ended(words, done.returncode, done.stdout, done.stderr)

    def edit(self, file: str, old: str, new: str) -> str:
        """Change one place of a file of the package; the place has to be there once."""
        return super().edit(f"{PACKAGE}/{file}", old, new)

    def append(self, file: str, text: str) -> None:
        """Add to the end of a file of the package."""
        path = self.package / file
        path.write_text(path.read_text() + text)


def new_project(folder: Path, *, last_day: str = LAST_DAY) -> Project:
    """Lay out the package; nothing is landed and nothing filled."""
    project = Project(folder)
    project.package.mkdir(parents=True)
    project.data.mkdir()
    for pattern in _TAKEN:
        for file in _MARKETING.glob(pattern):
            text = file.read_text().replace("backfill_assets.pipelines.marketing", PACKAGE)
            (project.package / file.name).write_text(text)
    (project.package / "__init__.py").touch()
    (project.package / "catalog.py").write_text(_CATALOG)
    project.edit("sources.py", f'"{LAST_DAY}"', f'"{last_day}"')
    # The last whole month of the shorter history.
    whole = (date.fromisoformat(last_day) + timedelta(days=1)).replace(day=1) - timedelta(days=1)
    project.edit("models.py", '"2025-05-31"', f'"{whole}"')
    # Here a day without ads is an ordinary day, so one that is deleted becomes empty.
    project.edit("sources.py", "when_empty=WhenEmpty.WAIT", "when_empty=WhenEmpty.ACCEPT")
    return project


def land_events(spark: SparkSession, project: Project, *, rows: int, days: int) -> None:
    """Land ad events as the ad platform would: partitioned by the day they happened on."""
    events = generate_events(spark, rows=rows, seed=7, days=days, start=FIRST_DAY)
    path = str(project.data / EVENTS)
    events.write.format("delta").partitionBy("event_date").save(path)


def copied(project: Project, folder: Path) -> Project:
    """Copy a project with its data; the state names its tables below the data folder."""
    shutil.copytree(
        project.folder, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".cache")
    )
    return Project(folder)


def day(number: int) -> date:
    """Give a day of the history, the first being 0."""
    return date.fromisoformat(FIRST_DAY) + timedelta(days=number)
