"""How the cells of a project's models are named, and those of a plan: as of the models that it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.render.plan_words import naming_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.engine.project.project import Project
    from backfill_assets.models.model import Model
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.render.plan_words import Naming
    from backfill_assets.state.store import Store


def declared_naming(project: Project) -> Naming:
    """Name cells by the cadences of what is declared, and of what was before."""
    return naming_of(project.loaded.graph, project.store.snapshots.last_cadence)


def plan_naming(project: Project, plan: Plan) -> Naming:
    """Name a plan's cells as of the models that it runs, whatever has been declared since."""
    return declared_naming(project).of_models(planned_models(project.store, plan))


def running_naming(project: Project, environment: str) -> Naming:
    """Name the cells of an environment as of the models that it runs, whatever is declared."""
    pointers = project.store.environments.pointers(environment)
    fingerprints = {name: at.fingerprint for name, at in pointers.items()}
    return declared_naming(project).of_models(_stored_models(project.store, fingerprints))


def planned_models(store: Store, plan: Plan) -> dict[str, Model]:
    """Read the models of a plan, by name; one whose snapshot is not kept is left out.

    They may be declared otherwise: by an edit that is not promoted, or that came after the plan.
    """
    return _stored_models(store, {each.model: each.fingerprint for each in plan.models})


def _stored_models(store: Store, fingerprints: Mapping[str, str]) -> dict[str, Model]:
    found = {name: store.snapshots.model(each) for name, each in fingerprints.items()}
    return {name: model for name, model in found.items() if model is not None}
