"""What a verb has built and published stands in its result, every cell of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from backfill_assets.cli.late import late_json, late_lines
from backfill_assets.cli.told_cells import say_cells
from backfill_assets.cli.verbs import run as run_verb
from backfill_assets.engine.automatic.late_plan import Refreshed
from backfill_assets.engine.plans.told_cells import cells_json, cells_told
from backfill_assets.engine.project.events import BatchSeconds, Committed
from backfill_assets.intervals import Daily
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.render.plan_words import Naming
from backfill_assets.state.store import Store
from backfill_assets_tests.state.building import Asked, Clock, add_model, content, days, fill
from backfill_assets_tests.state.publishing import Trial, cells

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.cli.conftest import Backfill

NAMING = Naming({"orders": Daily()})
ORDERS = cast(
    "Plan",
    SimpleNamespace(plan_id="p1", environment="prod", models=[SimpleNamespace(model="orders")]),
)
EVERY_OTHER = [(at, at + 1) for at in range(0, 20, 2)]


def _promoted(path: Path, built: list[tuple[int, int]], differs: int) -> dict[str, Any]:
    """Publish days of which one came out different, and ask what is told of it."""
    with Store.open(f"sqlite:///{path}/state.db", clock=Clock(), lease_seconds=60.0) as store:
        add_model(store, "orders")
        fill(store, Asked(start=0, end=30))
        trial = Trial(store)
        trial.in_place("orders", cells(*built))
        trial.open()
        for first, last in built:
            held = content(10, amount=12) if first == differs else content(10)
            trial.fill("orders", first, last, {days(first, last): held})
        trial.save()
        at: Any = SimpleNamespace(store=store)
        return cells_told(at, ORDERS, trial.promote())


def test_json_names_every_range_that_was_built_and_published_and_those_that_differ(tmp_path: Path):
    told = cells_json(NAMING, _promoted(tmp_path, EVERY_OTHER, differs=4))

    keys = [f"2024-01-{1 + first:02d}" for first, _ in EVERY_OTHER]
    assert told == {
        "built": {"orders": keys},
        "published": {"orders": keys},
        "changed": {"orders": ["2024-01-05"]},
        "gone": {},
    }


def test_a_person_reads_how_many_of_the_published_cells_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    say_cells(NAMING, _promoted(tmp_path, [(2, 3), (4, 5)], differs=4))

    assert capsys.readouterr().out == (
        "published orders: 2024-01-03, 2024-01-05; 1 of 2 cells differ\n"
    )


def test_what_is_built_and_not_published_is_said_as_built(capsys: pytest.CaptureFixture[str]):
    say_cells(NAMING, {"built": CellsByModel({"orders": cells((2, 5))})})

    assert capsys.readouterr().out == "built orders: 2024-01-03..2024-01-05 (3); 3 cells\n"


def test_a_run_names_every_cell_that_it_has_filled(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    def filled(*_: object, **__: object) -> dict[str, tuple[Committed, ...]]:
        return {"toy.sales": tuple(_committed(at) for at in (27, 28, 30))}

    monkeypatch.setattr(run_verb, "fill_cells", filled)

    said = backfill("run", "--select", "toy.sales")
    told = backfill("run", "--select", "toy.sales", "--json").json

    ranges = ["2024-01-28..2024-01-29", "2024-01-31"]
    assert told["built"] == {"toy.sales": ranges}
    assert "built toy.sales: 2024-01-28..2024-01-29 (2), 2024-01-31; 3 cells" in said.lines


def test_what_late_data_has_built_again_is_listed_whole():
    late, built = (CellsByModel({"orders": held}) for held in (cells((0, 1)), cells(*EVERY_OTHER)))

    told = late_json(NAMING, Refreshed(cells=late, built_by={"p1": built}))

    assert told is not None
    assert told["built"] == {"orders": [f"2024-01-{1 + first:02d}" for first, _ in EVERY_OTHER]}


def test_each_cell_of_late_data_is_told_with_the_plan_that_built_it_again():
    first, second, own = (CellsByModel({"orders": cells((at, at + 1))}) for at in (0, 2, 4))

    said = late_lines(
        NAMING, Refreshed(plan_id="p2", built_by={"p1": first, "p2": second, "": own})
    )

    assert said == [
        "late     orders: 2024-01-01 built again by plan p1",
        "late     orders: 2024-01-03 built again by plan p2",
        "late     orders: 2024-01-05 built again in its own table",
    ]


def _committed(day: int) -> Committed:
    return Committed(
        model="toy.sales",
        batch_id=f"b{day}",
        cells=IntervalSet.of([days(day, day + 1)]),
        delta_version=0,
        contents={days(day, day + 1): content(1)},
        audits=(),
        rows=1,
        timing=BatchSeconds(),
    )
