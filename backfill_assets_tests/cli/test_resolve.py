"""Where models can be read is told of one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets.state.database import Database
from backfill_assets.state.views import Views
from backfill_assets_tests.cli.prepared import opened_run

if TYPE_CHECKING:
    import pytest

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

BOTH = ("toy.sales", "toy.returns")


def test_models_are_named_with_path_and_version_as_of_one_look(
    shop: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    for name in BOTH:
        shop.fill(name, "2024-01-28", "2024-02-03")
    looks: list[str] = []
    real = Views.published

    def seen(views: Views[Database], environment: str) -> object:
        looks.append(environment)
        return real(views, environment)

    monkeypatch.setattr(Views, "published", seen)
    found = backfill("resolve", *BOTH, "--json").json
    assert looks == ["prod"]
    assert found["environment"] == "prod"
    assert {name: len(parts) for name, parts in found["models"].items()} == dict.fromkeys(BOTH, 1)
    (sales,) = found["models"]["toy.sales"]
    assert (sales["delta_version"], str(shop.data) in sales["path"]) == (0, True)
    assert backfill("resolve", "toy.sales").lines == [f"toy.sales: {sales['path']} at version 0"]


def test_a_model_that_is_not_published_is_an_error_that_names_it(backfill: Backfill):
    ended = backfill("resolve", "toy.sales")
    assert ended.code == 1
    assert "fill it with `backfill run --select toy.sales`" in ended.err


def test_a_model_is_filled_by_the_environment_whose_table_is_read(backfill: Backfill):
    with opened_run(PROD) as run:
        run.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
        others = run.store.environments.pointers(PROD)

    def filling(model: str) -> str:
        return backfill("resolve", model, "--env", "dev").err

    assert "toy.sales" in others
    assert "fill it with `backfill run --select toy.sales`" in filling("toy.sales")
    assert "fill it with `backfill run --env dev --select toy.new`" in filling("toy.new")
