"""A reader that looks once sees all models of an environment as before a promotion, or all as after it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.models.codec import dumps
from backfill_assets.reading import Published, published
from backfill_assets.settings import Settings
from backfill_assets.state.database import Database
from backfill_assets.state.plans import Plans
from backfill_assets.state.store import Store
from backfill_assets_tests.builders import a_model
from backfill_assets_tests.state.building import NOON, Asked, add_model, fill
from backfill_assets_tests.state.publishing import Trial

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from backfill_assets.snapshots.stored_plan import StoredPlan

MODELS = ("orders", "revenue")


def keep(store: Store, *environments: str) -> None:
    pointers = (store.environments.pointers(name) for name in environments or ("prod",))
    for at in (pointer for found in pointers for pointer in found.values()):
        store.snapshots.save_snapshot(
            fingerprint_id=at.fingerprint,
            model=at.model,
            version=at.version,
            definition=dumps(a_model()),
            logic="",
            upstream="",
            metadata="",
        )


def seen(found: Published) -> set[str]:
    """The versions of all models, each as the last part of its table's name."""
    return {found._found[name][1].path.rpartition("__")[2] for name in MODELS}


def test_a_reader_that_polls_during_promotions_never_sees_one_model_before_and_one_after(
    tmp_path: Path,
):
    settings = Settings(data_dir=str(tmp_path))
    done, found = threading.Event(), list[Published]()

    def poll() -> None:
        while not done.is_set():
            found.append(published(settings=settings))

    with Store.open(settings.state, clock=lambda: NOON) as store:
        for model in MODELS:
            add_model(store, model)
            fill(store, Asked(model=model))
        keep(store)
        before = published(settings=settings)
        trial = Trial(store)
        for model in MODELS:
            trial.new_version(model)
        trial.open()
        for model in MODELS:
            trial.fill(model, 0, 3)
        for pointer in store.environments.own_pointers(f"plan:{trial.plan_id}").values():
            store.snapshots.save_snapshot(
                fingerprint_id=pointer.fingerprint, model=pointer.model, version=pointer.version,
                definition=dumps(a_model()), logic="", upstream="", metadata="",
            )  # fmt: skip
        reader = threading.Thread(target=poll)
        reader.start()
        try:
            trial.promote()
        finally:
            done.set()
            reader.join()
    after = published(settings=settings)
    assert (seen(before), seen(after)) == ({"v1"}, {"v2"})
    assert before.number < after.number
    assert all(len(seen(picture)) == 1 for picture in found)


@pytest.fixture
def built(tmp_path: Path) -> Iterator[Trial]:
    """One model, and a plan that has built another version of it."""
    with Store.open(Settings(data_dir=str(tmp_path)).state, clock=lambda: NOON) as store:
        add_model(store, "orders")
        fill(store, Asked(model="orders"))
        trial = Trial(store)
        trial.new_version("orders")
        trial.open()
        trial.fill("orders", 0, 3)
        trial.save()
        keep(store, "prod", f"plan:{trial.plan_id}")
        yield trial


def test_a_plan_that_is_promoted_while_it_is_looked_up_has_nothing_of_its_own_to_read(
    built: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    find = Plans.get

    def find_and_promote(plans: Plans[Database], plan_id: str) -> StoredPlan:
        found = find(plans, plan_id)
        monkeypatch.undo()
        built.promote()
        return found

    monkeypatch.setattr(Plans, "get", find_and_promote)
    with pytest.raises(RequestError, match="is promoted, so there is nothing of its own to read"):
        published(plan=built.plan_id, settings=Settings(data_dir=str(tmp_path)))


def test_all_that_reading_takes_is_looked_up_at_one_moment(
    built: Trial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    looks: list[object] = []
    read = Database.read

    def counted(database: Database, work: Any, *given: Any) -> Any:  # noqa: ANN401
        looks.append(work)
        return read(database, work, *given)

    monkeypatch.setattr(Database, "read", counted)
    found = published(settings=Settings(data_dir=str(tmp_path)))
    assert found.models == ("orders",)
    assert len(looks) == 2  # the first is whether the state is of this release
