"""Rebuild published cells from their recorded code and pins, and compare them with what is published.

A batch is computed again by the steps of any batch, into a folder of its own that is removed; nothing is
committed, and the state is only read.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.computing import computing_into
from backfill_assets.engine.batch.effects import effects_of
from backfill_assets.engine.batch.requests import ADOPTED, input_cells
from backfill_assets.engine.project.relied_sources import as_relied_on
from backfill_assets.engine.review.number_history import RecordedCells, committed, moves_read
from backfill_assets.engine.upkeep.collecting import REPLAYS
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.kind import IncrementalByUniqueKey
from backfill_assets.models.python.function_query import FunctionQuery, ModuleQuery
from backfill_assets.models.source_reading import read_readings
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.planning.review.replayed import Replayed, Verdict, differing_columns
from backfill_assets.snapshots.batch import EMPTY, BatchRequest, OpenBatch
from backfill_assets.snapshots.environment import plan_of
from backfill_assets.snapshots.publication import PROMOTED
from backfill_assets.snapshots.ready import pins_by_upstream
from backfill_assets.warehouse.files.cell_files import files_at, missing_files, spark_versions
from backfill_assets.warehouse.files.cells import cell_text
from backfill_assets.warehouse.files.layers import table_of
from backfill_assets.warehouse.files.tables import Table
from backfill_assets.warehouse.log.delta_log import ABSENT, table_id
from backfill_assets.warehouse.rows.inputs import Input
from backfill_assets.warehouse.spark.spark_errors import error_of_ours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import Content
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.planning.review.number_changes import HeldContent
    from backfill_assets.snapshots.publication import PointerMove
    from backfill_assets.snapshots.ready import InputPin
    from backfill_assets.state.batch_rows import BatchRow

_SHOWN = 8


class _CantReplayError(BackfillAssetsError):
    """A cell can't be rebuilt; the message says why."""


@dataclass(frozen=True, slots=True)
class _Built:
    """Cells of one model that one batch built, as they are published or were read.

    Attributes:
        model: whose.
        row: the batch.
        held: what the cells hold.
    """

    model: str
    row: BatchRow
    held: Mapping[Interval, HeldContent]

    @property
    def cells(self) -> IntervalSet:
        """The cells."""
        return IntervalSet.of(self.held)


