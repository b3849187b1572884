"""Laws of the one rule, in toy worlds that are filled, changed and filled again."""

from __future__ import annotations

from hypothesis import given, strategies as st

from backfill_assets.intervals import IntervalSet
from backfill_assets.models.cells import cells_reading
from backfill_assets_tests.planning.toy_world import World, worlds

sizes = st.none() | st.integers(1, 5)


def change(world: World, data: st.DataObject) -> tuple[str, IntervalSet]:
    """Build one ready cell again with another answer, as a repair would."""
    name = data.draw(st.sampled_from(sorted(world.held)))
    cell = data.draw(st.sampled_from(sorted(world.held[name])))
    world.twist[(name, cell.start)] = data.draw(st.integers(1, 5))
    world.build(world.graph.models[name], cell)
    return name, IntervalSet.of([cell])


def downstream(world: World, name: str, cells: IntervalSet) -> dict[str, IntervalSet]:
    """Every cell that reads the cells, directly or through others."""
    touched = dict.fromkeys(world.graph.order, IntervalSet.empty())
    touched[name] = cells
    for reader in world.graph.order:
        model, before = world.graph.models[reader], None
        while before != touched[reader]:  # a model that reads itself goes on until nothing moves
            before = touched[reader]
            for upstream in model.reads:
                if upstream.name in world.graph.models:
                    theirs = world.graph.models[upstream.name].cadence
                    touched[reader] |= cells_reading(
                        model.cadence, upstream, theirs, touched[upstream.name]
                    ) & world.view().ready(reader)
    return touched


@given(worlds(), sizes)
def test_once_all_runnable_work_is_done_the_rule_finds_nothing(world: World, size: int | None):
    world.fill(size)

    for name in world.graph.order:
        work = world.work(name)
        assert not work.runnable
        assert not work.stale
        assert work.ready == work.required - work.gaps


@given(worlds(), sizes, st.data())
def test_after_a_change_and_its_refill_all_is_as_if_built_from_nothing(
    world: World, size: int | None, data: st.DataObject
):
    world.fill(size)
    change(world, data)
    world.fill(size)
    again = world.empty()
    again.fill(None)

    assert world.contents() == again.contents()


@given(worlds(), sizes, st.data())
def test_only_cells_that_read_what_changed_are_ever_rebuilt(
    world: World, size: int | None, data: st.DataObject
):
    world.fill(size)
    name, cells = change(world, data)
    allowed = downstream(world, name, cells)

    rebuilt = world.fill(size)

    assert all(not rebuilt[model] - allowed[model] for model in rebuilt)


@given(worlds(), st.data())
def test_a_cell_rebuilt_with_the_same_answer_moves_nothing(world: World, data: st.DataObject):
    world.fill(None)
    name = data.draw(st.sampled_from(sorted(world.held)))
    cell = data.draw(st.sampled_from(sorted(world.held[name])))

    world.build(world.graph.models[name], cell)

    assert not any(world.todo(model) for model in world.graph.order)


@given(worlds(), st.data())
def test_a_lost_cell_is_a_gap_and_is_filled_again(world: World, data: st.DataObject):
    world.fill(None)
    name = data.draw(st.sampled_from(sorted(world.held)))
    cell = data.draw(st.sampled_from(sorted(world.held[name])))
    del world.held[name][cell]

    assert cell in world.work(name).gaps
    world.fill(None)
    again = world.empty()
    again.fill(None)
    assert world.contents() == again.contents()


@given(worlds(), st.data())
def test_the_order_of_runs_does_not_matter(world: World, data: st.DataObject):
    world.fill(2)
    change(world, data)
    before = {name: world.work(name) for name in world.graph.order}
    for name, cells in world.held.items():
        world.held[name] = dict(data.draw(st.permutations(sorted(cells.items(), key=str))))

    assert {name: world.work(name) for name in world.graph.order} == before
