"""Find the models that change, the category of each change, and the table that each then reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.intervals.text import first_of, ranges_text
from backfill_assets.models.column import canonical_type
from backfill_assets.models.fingerprint import changed_logic
from backfill_assets.planning.change.categorize import (
    DeclarationDifference,
    affected,
    both,
    difference,
)
from backfill_assets.planning.change.category_choice import chosen_category
from backfill_assets.planning.change.deriving import derived, reads_of_both
from backfill_assets.planning.change.life import lost_reads, outside_life
from backfill_assets.planning.change.model_change import Changes, ModelChange
from backfill_assets.planning.plan.plan import Change, Untouched
from backfill_assets.planning.plan.request import Category

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.model import Model
    from backfill_assets.planning.change.category_choice import CategoryChoice
    from backfill_assets.planning.change.planned_graph import PlannedGraph
    from backfill_assets.snapshots.snapshot import Snapshot
    from backfill_assets.snapshots.state_view import ModelState

_SHOWN = 6
_DECLARED_OTHERWISE = DeclarationDifference(
    Category.BREAKING, "a source is declared otherwise", rows=True, columns=None
)
"""How a source differs for a model, once a declaration that it relies on has changed."""

_LEFT_STALE = (
    "its cells are not built again: those that read another content are stale after the promotion"
)
"""What follows where a person decides that a change of an upstream does not matter."""


def changes_of(planned: PlannedGraph) -> Changes:
    """Decide for every model of the planned graph, upstream first.

    Raises:
        RequestError: a person's category contradicts the difference.
        RequestError: forward-only, or with a cutoff, a column goes or is retyped, or cells are others.
        RequestError: a new life takes cells away that a model reads which is not selected.
    """
    changes = Changes()
    for name in planned.graph.order:
        changes.models[name] = _Deciding(planned, changes).decide(name)
    return changes


@dataclass(frozen=True, slots=True)
class _Deciding:
    planned: PlannedGraph
    changes: Changes

    def decide(self, name: str) -> ModelChange:
        new, old = self.planned.snapshots[name], self.planned.before.get(name)
        if old is None:
            return ModelChange(
                change=Change.ADDED,
                category=Category.NON_BREAKING,
                reason="new: nothing reads it yet",
                new_version=True,
                fingerprint=new.fingerprint.id,
                version=self._free_version(new),
            )
        if self.planned.request.late:  # a change takes a plan that a person asks for
            return self._unchanged(name)
        moved = self._moved_upstreams(name)
        if name not in self.planned.chosen:
            self._refuse_lost_reads(name)
            if moved:
                text = "is not selected, though it reads what changes: its cells become stale at promotion"
                self.changes.untouched.append(Untouched(name, text))
            return self._unchanged(name)
        lost = outside_life(new.model, self.planned.published.ready(name))
        direct = _shortened(old.model, new.model, lost, _direct(old, new))
        choice = chosen_category(
            self.planned.request, new.model, old.model, direct, reads_changed=bool(moved)
        )
        if direct is not None and choice is not None and choice.category is Category.METADATA:
            direct = DeclarationDifference(
                Category.METADATA, direct.why, rows=False, columns=frozenset()
            )
        if direct is None and choice is None and name not in self.planned.otherwise:
            return self._unchanged(name)
        change = self._changed(name, new, direct, moved, choice)
        return replace(change, lost=lost) if change.new_version else change

    def _refuse_lost_reads(self, name: str) -> None:
        """Refuse to leave cells alone of which the plan takes away what they read: nothing would tell of it."""
        cadence = self.planned.models[name].cadence
        for upstream, lost, cells in lost_reads(self.planned, self.changes, name):
            if read := cells & self.planned.published.ready(name):
                raise RequestError(
                    found=f"the new life of '{upstream.name}' takes {ranges_text(upstream.cadence, lost)} "
                    f"away, which '{name}' reads in {ranges_text(cadence, read)}",
                    do=f"let the plan build these cells again: select '{name}', too",
                )

    def _changed(
        self,
        name: str,
        new: Snapshot,
        direct: DeclarationDifference | None,
        moved: Mapping[str, frozenset[str] | None],
        choice: CategoryChoice | None,
    ) -> ModelChange:
        change = Change.INDIRECT if direct is None else Change.MODIFIED
        category, reason, by = self._meaning(name, direct, moved, choice)
        history = category in (Category.BREAKING, Category.NON_BREAKING)
        builds = history and (bool(moved) or _computes(direct) or choice is not None)
        notes: tuple[str, ...] = ()
        if choice is not None and choice.category is Category.NON_BREAKING and direct is None:
            builds = False  # a person decided that the upstream change does not matter here
            notes += (_LEFT_STALE,) if moved else ()
        in_place = self._has_cutoff(name) or category is Category.FORWARD_ONLY
        if in_place and (_computes(direct) or builds):
            self._refuse_destruction(name, new.model)
        new_version = builds and not in_place
        if not new_version and category is not Category.FORWARD_ONLY:
            notes += _audits(self.planned.before[name].model, new.model)
        if new_version:
            self._carry_on(name, direct, moved, choice)
        elif direct is None and not moved and self._any_effect(name):
            self.changes.untouched.append(Untouched(name, self._reads_none(name)))
        return ModelChange(
            change=change,
            category=category,
            reason=reason,
            decided_by=by,
            new_version=new_version,
            fingerprint=new.fingerprint.id,
            version=self._free_version(new) if new_version else self._kept_version(name),
            restates=(_computes(direct) or builds) and self._has_date(name, category),
            notes=notes,
        )

    def _has_cutoff(self, name: str) -> bool:
        """Whether older cells keep the old definition: by this request, or since a plan before."""
        stored = (
            name in self.planned.published.cutoffs and name not in self.planned.request.lift_cutoffs
        )
        return self.planned.request.cutoff is not None or stored

    def _has_date(self, name: str, category: Category) -> bool:
        """Whether the kept table is computed anew from a date on."""
        if category is Category.FORWARD_ONLY:
            return (
                self.planned.request.cutoff is not None
                or self.planned.request.effective_from is not None
            )
        return self._has_cutoff(name)

    def _meaning(
        self,
        name: str,
        direct: DeclarationDifference | None,
        moved: Mapping[str, frozenset[str] | None],
        choice: CategoryChoice | None,
    ) -> tuple[Category, str, str]:
        """Give category, reason, and who decided."""
        if choice is not None:
            return choice.category, choice.why, choice.by
        if direct is not None and (not moved or direct.category is Category.BREAKING):
            return direct.category, direct.why, "planner"
        if moved:
            why = "; ".join(self._reads_text(up, columns) for up, columns in moved.items())
            additive = direct is not None and self._stays_additive(name, direct, moved)
            category = Category.NON_BREAKING if additive else Category.BREAKING
            return category, f"{direct.why}; {why}" if direct else why, "planner"
        following = self._follows_forward_only(name)
        if following:
            return Category.FORWARD_ONLY, f"follows {following}, which is forward-only", "planner"
        return Category.NON_BREAKING, self._reads_none(name), "planner"

    def _reads_text(self, upstream: str, columns: frozenset[str] | None) -> str:
        if upstream in self.planned.graph.sources:
            return f"reads {upstream}, which is declared otherwise"
        if columns:
            return f"reads {_listed(columns)} of {upstream}"
        effect = self.changes.effects.get(upstream)
        if effect is None or effect.rows or not effect.columns:
            return f"reads {upstream}, whose rows change"
        verb = "differs" if len(effect.columns) == 1 else "differ"
        return f"may read any column of {upstream}, where {_listed(effect.columns)} {verb}"

    def _stays_additive(
        self, name: str, direct: DeclarationDifference, moved: Mapping[str, frozenset[str] | None]
    ) -> bool:
        """Whether the upstream changes reach only new columns."""
        if direct.category is not Category.NON_BREAKING or direct.columns is None:
            return False
        changed = {up: self.changes.effects.get(up, _DECLARED_OTHERWISE) for up in moved}
        derivation = derived(self.planned.models[name], changed)
        return derivation.columns is not None and derivation.columns <= direct.columns

    def _follows_forward_only(self, name: str) -> str | None:
        for up in self.planned.models[name].reads:
            upstream_change = self.changes.models.get(up.name)
            if upstream_change is not None and upstream_change.category is Category.FORWARD_ONLY:
                return up.name
        return None

    def _moved_upstreams(self, name: str) -> dict[str, frozenset[str] | None]:
        """Upstreams whose published data change in columns that the model reads, with those columns."""
        moved: dict[str, frozenset[str] | None] = dict.fromkeys(
            self.planned.resourced.get(name, ())
        )
        if not self._any_effect(name):
            return moved
        model = self.planned.models[name]
        running = {other: snapshot.model for other, snapshot in self.planned.before.items()}
        reads = reads_of_both(running, self.planned.graph, model, self.planned.reads(name))
        for up in model.reads:
            effect = self.changes.effects.get(up.name)
            if up.name == name or effect is None or not affected(effect, reads.get(up.name)):
                continue
            columns, read = effect.columns, reads.get(up.name)
            moved[up.name] = None if columns is None or read is None else columns & read
        return moved

    def _any_effect(self, name: str) -> bool:
        return any(up.name in self.changes.effects for up in self.planned.models[name].reads)

    def _carry_on(
        self,
        name: str,
        direct: DeclarationDifference | None,
        moved: Mapping[str, frozenset[str] | None],
        choice: CategoryChoice | None,
    ) -> None:
        """Record the difference that the model's own readers will see."""
        if choice is not None and choice.category is Category.NON_BREAKING:
            return
        if choice is not None:
            self.changes.effects[name] = DeclarationDifference(
                choice.category, choice.why, rows=True, columns=None
            )
            return
        changed = {up: self.changes.effects.get(up, _DECLARED_OTHERWISE) for up in moved}
        derivation = derived(self.planned.models[name], changed)
        self.changes.effects[name] = (
            derivation if direct is None else both(direct, derivation) if moved else direct
        )

    def _reads_none(self, name: str) -> str:
        """Name the changed columns, none of which the model reads."""
        names: list[str] = []
        for up in self.planned.models[name].reads:
            effect = self.changes.effects.get(up.name)
            names += sorted(effect.columns or ()) if effect is not None else []
        if not names:
            again = [up.name for up in self.planned.models[name].reads if self._restates(up.name)]
            if again:
                return f"of {', '.join(again)}, only cells that the plan builds again may change"
            if any(self._is_overruled(up.name) for up in self.planned.models[name].reads):
                return f"decided upstream; {_LEFT_STALE}"
            return "what it reads is published as before"
        return f"reads none of: {first_of(names, _SHOWN)}"

    def _restates(self, name: str) -> bool:
        change = self.changes.models.get(name)
        return change is not None and change.restates

    def _is_overruled(self, name: str) -> bool:
        """Whether a person decided that the change of a model does not concern its readers."""
        change = self.changes.models.get(name)
        return change is not None and change.new_version and change.decided_by != "planner"

    def _unchanged(self, name: str) -> ModelChange:
        state = self.planned.published.models.get(name)
        print_ = (
            state.pointer.fingerprint if state else self.planned.state.running[name].fingerprint.id
        )
        return ModelChange(
            change=Change.UNCHANGED, fingerprint=print_, version=self._kept_version(name)
        )

    def _kept_version(self, name: str) -> str:
        state = self.planned.published.models.get(name)
        return state.pointer.version if state else self.planned.state.running[name].version

    def _free_version(self, new: Snapshot) -> str:
        """Give the snapshot's version, or a new name where a table of that version can't be used.

        A table that the environment reads holds the rows of other logic. A table that another plan has
        built holds kept rows or none, as that plan's request says. Another environment's is its own. Cells
        outside of the new life would be published with the table.
        """
        built = self.planned.state.built.get(new.version)
        outside = built is not None and bool(outside_life(new.model, built.ready))
        if new.version in self.planned.state.taken or outside:
            return self._new_name(new)
        state = self.planned.published.models.get(new.model.name)
        undecided = new.model.keeps_rows and built is not None and bool(built.runs)
        if state is None or (new.version not in _versions_of(state) and not undecided):
            return new.version
        return self._new_name(new)

    def _new_name(self, new: Snapshot) -> str:
        return f"{new.version}_{self.planned.published.counter}"

    def _refuse_destruction(self, name: str, new: Model) -> None:
        """Refuse to keep a table whose columns go, or whose cells are others."""
        before = self.planned.before[name].model
        old, now = (
            {column.name: canonical_type(column.dtype) for column in model.schema}
            for model in (before, new)
        )
        lost = [column for column, dtype in old.items() if now.get(column) != dtype]
        verb = "is" if len(lost) == 1 else "are"
        differs = [f"{', '.join(lost)} {verb} removed or of another type"] if lost else []
        if (before.cadence.unit, before.cadence.tz) != (new.cadence.unit, new.cadence.tz):
            differs.append("its cells are others")
        if differs:
            choice = "a cutoff" if self._has_cutoff(name) else "forward-only"
            raise RequestError(
                found=f"{choice} keeps the table of '{name}', but {', and '.join(differs)}, "
                "which its published history can't follow",
                do="plan it as a breaking change instead",
            )