@dataclass
class Replay:
    """Replays cells of an environment; each cell once.

    Attributes:
        run: of the environment.
        upstreams: whether the cells of models that were read are replayed as well, and theirs.
    """

    run: RunContext
    upstreams: bool = False
    _done: set[tuple[str, str, int | None, Interval]] = field(
        default_factory=set["tuple[str, str, int | None, Interval]"]
    )

    def published(self, model: Model, cells: IntervalSet) -> Iterator[Replayed]:
        """Replay the published ones of some cells, upstream first where that is asked."""
        recorded = self._recorded(model.name, tuple(model.cadence.cells(cells)))
        pointer = self.run.store.environments.pointers(self.run.environment.name).get(model.name)
        yield from self._held(model.name, {} if pointer is None else recorded.held(pointer))

    def _recorded(self, model: str, cells: tuple[Interval, ...]) -> RecordedCells:
        return RecordedCells(self.run.store.reading(), model, cells)

    def _held(self, model: str, by_cell: Mapping[Interval, HeldContent]) -> Iterator[Replayed]:
        by_batch: dict[str, dict[Interval, HeldContent]] = defaultdict(dict)
        for cell, held in by_cell.items():
            key = (model, held.version, held.since, cell)
            if key not in self._done:
                self._done.add(key)
                by_batch[held.batch_id][cell] = held
        for batch_id, own in by_batch.items():
            if not batch_id:
                why = "its table has cells that were cut otherwise, or was deleted"
                yield from _impossible(model, own, why)
                continue
            row = self.run.store.batches.find(batch_id)
            if row is None:
                why = "its batch is not in the state, so neither its code nor its pins are known"
                yield from _impossible(model, own, why)
                continue
            built = _Built(model, row, own)
            if self.upstreams:
                yield from self._below(built)
            yield from self._replayed(built)

    def _below(self, built: _Built) -> Iterator[Replayed]:
        """Replay the cells of models that a batch read for some cells, at its pins."""
        declared = self._declared(built.row)
        if declared is None or built.row.reason in (EMPTY, ADOPTED):
            return
        graph = replace(self.run.graph, models={**self.run.graph.models, built.model: declared})
        read = input_cells(replace(self.run, graph=graph), declared, built.cells)
        for name, pins in pins_by_upstream(built.row.inputs).items():
            if name in graph.models and read.get(name):
                cells = tuple(graph.models[name].cadence.cells(read[name]))
                recorded = self._recorded(name, cells)
                held = {cell: recorded.at_pins(pins, cell) for cell in cells}
                yield from self._held(name, {cell: each for cell, each in held.items() if each})

    def _replayed(self, built: _Built) -> Iterator[Replayed]:
        try:
            contents = self._rebuilt(built, built.cells)
        except Exception as error:  # noqa: BLE001 - whatever a query raises is the stated cause
            yield from _impossible(built.model, built.held, str(error_of_ours(error)), built.row)
            return
        differing = {
            cell: held for cell, held in built.held.items() if contents.get(cell) != held.content
        }
        causes = self._causes(built, differing) if differing else ()
        for cell, held in built.held.items():
            yield _compared(built, cell, held.content, contents[cell], causes)

    def _rebuilt(self, built: _Built, cells: IntervalSet) -> dict[Interval, Content]:
        """Compute cells as their batch did, and measure them.

        Raises:
            _CantReplayError: what that takes is not there any more, or was never recorded.
        """
        run, row = self._run_of(built), built.row
        model = run.graph.model(built.model)
        each_cell = tuple(model.cadence.cells(cells))
        request = BatchRequest(
            batch_id=row.batch_id, environment=row.environment, model=row.model, version=row.version,
            fingerprint=row.fingerprint, stretches=cells, cells=each_cell, reads={}, source_pins=(),
            run_id=row.run_id, root_id=row.root_id, plan_id=row.plan_id, reason=row.reason,
            attempt=row.attempt, resources=row.resources or {},
        )  # fmt: skip
        opened = OpenBatch(request, row.built_at, self._inputs(row))
        target = self._target(model, row)
        with computing_into(run, opened, target, row.started_at) as (flight, batch):
            flight.check()
            return {profile.cell: profile.content for profile in batch.profile()}

    def _target(self, model: Model, row: BatchRow) -> Table:
        """Give a table of no commit in the folder of replays; rows that were kept are read as they stood."""
        here = f"{self.run.data_root}/{REPLAYS}"
        if not model.keeps_rows:
            return Table(here, ABSENT)
        if plan_of(row.environment) is not None or row.delta_version is None:
            raise _CantReplayError(
                "it keeps rows that its source lost, and was built in a plan's workspace: the rows that were "
                "carried over from the published table then are not recorded"
            )
        before = Table(self.run.store.versions.version_path(row.version), row.delta_version - 1)
        return Table(here, ABSENT, IntervalSet.empty(), (before,))

    def _run_of(self, built: _Built) -> RunContext:
        """Give a run in which the model is declared as its batch ran it, and reads its recorded pins."""
        row = built.row
        if row.reason == ADOPTED:
            raise _CantReplayError("it was adopted from a table of another system, not computed")
        if row.reason == PROMOTED:
            raise _CantReplayError(
                f"plan {row.plan_id} has published it, and the batch that computed it for the plan was lost with the "
                "state: the log of the published table does not hold its pins"
            )
        declared = self._declared(row)
        if declared is None:
            raise _CantReplayError(
                f"snapshot {row.fingerprint[:_SHOWN]}, whose code built it, was deleted by `backfill gc`"
            )
        self._refuse_deleted(row)
        graph = self._graph(built, replace(declared, audits=()))
        own = replace(effects_of(self.run), inputs=_pinned_inputs)
        project = replace(self.run.project, effects=own)
        return replace(self.run, project=project, graph=graph, until=row.started_at)

    def _refuse_deleted(self, row: BatchRow) -> None:
        """Refuse where a table of a model that the batch read is not there any more."""
        for pin in row.inputs:
            if pin.version and not self.run.store.versions.is_known(pin.version):
                raise _CantReplayError(
                    f"table {pin.version} of '{pin.upstream}', which it read, was deleted by `backfill gc`"
                )

    def _inputs(self, row: BatchRow) -> tuple[InputPin, ...]:
        """Give the pins that a batch has read; of a source whose table was moved since, where it lies now.

        Raises:
            _CantReplayError: the table of a source is another one than was read.
        """
        return tuple(self._as_it_lies(pin) if pin.table_id else pin for pin in row.inputs)

    def _as_it_lies(self, pin: InputPin) -> InputPin:
        located, source = self.run.store.located, self.run.graph.sources.get(pin.upstream)
        now = table_id(located(pin.path))
        if now == pin.table_id:
            return pin
        if source is not None and table_id(located(source.path)) == pin.table_id:
            return replace(pin, path=source.path)
        if not now:  # a log whose first commit is gone tells no id
            return pin
        raise _CantReplayError(
            f"the table of source '{pin.upstream}' was made anew: its id was {pin.table_id} when it "
            f"was read, and is {now}"
        )

    def _declared(self, row: BatchRow) -> Model | None:
        return self.run.store.snapshots.model(row.fingerprint)

    def _graph(self, built: _Built, declared: Model) -> Graph:
        """Declare the model as it was, what it read as it was at the pins, and sources as it relied on them."""
        models = {**self.run.graph.models, built.model: declared}
        for name, pins in pins_by_upstream(built.row.inputs).items():
            if pins[0].version and name != built.model:
                then = self._upstream_then(name, built.row, pins)
                if then is None:
                    raise _CantReplayError(
                        f"the declaration of '{name}', which it read, was deleted by `backfill gc`"
                    )
                models[name] = then
        graph = replace(self.run.graph, models=models)
        lost = [read.name for read in declared.reads if not _is_declared(graph, read.name)]
        if lost:
            raise _CantReplayError(f"'{lost[0]}', which it read, is not declared any more")
        relied = read_readings(self.run.store.snapshots.get(built.row.fingerprint).sources)
        return as_relied_on(graph, {built.model: relied}, {built.model})[0]

    def _upstream_then(self, name: str, row: BatchRow, pins: tuple[InputPin, ...]) -> Model | None:
        """Give the declaration of what was read that was run then; else one that built some of it, else today's.

        A table that is kept holds cells of several, and only the one that is run has all of its columns.
        """
        if then := self.run.store.snapshots.model(self._run_then(name, row)):
            return then
        for pin in pins:
            for record in self.run.store.versions.ready_records(pin.version, pin.delta_version):
                if then := self.run.store.snapshots.model(record.fingerprint):
                    return then
        return self.run.graph.models.get(name)

    def _run_then(self, name: str, row: BatchRow) -> str:
        """Name the snapshot of a model that a batch's environment ran when it read; empty where that is not recorded."""
        store, environment = self.run.store, row.environment
        try:
            if (plan_id := plan_of(environment)) is not None:
                plan = read_plan(store.plans.get(plan_id).content)
                planned = {each.model: each.fingerprint for each in plan.models}
                if name in planned:
                    return planned[name]
                environment = plan.environment
            moves = self._moves(environment, name)
            now = store.environments.pointers(environment).get(name)
        except BackfillAssetsError:  # the plan or the environment is gone, or of another release
            return ""
        before = [move for move in moves if move.number < row.built_at]
        at = before[-1].new if before else moves[0].old if moves else now
        return "" if at is None else at.fingerprint

    @cached_property
    def _moves(self) -> Callable[[str, str], list[PointerMove]]:
        """Give the moves of what an environment read of a model; each is asked for once."""
        reading, moves_in = self.run.store.reading(), cache(self.run.store.history.moves_in)
        return cache(
            lambda environment, name: moves_read(
                reading, moves_in, environment, name, committed(reading, name)
            )
        )

    def _causes(self, built: _Built, differing: Mapping[Interval, HeldContent]) -> tuple[str, ...]:
        """Say why rebuilt cells may differ; what is known comes before what is possible."""
        declared = self._declared(built.row)
        causes = [
            *_declared_causes(declared),
            *self._spark_causes(built, differing),
            *self._batch_causes(built, differing),
        ]
        if isinstance(declared.logic if declared else None, ModuleQuery | FunctionQuery):
            causes.append("it is a Python function: the libraries installed then are not recorded")
        return tuple(causes) or ("no recorded cause: code, pins and Spark are the same",)

    def _spark_causes(self, built: _Built, differing: Iterable[Interval]) -> Iterator[str]:
        then: set[str] = set()
        declared = self._declared(built.row)
        for cell in differing:
            held = built.held[cell]
            if held.since is not None and declared is not None:
                path = self.run.store.versions.version_path(held.version)
                files = files_at(path, held.since, [cell_text(declared.cadence, cell)])
                gone = {*missing_files(path, files)}
                then |= spark_versions(path, (file for file in files if file.name not in gone))
        if then and then != {now := self.run.spark().version}:
            yield f"Spark {', '.join(sorted(then))} wrote it, and Spark {now} is running"

    def _batch_causes(
        self, built: _Built, differing: Mapping[Interval, HeldContent]
    ) -> Iterator[str]:
        """Find out whether the cells come out as they were where their whole batch is computed."""
        if not built.row.stretches - built.cells:
            return
        whole = self._rebuilt(built, built.row.stretches)
        if all(whole.get(cell) == held.content for cell, held in differing.items()):
            yield (
                "its query depends on which cells are computed together: with all cells of its batch it "
                "comes out equal"
            )


