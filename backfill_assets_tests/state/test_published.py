"""A reader that looks once sees all models of an environment as before a promotion, or all as after it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from backfill_assets.reading import Published, published
from backfill_assets.settings import Settings
from backfill_assets.state.store import Store
from backfill_assets_tests.state.building import NOON, Asked, add_model, fill
from backfill_assets_tests.state.publishing import Trial

if TYPE_CHECKING:
    from pathlib import Path

MODELS = ("orders", "revenue")


def keep(store: Store) -> None:
    for at in store.pointers("prod").values():
        store.save_snapshot(
            fingerprint_id=at.fingerprint,
            model=at.model,
            version=at.version,
            definition="",
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
        for pointer in store.own_pointers(f"plan:{trial.plan_id}").values():
            store.save_snapshot(
                fingerprint_id=pointer.fingerprint, model=pointer.model, version=pointer.version,
                definition="", logic="", upstream="", metadata="",
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
    assert all(len(seen(one)) == 1 for one in found)
