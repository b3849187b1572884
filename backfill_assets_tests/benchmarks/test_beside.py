from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from benchmarks.goals import MET, MISSED
from benchmarks.part import Part
from benchmarks.peer.beside import Beside, beside_part, step_lines
from benchmarks.peer.growth import growth_part
from benchmarks.peer.same_rows import OtherRowsError, check_rows
from benchmarks.peer.steps import STEPS, Place, Taken
from benchmarks.peer.subject import MODELS, Size
from benchmarks.process import Measured

SIZE = Size(events=1_000, days=60)
FIRST, ADDITIVE = STEPS[0], STEPS[2]


def _taken(*seconds: float, locked: float | None = None) -> Taken:
    verbs = ("plan", "apply", "promote")
    runs = {
        verb: Measured(began=0.0, wall=wall) for verb, wall in zip(verbs, seconds, strict=False)
    }
    return Taken(runs, locked=locked)


def test_a_step_is_held_against_what_sqlmesh_took_by_all_of_its_commands():
    step = Beside(ADDITIVE, theirs=_taken(100.0), ours=_taken(4.0, 40.0, 6.0), rows=7)

    _, line = step_lines([step])

    assert step.ratio == 0.5
    assert line.startswith("additive column")
    assert f"0.50 ≤ 0.6 {MET} 7" in " ".join(line.split())
    assert line.endswith("plan 4.0 + apply 40.0 + promote 6.0")


def test_a_step_that_takes_longer_than_its_goal_is_missed():
    part = beside_part(SIZE, [Beside(FIRST, _taken(80.0), _taken(88.0, locked=0.1), rows=7)])

    assert part.ratios["first deployment / SQLMesh"] == 1.1
    assert part.compared == (
        f"first deployment / SQLMesh: 1.10 (goal ≤ 0.6: {MISSED})",
        f"under a table's lock per batch, s: 0.10 (goal ≤ 0.15: {MET})",
    )


def test_growth_is_told_from_the_first_size():
    few = [Beside(FIRST, _taken(10.0), _taken(5.0), rows=7)]
    many = [Beside(FIRST, _taken(30.0), _taken(10.0), rows=70)]

    part: Part = growth_part({"1x": SIZE, "10x": SIZE}, {"1x": few, "10x": many})

    assert part.lines[-1].split()[-4:] == ["30.0", "(3.0x)", "10.0", "(2.0x)"]


def test_sums_in_another_order_are_the_same_rows_and_others_are_not(tmp_path: Path):
    theirs = _written(tmp_path / "theirs", [(1, 0.1 + 0.2), (2, 5.0)])
    ours = _written(tmp_path / "ours", [(2, 5.0), (1, 0.3)])
    other = _written(tmp_path / "other", [(1, 0.3), (2, 5.1)])

    assert check_rows("a step", theirs, ours) == 2 * len(MODELS)
    with pytest.raises(OtherRowsError, match="after a step"):
        check_rows("a step", theirs, other)


def test_a_column_that_has_no_value_yet_is_the_same_as_none(tmp_path: Path):
    theirs = _written(tmp_path / "theirs", [(1, 0.5)], later=None)
    ours = _written(tmp_path / "ours", [(1, 0.5)])
    filled = _written(tmp_path / "filled", [(1, 0.5)], later=2.0)

    assert check_rows("a step", theirs, ours) == len(MODELS)
    with pytest.raises(OtherRowsError):
        check_rows("a step", filled, ours)


def _written(path: Path, rows: list[tuple[int, float]], **later: float | None) -> dict[str, Place]:
    campaigns, costs = zip(*rows, strict=True)
    columns = {"campaign_id": pa.array(campaigns), "cost": pa.array(costs)}
    columns |= {name: pa.array([value] * len(rows), pa.float64()) for name, value in later.items()}
    write_deltalake(str(path), pa.table(columns))
    return dict.fromkeys(MODELS, Place(path))