def _pinned_inputs(run: RunContext, model: Model, opened: OpenBatch) -> dict[str, Input]:
    """Give each upstream at the recorded pins, of the cells that the replayed ones read."""
    cells = input_cells(run, model, opened.request.stretches)
    return {
        name: Input(run.graph.node(name), table_of(pins, run.store.located), cells[name])
        for name, pins in pins_by_upstream(opened.inputs).items()
        if name in cells
    }


def _is_declared(graph: Graph, name: str) -> bool:
    return name in graph.models or name in graph.sources


def _declared_causes(declared: Model | None) -> Iterator[str]:
    if declared is None:
        return
    if declared.volatile:
        yield "its query is declared volatile: it may answer differently each time"
    if isinstance(declared.kind, IncrementalByUniqueKey):
        yield "it is merged by key: later batches may have moved its rows to other cells"


def _compared(
    built: _Built,
    cell: Interval,
    published: Content | None,
    rebuilt: Content,
    causes: tuple[str, ...],
) -> Replayed:
    if published is None:
        (result,) = _impossible(
            built.model, [cell], "its recorded content was deleted by `backfill gc`", built.row
        )
        return result
    equal = published == rebuilt
    doubtful = not equal and published.in_doubt(rebuilt)
    verdict = Verdict.EQUAL if equal else Verdict.DIFFERS
    if doubtful:
        verdict = Verdict.IMPOSSIBLE
        causes = (
            "its checksums were made by a release that rounded floats: they can't be compared",
        )
    return Replayed(
        model=built.model,
        cell=cell,
        verdict=verdict,
        causes=() if equal else causes,
        columns=() if equal else differing_columns(published, rebuilt),
        rows=(published.rows, rebuilt.rows),
        batch_id=built.row.batch_id,
        fingerprint=built.row.fingerprint,
        pins=_pins_told(built.row),
    )


def _impossible(
    model: str, cells: Iterable[Interval], why: str, row: BatchRow | None = None
) -> Iterator[Replayed]:
    for cell in cells:
        yield Replayed(
            model=model,
            cell=cell,
            verdict=Verdict.IMPOSSIBLE,
            causes=(why,),
            batch_id=row.batch_id if row else "",
            fingerprint=row.fingerprint if row else "",
            pins=_pins_told(row) if row else (),
        )


def _pins_told(row: BatchRow) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"{pin.upstream}@{pin.delta_version}" for pin in row.inputs))
