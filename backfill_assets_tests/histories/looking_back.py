"""What the product says of the past: numbers are explained, cells rebuilt, and results that rest on changed ones told.

Each history knows what was published after each of its steps, so it knows what must be said.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from backfill_assets.engine.plans.told_cells import cells_told
from backfill_assets.engine.project.opening import open_run
from backfill_assets.engine.project.project import InProject
from backfill_assets.engine.review.cell_numbers import ROWS
from backfill_assets.engine.review.explaining import explain_number
from backfill_assets.engine.review.replaying import Replay
from backfill_assets.engine.review.results import changed_since, register_result
from backfill_assets.intervals import IntervalSet
from backfill_assets.models.number import added
from backfill_assets.planning.review.replayed import Verdict
from backfill_assets.snapshots.environment import PROD
from backfill_assets_tests.histories.checks import differing
from backfill_assets_tests.histories.models import PERIODS
from backfill_assets_tests.histories.published import WrongError, cell_from, starts
from backfill_assets_tests.histories.receipts import RECEIPTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime

    from backfill_assets.engine.project.asked import Asked
    from backfill_assets.engine.review.explaining import ExplainedNumber
    from backfill_assets.intervals import Interval, Unit
    from backfill_assets.models.model import Model
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.histories.history import History
    from backfill_assets_tests.histories.published import Contents


_LOST, _ADOPTED = "lost with the state", "was adopted from a table"


def explain_a_number(history: History) -> None:
    """Ask why a published number differs from what it was: both are told, and the parts make the difference."""
    if len(history.past) == 1:
        return
    first, second = sorted(history.random.sample(range(len(history.past)), 2))
    (start, then), (end, last) = history.past[first], history.past[second]
    differ = differing(then, last)
    names = [name for name in _comparable(history, then, last) if differ.get(name)]
    if not names:
        return
    model = history.graph.model(history.random.choice(names))
    column = history.random.choice([model.schema[1].name, ROWS])
    cells = _some_cells(history, model, [then, last], differ[model.name])
    history.say(f"why {column} of {model.name} differs between {start} and {end}")
    run = open_run(history.world.project(history.graph), last.environment)
    told = explain_number(run, model, IntervalSet.of(cells), column, (start, end))
    _is_true(told, model, cells, column, (then, last))


def _comparable(history: History, *contents: Contents) -> list[str]:
    """Name the models whose cells were cut each time as they are declared now."""
    return [
        name
        for name, model in history.graph.models.items()
        if _unit(name, contents) is model.cadence.unit
    ]


def _unit(name: str, contents: Iterable[Contents]) -> Unit | None:
    """Give the length of the cells in which a model was published each time; None where it was not, or they differ."""
    units = {one.models[name].cadence.unit if name in one.models else None for one in contents}
    return units.pop() if len(units) == 1 else None


def _some_cells(
    history: History, model: Model, contents: Collection[Contents], near: Collection[datetime]
) -> list[Interval]:
    """Choose some published cells that follow each other, one of `near` among them."""
    every = sorted({at for one in contents for at in one.of(model.name)})
    first = every.index(history.random.choice(sorted(near)))
    some = every[max(0, first - history.random.randint(0, 2)) :][: history.random.randint(1, 6)]
    return [cell_from(model, at) for at in {*some, every[first]}]


def _some_published(history: History) -> tuple[Model, IntervalSet] | None:
    """Choose a published model and some of its cells; None where nothing is published."""
    published = history.past[-1][1]
    names = [name for name in _comparable(history, published) if published.of(name)]
    if not names:
        return None
    model = history.graph.model(history.random.choice(names))
    cells = _some_cells(history, model, [published], published.of(model.name))
    return model, IntervalSet.of(cells)


def _is_true(
    told: ExplainedNumber,
    model: Model,
    cells: Collection[Interval],
    column: str,
    contents: tuple[Contents, Contents],
) -> None:
    explained = told.explained
    wanted = [_number(one, model, cells, column) for one in contents]
    for number, right in zip((explained.before, explained.after), wanted, strict=True):
        if number is None and not told.unread and column != ROWS:
            raise WrongError(f"{column} of {model.name} is unknown, and it is not said why")
        if number is not None and number != right:
            raise WrongError(f"{column} of {model.name} is said to be {number}, and it is {right}")
    if explained.difference is not None:
        parts = added([part.difference for part in explained.parts])
        if parts != explained.difference:
            raise WrongError(
                f"the parts {explained.parts} are not the difference {explained.difference}"
            )


def _number(found: Contents, model: Model, cells: Collection[Interval], column: str) -> Decimal:
    rows = [row for cell in cells for row in found.of(model.name).get(cell.start, ())]
    if column == ROWS:
        return Decimal(len(rows))
    return sum((Decimal(row.get(column, 0)) for row in rows), Decimal(0))


def replay_some_cells(history: History) -> None:
    """Rebuild published cells from their recorded code and pins: they come out as they are published.

    That may be impossible where tables were collected, sources cleaned or made anew, cells are cut otherwise by now,
    or rows are kept; and of cells that a plan had published before the state was lost.
    """
    found = _some_published(history)
    if found is None:
        return
    model, cells = found
    upstreams = history.random.random() < 0.3
    history.say(f"replay {history.text(model.name, cells)} of {model.name}")
    run = open_run(history.world.project(history.graph), PROD)
    for one in Replay(run, upstreams=upstreams).published(model, cells):
        if one.verdict is Verdict.DIFFERS:
            raise WrongError(f"{one.model} {one.cell} is rebuilt otherwise: {one}")
        collected = history.done["collect_rest"] or history.done["maintain_a_source"]
        may_be_lost = collected or one.model in (PERIODS, RECEIPTS)
        may_be_lost |= all(_ADOPTED in cause for cause in one.causes)
        may_be_lost |= history.states > 0 and all(_LOST in cause for cause in one.causes)
        if one.verdict is Verdict.IMPOSSIBLE and not may_be_lost:
            raise WrongError(f"{one.model} {one.cell} can't be rebuilt: {one.causes}")


@dataclass(frozen=True, slots=True)
class Publishing:
    """What is known before a publication.

    Attributes:
        plan: what is published, or taken back.
        before: what its environment publishes.
        in_flight: the cells that dead processes may have committed, by model: they may be recorded on the way.
    """

    plan: Plan
    before: Contents
    in_flight: Mapping[str, Collection[datetime]]

    @classmethod
    def of(cls, history: History, plan: Plan, before: Contents) -> Publishing:
        """Look before a publication."""
        return cls(plan, before, {name: history.in_flight(name) for name in before.cells})


def tells_what_changed(
    history: History, publishing: Publishing, number: int | None, after: Contents
) -> None:
    """A publication says of exactly those cells that they changed, or are gone, which are published otherwise since.

    An environment that reads another one again also reads what that one has filled meanwhile.
    """
    plan, before = publishing.plan, publishing.before
    asked = cast("Asked", InProject(project=history.plans.project(history.graph)))
    told, differ = cells_told(asked, plan, number), differing(before, after)
    for move in history.world.store.history.moves_of(plan.plan_id):
        name = move.model
        if move.number != number or _unit(name, (before, after)) is None:
            continue
        then, now = before.of(name), after.of(name)
        otherwise = differ[name] | (then.keys() - now.keys())
        said = starts(after.models[name], told["changed"][name] | told["gone"][name])
        said -= {
            at for at in said if now.get(at) == then.get(at) == ()
        }  # of other columns, without a row
        elsewhere = set(now) - set(then) if plan.environment != PROD else set[Any]()
        if said - otherwise or otherwise - said - {*publishing.in_flight.get(name, ())} - elsewhere:
            raise WrongError(
                f"{move.kind} of {plan.plan_id} says that {name} is otherwise in {sorted(said)}, and it is so in "
                f"{sorted(otherwise)}"
            )


def register_a_result(history: History) -> None:
    """Register a result that rests on published cells."""
    found = _some_published(history)
    if found is None:
        return
    model, cells = found
    project = history.plans.project(history.graph)
    number = len(history.results)
    result = register_result(
        project, PROD, (f"result {number}", model.name, cells), "", "", rerun=False
    )
    history.say(f"result {number} rests on {history.text(model.name, cells)} of {model.name}")
    history.results[result.name] = len(history.past) - 1


def ask_of_results(history: History) -> None:
    """Of each result it is told which of its cells are published otherwise since."""
    history.say("which results are still valid")
    for result in history.world.store.results.of_environment(PROD):
        first = history.results[result.name]
        past = [contents for _, contents in history.past[first:]]
        then, now = past[0], past[-1]
        name, model = result.model, then.models[result.model]
        if name not in history.graph.models or _unit(name, past) is None:
            continue
        told = starts(model, changed_since(history.world.store, history.graph, result))
        cells = {at: then.of(name).get(at) for at in starts(model, result.cells)}
        differ = {at for at, rows in cells.items() if now.of(name).get(at) != rows}
        ever = {at for one in past for at, rows in cells.items() if one.of(name).get(at) != rows}
        if not differ <= told <= ever:
            raise WrongError(
                f"{result.name} of {name} is said to rest on other cells in {sorted(told)}: now otherwise are "
                f"{sorted(differ)}, ever were {sorted(ever)}"
            )
