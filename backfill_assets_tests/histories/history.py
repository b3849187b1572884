"""One history: a world with what is declared and sold in it, and what was done so far."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, TypeVar

from backfill_assets.engine.automatic.scan_memory import ScanMemory
from backfill_assets.engine.project.plan_terms import PlanTerms
from backfill_assets.intervals.text import ranges_text
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.state.store import Store
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import LEASE
from backfill_assets_tests.histories.checks import holds_what_follows, unchanged, waits_for_rows
from backfill_assets_tests.histories.deliveries import ARRIVALS, FIRST_DELIVERY, deliveries
from backfill_assets_tests.histories.hours import HOURS, is_over, visits
from backfill_assets_tests.histories.models import (
    FIRST_DAY,
    WITH_DELIVERIES,
    WITH_HOURS,
    WITH_RECEIPTS,
    WITH_WEIGHTS,
    graph_of,
    source,
)
from backfill_assets_tests.histories.published import contents, look, starts
from backfill_assets_tests.histories.receipts import RECEIPTS
from backfill_assets_tests.histories.sales import Sales

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from backfill_assets.intervals import IntervalSet
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.engine.world import World
    from backfill_assets_tests.histories.backups import Backup
    from backfill_assets_tests.histories.declared import Declared
    from backfill_assets_tests.histories.oracle import Landed, When
    from backfill_assets_tests.histories.published import Contents, Looked
    from backfill_assets_tests.histories.slices import Slice

Chosen = TypeVar("Chosen")

DEVS = ("dev", "dev_two")
"""Environments that follow prod; each is made by its first plan."""

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
_MOST_RECENT = 4


@dataclass(frozen=True, slots=True)
class Promoted:
    """What was published before and after a promotion, and how long the way back was promised then."""

    before: Contents
    after: Contents
    at: datetime
    promise: timedelta


@dataclass
class History:
    """A world and its people, who do things at random.

    Attributes:
        seed: all that the history depends on.
        world: tables, state and clock.
        random: what everything is chosen by.
        sales: what was sold, by the day.
        visits: who visited, by the hour, where there are hours; else it stays without rows.
        delivered: what was delivered, by the day, where there are deliveries.
        first: what is declared at first.
        project: what is declared now, by model.
        said: what was done, a line each.
        done: how often each step was taken.
        refused: how often each step was refused, with the class of the refusal.
        promoted: what promotions of plans have changed in their environments, by plan.
        definitions: what each model was published as at any time, by environment and model.
        dropped: the plans that have changed an environment which was dropped since.
        held: what the reader is held at; None while it is not.
        mixed: by environment, the models of which older cells keep an earlier definition by decision.
        blank: by environment and model, the cells that a plan has recorded as empty by decision.
        withdrawn: the amounts of deliveries that have vanished, by the day.
        scans: what the queue's sensor remembers of its scans.
        past: what prod published after each step, with the time.
        results: how much of that there was when each result was registered, by its name.
        states: how often the state was lost, and rebuilt or restored.
        backup: the last copy of the state that could be restored; None where there is none.
        promise: how long ways back are promised now.
        slices: the conditions on rows that plans were asked for, by their text.
    """

    seed: int
    world: World
    random: Random
    sales: Sales
    visits: Sales
    delivered: Sales
    first: Mapping[str, Declared]
    project: dict[str, Declared]
    said: list[str] = field(default_factory=list[str])
    done: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])
    promoted: dict[str, Promoted] = field(default_factory=dict[str, Promoted])
    dropped: set[str] = field(default_factory=set[str])
    held: Contents | None = None
    definitions: defaultdict[tuple[str, str], set[Declared]] = field(
        default_factory=lambda: defaultdict(set)
    )
    mixed: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    blank: defaultdict[tuple[str, str], set[datetime]] = field(
        default_factory=lambda: defaultdict(set)
    )
    withdrawn: dict[When, list[int]] = field(default_factory=dict["When", list[int]])
    scans: ScanMemory = field(default_factory=ScanMemory)
    past: list[tuple[datetime, Contents]] = field(default_factory=list["tuple[datetime, Contents]"])
    results: dict[str, int] = field(default_factory=dict[str, int])
    states: int = 0
    backup: Backup | None = None
    promise: timedelta = 30 * DAY
    slices: dict[str, Slice] = field(default_factory=dict[str, "Slice"])

    @classmethod
    def of(cls, seed: int, world: World) -> History:
        """Give the history of a seed, before its first step; every fourth one has hours, receipts, weights or deliveries."""
        sales, visited, delivered = (
            Sales(world.root, one) for one in (source(), visits(), deliveries())
        )
        first = (WITH_HOURS, WITH_RECEIPTS, WITH_WEIGHTS, WITH_DELIVERIES)[seed % 4]
        random = Random(seed)  # noqa: S311 - no secret
        return cls(seed, world, random, sales, visited, delivered, first, dict(first))

    @property
    def graph(self) -> Graph:
        """What is declared now."""
        return graph_of(self.project, (sold.source for sold in self.sources))

    @property
    def sources(self) -> list[Sales]:
        """The sources that are a part of the project."""
        others = {self.has_hours: self.visits, self.has_deliveries: self.delivered}
        return [self.sales, *(sold for there, sold in others.items() if there)]

    @property
    def plans(self) -> Plans:
        """Who makes and applies plans."""
        return Plans(self.world, given={"terms": PlanTerms(promise_days=self.promise.days)})

    @property
    def today(self) -> date:
        """The day that is not over yet."""
        return self.world.clock.now.date()

    @property
    def has_hours(self) -> bool:
        """Whether hours are a part of the project."""
        return HOURS in self.first

    @property
    def has_receipts(self) -> bool:
        """Whether receipts are a part of the project."""
        return RECEIPTS in self.first

    @property
    def has_deliveries(self) -> bool:
        """Whether deliveries are a part of the project."""
        return ARRIVALS in self.first

    @property
    def landed(self) -> Landed:
        """What the sources hold of days, and of hours, that are over."""
        sources, now = (self.sales, self.visits, self.delivered), self.world.clock.now
        return {
            one.source.name: {
                when: amounts
                for when, amounts in one.by_day().items()
                if not isinstance(when, datetime) or is_over(when, now)
            }
            for one in sources
        }

    @property
    def past_days(self) -> list[date]:
        """Every day of the history that is over."""
        return [FIRST_DAY + number * DAY for number in range((self.today - FIRST_DAY).days)]

    @property
    def delivery_days(self) -> list[date]:
        """Every day that is over and has deliveries, be they told of or not."""
        return [day for day in self.past_days if str(day) >= FIRST_DELIVERY]

    @property
    def environments(self) -> list[str]:
        """Those whose publications are checked."""
        return [PROD, *self.devs]

    @property
    def devs(self) -> list[str]:
        """Those that follow prod."""
        return [name for name in DEVS if self.world.store.environments.exists(name)]

    def say(self, line: str) -> None:
        """Note what is done, for who looks into a failure."""
        self.said.append(line)

    def told(self) -> str:
        """Tell the whole history."""
        return "\n  ".join([f"seed {self.seed}, {len(self.said)} lines so far:", *self.said])

    def contents(self, environment: str = PROD) -> Contents:
        """Read what an environment publishes."""
        found = contents(self.world, environment)
        for name in found.models:
            self.definitions[environment, name].add(found.declared(name))
        return found

    def look(self, environment: str = PROD) -> Looked:
        """Look at the sources, and ask the product what needs work."""
        return look(self.world, self.graph, environment)

    def check(self, environment: str) -> None:
        """Hold what is published against what follows from the sources."""
        looked, found = self.look(environment), self.contents(environment)
        if environment == PROD:
            self.past.append((self.world.clock.now, found))
        reads = {PROD, environment}
        mixed = {
            name: {each for one in reads for each in self.definitions[one, name]}
            for name in {name for one in reads for name in self.mixed[one]}
        }
        blank = {
            name: self.blank[PROD, name] | self.blank[environment, name] for name in found.cells
        }
        holds_what_follows(found, looked, self.landed, mixed, blank)
        waits_for_rows(found, self.delivered.had, blank)
        if self.held:
            unchanged(self.held, self.contents(self.held.environment), "what a consumer is held at")

    @property
    def state_file(self) -> Path:
        """Where the state lies that is worked with: each that was rebuilt or restored in a file of its own."""
        return Path(self.world.root) / (f"state-{self.states}.db" if self.states else "state.db")

    def open_state(self) -> None:
        """Go on with the state that lies there; one that does not exist is made."""
        self.world.store = Store.open(
            f"sqlite:///{self.state_file}",
            clock=self.world.clock,
            lease_seconds=LEASE.total_seconds(),
            data_root=str(self.world.root),
        )

    def note_promoted(self, plan_id: str, before: Contents, after: Contents) -> None:
        """Note what a promotion has changed."""
        self.promoted[plan_id] = Promoted(before, after, self.world.clock.now, self.promise)

    def forget_plans(self) -> None:
        """Forget all that only a state knows which is lost: plans, results, and environments but prod."""
        for known in (self.promoted, self.dropped, self.results, self.past):
            known.clear()
        self.held = self.backup = None
        for environment, name in [at for at in self.definitions if at[0] in DEVS]:
            del self.definitions[environment, name]

    def in_flight(self, model: str) -> set[datetime]:
        """Give the cells of batches that are neither recorded nor failed: who next has the table's lock may record them."""
        batches = self.world.store.batches.latest(model=model)
        running = [batch for batch in batches if batch.status == "running"]
        return {at for batch in running for at in self.starts(model, batch.stretches)}

    def kept_plans(self, *statuses: PlanStatus) -> list[Plan]:
        """Give the plans of some statuses, the newest first."""
        return [
            read_plan(stored.content)
            for stored in self.world.store.plans.latest()
            if stored.status in statuses
        ]

    def plans_for(self, environment: str, *statuses: PlanStatus) -> list[Plan]:
        """Give those of them that are for an environment."""
        return [plan for plan in self.kept_plans(*statuses) if plan.environment == environment]

    def ways_back(self, environment: str = PROD) -> list[Plan]:
        """Give the promoted plans of an environment of which it is known what they have changed."""
        plans = self.plans_for(environment, PlanStatus.PROMOTED)
        return [plan for plan in plans if plan.plan_id in self.promoted]

    def recent_plan(self, *statuses: PlanStatus, environment: str = PROD) -> Plan | None:
        """Choose one of the newest plans for an environment; None if there is none."""
        return self.recent(self.plans_for(environment, *statuses))

    def recent(self, plans: Sequence[Plan]) -> Plan | None:
        """Choose one of the first of some plans; None of nothing."""
        return self.chosen(plans[:_MOST_RECENT])

    def chosen(self, among: Sequence[Chosen]) -> Chosen | None:
        """Choose at random; None of nothing."""
        return self.random.choice(among) if among else None

    def starts(self, model: str, cells: IntervalSet) -> set[datetime]:
        """Give the instants at which cells begin; none for a model that is not declared any more."""
        declared = self.graph.models.get(model)
        return set() if declared is None else starts(declared, cells)

    def text(self, model: str, cells: IntervalSet) -> str:
        """Name cells."""
        declared = self.graph.models.get(model)
        return "cells" if declared is None else ranges_text(declared.cadence, cells)
