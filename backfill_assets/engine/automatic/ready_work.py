"""Look what is ready to be released: in prod, and in every plan that the queue has.

From recorded state alone: no Spark, no table is read. It decides nothing: the one rule is asked on
each picture, and what it finds is offered, but for cells that are somebody else's business.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from backfill_assets.engine.automatic.looker import looking, plan_scenes, prod_scene
from backfill_assets.engine.automatic.scenes import in_turn
from backfill_assets.engine.automatic.settled import Settled, hashed, marked
from backfill_assets.engine.project.frozen_code import FrozenCode
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.automation import Automation
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.planning.queue.off_peak import read_off_peak
from backfill_assets.planning.queue.releasing import Offer, ReleaseKind
from backfill_assets.planning.rule.late_work import ASKED_BY
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.stored_plan import OPEN, PlanStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from backfill_assets.engine.automatic.scenes import Looked, Scene
    from backfill_assets.engine.project.project import Project
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.rule.failed_cells import Rest
    from backfill_assets.snapshots.queued_plan import QueuedPlan
    from backfill_assets.snapshots.stored_plan import StoredPlan

MOST = 40_000
"""About how many cells one look reads per environment, so that none takes long; the rest is next."""


@dataclass(frozen=True, slots=True)
class ReadyWork:
    """What a look found.

    Attributes:
        settled: what needs no second look.
        offers: what could be released.
        reported: cells that are ready to be built, of models that are only reported.
        notes: what keeps plans from going on, in words.
        asked: how many models were asked about.
    """

    settled: Settled
    offers: tuple[Offer, ...]
    reported: CellsByModel
    notes: tuple[str, ...]
    asked: int


def ready_work(project: Project, settled: Settled, most: int = MOST) -> ReadyWork:
    """Look at prod and at every plan in the queue.

    Args:
        project: where to look.
        settled: what earlier looks found to need nothing.
        most: about how many cells are read per environment or plan; one model at least is asked about.
    """
    project = looking(project)
    found = _Look(project, settled, most)
    plans = project.store.plans.latest(statuses=OPEN)
    found.at(prod_scene(project, plans))
    found.late(plans)
    stored = {one.plan_id: one for one in plans}
    for queued in project.store.queue.queued_plans():
        if queued.plan_id in stored:
            found.at_plan(stored[queued.plan_id], queued)
    return ReadyWork(
        Settled(found.keys, found.next),
        tuple(found.offers),
        found.reported,
        tuple(found.notes),
        found.asked,
    )


@dataclass
class _Look:
    """One look, while it lasts."""

    project: Project
    settled: Settled
    most: int
    keys: dict[str, str] = field(default_factory=dict[str, str])
    next: dict[str, int] = field(default_factory=dict[str, int])
    offers: list[Offer] = field(default_factory=list[Offer])
    reported: CellsByModel = field(default_factory=CellsByModel)
    notes: list[str] = field(default_factory=list[str])
    stale: dict[str, str] = field(default_factory=dict[str, str])
    asked: int = 0

    def late(self, plans: Sequence[StoredPlan]) -> None:
        """Offer what late data needs, by the name of all that decides what becomes of it.

        That is what is stale, who is at work there, what a person last said of its plans and when, what
        the models declare, and what is owed. Which of it may be built without a person is found out by
        whoever does it.
        """
        stale = {**Settled(self.keys).stale(), **self.stale}
        if stale:
            late = {one.plan_id for one in plans if one.created_by == ASKED_BY}
            spoken_of = [
                one for one in self.project.store.queue.queued_plans() if one.plan_id in late
            ]
            self.notes += [
                f"late data waits: its plan {one.plan_id} is {one.control.words}; "
                f"`backfill resume {one.plan_id}` lets it go on"
                for one in spoken_of
                if one.control.holds
            ]
            # With the instant: a run that met the pause has ended well under the name of before it.
            said = [[one.plan_id, one.control.value, str(one.set_at)] for one in spoken_of]
            others = sorted(one.plan_id for one in plans)
            words = {
                name: at.fingerprint
                for name, at in self.project.store.environments.pointers(PROD).items()
            }
            mark = hashed(
                [stale, others, said, words, self.project.store.environments.owed_marks(PROD)]
            )
            self.offers.append(Offer(PROD, ReleaseKind.LATE, mark=mark))

    def at_plan(self, stored: StoredPlan, queued: QueuedPlan) -> None:
        """Look at a plan; one that can't go on keeps nothing else from going on."""
        if stored.status is not PlanStatus.APPLYING or queued.queued_at is None:
            return
        if queued.control.holds:
            self.notes.append(f"plan {stored.plan_id} is {queued.control.words}")
            return
        try:
            if queued.off_peak and not read_off_peak(queued.off_peak).covers(self.project.clock()):
                self.notes.append(f"plan {stored.plan_id} waits for its hours, {queued.off_peak}")
                return
            plan = _parsed(stored.content)
            FrozenCode.of(plan, lambda: self.project.loaded.fingerprints).check()
            scenes = list(plan_scenes(self.project, plan))
            before = len(self.offers)
            for scene in scenes:
                self.at(scene)
        except BackfillAssetsError as error:
            self.notes.append(str(error))
            return
        if len(self.offers) == before and all(map(self._is_done, scenes)):
            self.offers.append(Offer(plan.environment, ReleaseKind.FINISH, plan_id=plan.plan_id))

    def at(self, scene: Scene) -> None:
        """Ask about the models of a scene that are not settled, as many as one look may."""
        now = {name: scene.key(name) for name in scene.names}
        todo: list[str] = []
        for name, key in now.items():
            if self.settled.knows(_name(scene, name), key):
                self.keys[_name(scene, name)] = self.settled.keys[_name(scene, name)]
            else:
                todo.append(name)
        start = self.settled.next.get(scene.title, 0)
        asked = in_turn(scene, todo, start, self.most)
        self.asked += len(asked)
        rests: dict[str, Rest] = {}
        for one in scene.looks(asked) if asked else ():
            name = one.model.name
            self._found(scene, one)
            stale = "" if self._only_reported(name) else one.stale
            if stale:
                self.stale[_name(scene, name)] = stale
            if one.rest is not None:
                rests[name] = one.rest
            if one.settled:
                self.keys[_name(scene, name)] = marked(now[name], end=one.end, stale=stale)
        self._tell_rests(scene, rests)
        self._tell_failures(scene)
        if len(asked) < len(todo):
            self.next[scene.title] = scene.names.index(asked[-1]) + 1

    def _found(self, scene: Scene, one: Looked) -> None:
        name = one.model.name
        if not one.offers:
            return
        if scene.plan_id is None and self._only_reported(name):
            self.reported |= CellsByModel.of((name, offer.cells) for offer in one.offers)
            return
        owner = scene.run.store.versions.owner(scene.pointers[name].version)
        if owner in (None, scene.run.environment.name):
            self.offers += one.offers
        else:
            self.notes.append(f"{name}: its table is filled by {owner}, which alone writes it")

    def _tell_rests(self, scene: Scene, rests: Mapping[str, Rest]) -> None:
        """Say why cells rest that come again by themselves, once per cause."""
        causes: dict[str, list[str]] = {}
        for name, rest in rests.items():
            batch = self.project.store.batches.find(rest.batch_id)
            error = (batch.error if batch else None) or "nobody said"
            causes.setdefault(error, []).append(f"{name} at {rest.until:%Y-%m-%d %H:%M} UTC")
        for error, listed in causes.items():
            self.notes.append(
                f"cells {_whose(scene)} have failed and are tried again by themselves: "
                f"{', '.join(listed)}; it was: {error}"
            )

    def _tell_failures(self, scene: Scene) -> None:
        """Name the models of which nothing more comes by itself."""
        prefix = _name(scene, "")
        failed = [
            one.removeprefix(prefix)
            for one in Settled(self.keys).failed()
            if one.startswith(prefix)
        ]
        if failed:
            self.notes.append(
                f"cells {_whose(scene)} have failed and are not asked for again before their code or their "
                f"input changes: {', '.join(failed)}; see `backfill batches --failed`"
            )

    def _only_reported(self, name: str) -> bool:
        return self.project.loaded.graph.models[name].automated is Automation.REPORT

    def _is_done(self, scene: Scene) -> bool:
        known = Settled(self.keys)
        return all(known.is_done(_name(scene, name)) for name in scene.names)


def _name(scene: Scene, model: str) -> str:
    return f"{scene.title}:{model}"


def _whose(scene: Scene) -> str:
    return f"of plan {scene.plan_id}" if scene.plan_id else "missing"


@lru_cache(maxsize=16)
def _parsed(content: str) -> Plan:
    return read_plan(content)
