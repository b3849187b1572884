"""Plans for tests of the state: opened, built and published without Spark or Delta."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.snapshots.cutoff import Cutoff
from backfill_assets.snapshots.environment import PROD, Layer, Pointer, workspace_name
from backfill_assets.snapshots.publication import Copy, Intent, Move, Publication, PublicationKind
from backfill_assets.snapshots.stored_plan import PlanStatus, StoredPlan
from backfill_assets.snapshots.workspace import OwedCells, WorkspaceModel, WorkspaceRequest
from backfill_assets_tests.state.building import NOON, Asked, days, fill

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import Content
    from backfill_assets.state.store import Store

PLAN = "p1"


def cells(*spans: tuple[int, int]) -> IntervalSet:
    return IntervalSet.of(days(start, end) for start, end in spans)


NONE = IntervalSet.empty()


@dataclass(frozen=True)
class Trial:
    """One plan over some models, on one environment."""

    store: Store
    plan_id: str = PLAN
    environment: str = PROD
    opened: list[WorkspaceModel] = field(default_factory=list)
    owed: list[OwedCells] = field(default_factory=list)
    cutoffs: dict[str, Cutoff | None] = field(default_factory=dict)

    @property
    def workspace(self) -> str:
        return workspace_name(self.plan_id)

    def new_version(self, model: str, version: str | None = None) -> str:
        """Let the model have a table of its own."""
        version = version or f"{model}__v2"
        at = Pointer(self.workspace, model, f"print-{version}", version, -1)
        self.opened.append(WorkspaceModel(at, f"/data/{version}"))
        return version

    def in_place(
        self, model: str, certain: IntervalSet = NONE, fingerprint: str | None = None
    ) -> str:
        """Let the model have a table over the published one."""
        at = self.store.environments.pointers(self.environment)[model]
        version = f"{at.version}__{self.plan_id}"
        under = (Layer(at.version, at.delta_version), *at.under)
        new = Pointer(
            self.workspace, model, fingerprint or at.fingerprint, version, -1, under, certain
        )
        self.opened.append(WorkspaceModel(new, f"/data/{version}"))
        return version

    def open(self):
        request = WorkspaceRequest(
            plan_id=self.plan_id, environment=self.environment,
            models=tuple(self.opened), owed=tuple(self.owed), cutoffs=self.cutoffs,
        )  # fmt: skip
        return self.store.environments.open_workspace(request)

    def fill(
        self,
        model: str,
        start: int,
        end: int,
        held: Mapping[Interval, Content] | None = None,
        reads: Mapping[str, IntervalSet] | None = None,
        run: str | None = None,
    ):
        table = self.store.environments.pointers(self.workspace)[model].version
        asked = Asked(
            model, start, end, run=run or f"run-{self.plan_id}", reads=reads or {},
            environment=self.workspace, table=table, plan=self.plan_id,
        )  # fmt: skip
        return fill(self.store, asked, held)

    def save(self, status: PlanStatus = PlanStatus.BUILT) -> StoredPlan:
        plan = StoredPlan(
            plan_id=self.plan_id, environment=self.environment, status=status, content="{}",
            content_hash=f"hash of {self.plan_id}", created_at=self.store._clock(), created_by="ada",
            reason="it was wrong", expires_at=NOON + timedelta(days=7),
            cells=CellsByModel({opened.pointer.model: opened.pointer.certain for opened in self.opened}),
        )  # fmt: skip
        self.store.plans.save_plan(plan)
        return plan

    def begin(
        self, *versions: str, kind: PublicationKind = PublicationKind.PROMOTE, holder: str = "boss"
    ) -> Intent:
        return self.store.publications.begin_promotion(
            Intent(
                plan_id=self.plan_id,
                environment=self.environment,
                kind=kind,
                holder=holder,
                versions=versions,
            )
        )

    def move(self, model: str) -> Move:
        """What promotes a model of the plan."""
        own = self.store.environments.own_pointers(self.workspace)[model]
        old = self.store.environments.pointers(self.environment).get(model)
        seen: dict[str, Any] = {} if old is None else {
            "old_version": old.version, "old_fingerprint": old.fingerprint,
        }  # fmt: skip
        if not own.under:
            new = Pointer(self.environment, model, own.fingerprint, own.version, own.delta_version)
            return Move(pointer=new, **seen)
        assert old is not None
        if self.store.versions.owner(old.version) != self.environment:
            new = Pointer(
                self.environment, model, own.fingerprint, own.version, own.delta_version, own.under
            )
            return Move(pointer=new, **seen)
        at = self.store.versions.known_head(old.version) + 1
        new = Pointer(self.environment, model, own.fingerprint, old.version, at, old.under)
        return Move(pointer=new, copies=(Copy(Layer(own.version, own.delta_version)),), **seen)

    def publish(
        self,
        *moves: Move,
        kind: PublicationKind = PublicationKind.PROMOTE,
        removed: tuple[str, ...] = (),
        **more: Any,  # noqa: ANN401 - further attributes of a publication
    ) -> int:
        intent = self.begin(kind=kind)
        said = Publication(
            intent=intent.number, holder=intent.holder, plan_id=self.plan_id,
            environment=self.environment, kind=kind, moves=moves, removed=removed,
            who="ada", why="for good", **more,
        )  # fmt: skip
        return self.store.publications.publish(said)

    def promote(self) -> int:
        return self.publish(*(self.move(each.pointer.model) for each in self.opened))