def _versions_of(state: ModelState) -> set[str]:
    return {state.pointer.version, *(layer.version for layer in state.pointer.under)}


def _shortened(
    old: Model, new: Model, lost: IntervalSet, direct: DeclarationDifference | None
) -> DeclarationDifference | None:
    """Make a difference breaking where it takes cells away: by a new life, or by a new table without what was kept."""
    same_life = (new.cadence.start, new.cadence.end) == (old.cadence.start, old.cadence.end)
    if direct is None or not lost or (same_life and not _computes(direct)):
        return direct
    cells = old.cadence.snap_out(lost)
    part = "" if cells == lost else "a part of "
    why = f"its life takes {part}{ranges_text(old.cadence, cells)} away, which is published"
    return both(direct, DeclarationDifference(Category.BREAKING, why, rows=True, columns=None))


def _direct(old: Snapshot, new: Snapshot) -> DeclarationDifference | None:
    """Compare the declarations; None where nothing was edited."""
    same_words = old.fingerprint.metadata == new.fingerprint.metadata
    if same_words and not changed_logic(old.model, new.model):
        return None
    return difference(old.model, new.model)


def _computes(direct: DeclarationDifference | None) -> bool:
    return direct is not None and direct.category is not Category.METADATA


def _listed(columns: frozenset[str]) -> str:
    return ", ".join(sorted(columns)[:_SHOWN])


def _audits(old: Model, new: Model) -> tuple[str, ...]:
    """Say what other audits mean for published cells that stay."""
    if old.all_audits == new.all_audits:
        return ()
    return ("its audits change: they are run on the published data, nothing is rebuilt for them",)
