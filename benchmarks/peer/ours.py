"""Our side: the same steps through our own commands, as a person would start them."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.commands import BACKFILL
from benchmarks.peer import subject
from benchmarks.peer.steps import FIRST, NOTHING, Place, Taken
from benchmarks.process import measured

if TYPE_CHECKING:
    from benchmarks.peer.steps import Step
    from benchmarks.peer.subject import Size
    from benchmarks.process import Measured

_CHANGES = 2
EVENTS = "sources/peer/ad_events"


@dataclass(slots=True)
class Ours:
    """A new project of ours, which has computed nothing.

    Attributes:
        folder: of its data and its state.
        size: how much there is to compute.
        edit: how the models are declared by now.
    """

    folder: Path
    size: Size
    edit: str = subject.NO_EDIT

    @classmethod
    def new(cls, folder: Path, size: Size, raw: Path) -> Ours:
        """Lay the project out anew.

        Args:
            folder: is emptied.
            size: how much there is to compute.
            raw: where the events lie.
        """
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "sources").symlink_to((raw / "sources").resolve())
        return cls(folder.resolve(), size)

    def take(self, step: Step) -> Taken:
        """Edit the project; then `run`, `plan`, or plan, apply and promote."""
        self.edit = step.edit
        if step.short == FIRST:
            return self._first()
        if step.short == NOTHING:
            return Taken({"plan": self.command("plan")}, self._places())
        commands = self.build(*_options(step))
        commands["promote"] = self.promote(commands["plan"])
        return Taken(commands, self._places())

    def build(self, *options: str) -> dict[str, Measured]:
        """Plan and apply."""
        plan = self.command("plan", *options, ends=(_CHANGES,))
        return {"plan": plan, "apply": self.command("apply", plan_of(plan), "--yes")}

    def promote(self, plan: Measured) -> Measured:
        """Promote what a plan has built."""
        return self.command("promote", plan_of(plan), "--yes")

    def command(self, *words: str, ends: tuple[int, ...] = (0,)) -> Measured:
        """Run one of our commands."""
        env = {
            "BACKFILL_CATALOG": "benchmarks.peer.catalog",
            "BACKFILL_DATA_DIR": str(self.folder),
            "BENCHMARK_EDIT": self.edit,
            "BENCHMARK_DAYS": str(self.size.days),
        }
        return measured([*BACKFILL, *words, "--json"], env, ends=ends)

    def copied(self, folder: Path) -> Ours:
        """Copy the project with its data, its events included."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns(".cache"))
        return Ours(folder.resolve(), self.size, self.edit)

    def _first(self) -> Taken:
        run = self.command("run")
        models: dict[str, Any] = json.loads(run.output)["models"]
        batches = sum(model["batches"] for model in models.values())
        locked = sum(
            model["seconds"][lap] for model in models.values() for lap in ("commit", "state")
        )
        return Taken({"run": run}, self._places(), locked / batches)

    def _places(self) -> dict[str, Place]:
        found = json.loads(self.command("resolve", *subject.MODELS).output)["models"]
        return {
            name: Place(Path(table["path"]), table["delta_version"])
            for name, (table,) in found.items()
        }


def plan_of(plan: Measured) -> str:
    """Read a plan's id off what `plan` said."""
    return json.loads(plan.output)["plan_id"]


def _options(step: Step) -> list[str]:
    options: list[str] = []
    if step.restated:
        first, last = subject.RESTATED
        options += ["--restate", f"{subject.PERFORMANCE}:{first}..{last}"]
    if step.forward_only:
        options.append("--forward-only")
    return options
