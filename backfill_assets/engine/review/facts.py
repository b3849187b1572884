"""The facts of a plan that its evidence is made of, gathered once from the state."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from backfill_assets.engine.review.compared import compared_models
from backfill_assets.engine.review.known_differences import known_differences
from backfill_assets.evidence.manifest import UNFINISHED
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.planning.review.acceptance import with_acceptances
from backfill_assets.planning.review.touched import ChangedModel, touched
from backfill_assets.render.plan_words import Naming
from backfill_assets.snapshots.publication import PublicationKind
from backfill_assets.snapshots.stored_plan import PlanEventKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from backfill_assets.engine.review.compared import ComparedModel
    from backfill_assets.engine.review.end_facts import Noted
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.review.touched import Touched
    from backfill_assets.snapshots.plan_check import Acceptance, PlanCheck
    from backfill_assets.snapshots.publication import Intent, PointerMove
    from backfill_assets.snapshots.signed_statement import SignedStatement
    from backfill_assets.snapshots.stored_plan import PlanEvent, StoredPlan
    from backfill_assets.state.audits import AuditRow
    from backfill_assets.state.batch_rows import BatchRow
    from backfill_assets.state.evidence import EvidenceRecord
    from backfill_assets.state.store import Store


@dataclass(frozen=True)
class Facts:
    """All that is known of a plan at one of its ends.

    Attributes:
        stored: the plan as the state keeps it.
        ended: how it ended, in a word or two.
        at: when (UTC).
        why: it was refused, or is not built, in words; empty else.
        events: what happened to it; what it took is in `noted`.
        batches: those that served it, the earliest first.
        audits: what their audits found, attempt by attempt.
        checks: what the checks of its strategies and of its contract found last, acceptances included.
        accepted: what people have accepted of these findings.
        signatures: the statements that principals signed about it.
        moves: the pointers that it moved.
        intents: its publications, begun or done.
        noted: what the state keeps nowhere else.
        compared: what comparisons of old and new have found, by model.
    """

    stored: StoredPlan
    ended: str
    at: datetime
    why: str
    events: Sequence[PlanEvent]
    batches: Sequence[BatchRow]
    audits: Sequence[AuditRow]
    checks: Sequence[PlanCheck]
    accepted: Sequence[Acceptance]
    signatures: Sequence[SignedStatement]
    moves: Sequence[PointerMove]
    intents: Sequence[Intent]
    noted: Noted
    compared: Mapping[str, ComparedModel]

    @property
    def plan_id(self) -> str:
        """The plan."""
        return self.stored.plan_id

    @cached_property
    def plan(self) -> Plan:
        """The plan as a value; `PlanFormatError` of one that another release wrote."""
        return read_plan(self.stored.content)

    @cached_property
    def naming(self) -> Naming:
        """How cells are named."""
        return Naming(self.noted.cadences)

    @property
    def unfinished(self) -> bool:
        """Whether its publication is only about to begin."""
        return self.ended == UNFINISHED

    @property
    def promoted(self) -> list[PointerMove]:
        """The pointers that its promotion moved; empty while nothing is published."""
        return [move for move in self.moves if move.kind is PublicationKind.PROMOTE]

    @property
    def taken_back(self) -> list[PointerMove]:
        """The pointers that going back has moved."""
        return [move for move in self.moves if move.kind is not PublicationKind.PROMOTE]

    @property
    def committed(self) -> list[BatchRow]:
        """The batches that committed."""
        return [row for row in self.batches if row.delta_version is not None]

    def named(self, model: str, cells: IntervalSet) -> list[str]:
        """Name every range of a model's cells."""
        return self.naming.listed(CellsByModel({model: cells})).get(model, [])

    def changed(self) -> dict[str, ChangedModel]:
        """Give what its promotion changed, by model; of a plan that is not published, what it may change."""
        if self.noted.built is not None and not self.promoted:
            return {
                name: ChangedModel(IntervalSet.union_all(columns.values()), columns)
                for name, columns in self.noted.built.items()
            }
        if not self.promoted:
            return {
                planned.model: ChangedModel(planned.published)
                for planned in self.plan.models
                if planned.published
            }
        return {
            move.model: ChangedModel(move.changed, self.columns(move))
            for move in self.promoted
            if move.changed
        }

    def differing(self) -> dict[str, ChangedModel]:
        """Give what is known to differ, by model: nothing before the plan is built."""
        return self.changed() if self.promoted or self.noted.built is not None else {}

    def columns(self, move: PointerMove) -> dict[str, IntervalSet] | None:
        """Give where each column differs by a move; None where there is nothing to compare with."""
        cells_by_column = self.noted.differing.get(str(move.number), {}).get(move.model)
        return dict(cells_by_column) if cells_by_column else None

    def gone(self, move: PointerMove) -> IntervalSet:
        """Give the cells that a move took away from readers."""
        by_model = self.noted.gone.get(str(move.number), {})
        return by_model.get(move.model, IntervalSet.empty())

    def touched(self) -> tuple[Touched, ...]:
        """Find the consumers whom it concerns."""
        at = self.promoted[0].at if self.promoted else self.at
        return touched(self.noted.consumers, self.changed(), self.noted.cadences, at)


def gather(store: Store, plan: StoredPlan, end: EvidenceRecord, noted: Noted) -> Facts:
    """Gather the facts of a plan.

    Args:
        store: the state.
        plan: the plan.
        end: how it ended, when and why.
        noted: what the state keeps nowhere else.
    """
    name = plan.plan_id
    return Facts(
        stored=plan,
        ended=end.ended,
        at=end.at,
        why=end.why,
        events=[
            event for event in store.plans.events(name) if event.event != PlanEventKind.MEASURED
        ],
        batches=store.batches.of_plan(name),
        audits=store.batches.audits_of_plan(name),
        checks=with_acceptances(store.checks.of_plan(name), store.checks.acceptances(name)),
        accepted=known_differences(store, name),
        signatures=store.approvals.of_plan(name),
        moves=store.history.moves_of(name),
        intents=store.publications.promotions_of(name),
        noted=noted,
        compared=compared_models(store, name, end.at),
    )
