"""Evaluations that consumers have declared: each is run on what is published, and on what a plan would publish."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from backfill_assets.engine.batch.batch_inputs import published_table
from backfill_assets.engine.plans.comparing import measured_once
from backfill_assets.engine.review.compared import Measured
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval import epoch_of
from backfill_assets.intervals.text import last_line
from backfill_assets.planning.review.touched import reads_since
from backfill_assets.warehouse.rows.reading import rows_read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.consumer import Consumer, Evaluation, Reading
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.files.tables import Table


class EvaluationFailedError(BackfillAssetsError):
    """The command of an evaluation gives no numbers."""

    def __init__(self, command: tuple[str, ...], found: str) -> None:
        self.command = command
        super().__init__(
            f"`{' '.join(command)}` gives no numbers: {found}; expected one JSON object of numbers as the last "
            "line of what it prints, and exit code 0"
        )


@dataclass(frozen=True, slots=True)
class _Read:
    """What a consumer reads of one model on one side."""

    model: Model
    table: Table
    columns: tuple[str, ...]
    cells: IntervalSet


def run_evaluation(op: Operation, consumer: Consumer, evaluation: Evaluation) -> tuple[bool, str]:
    """Run an evaluation on both sides, and tell whether they are near enough, and what was found."""
    try:
        before, after = (
            _measured(op, consumer, evaluation, run) for run in (op.environment(), op.workspace())
        )
    except EvaluationFailedError as error:
        return False, str(error)
    if after is None:
        return False, "not all that it reads would be published"
    if before is None:
        return True, f"{_said(after)}; not all that it reads is published yet"
    return compared(before, after, evaluation.within)


def compared(
    before: Mapping[str, float], after: Mapping[str, float], within: float
) -> tuple[bool, str]:
    """Hold the numbers of an evaluation against each other.

    Args:
        before: of what is published.
        after: of what would be.
        within: the fraction of the number before by which each may differ.
    """
    outside = [name for name in {**before, **after} if not _is_near(name, before, after, within)]
    shown = outside or [*after]
    text = ", ".join(
        f"{name} {_number(before.get(name))} before, {_number(after.get(name))} after"
        for name in shown
    )
    return not outside, text + (f"; not within {within:.2%}" if outside else "")


def _is_near(
    name: str, before: Mapping[str, float], after: Mapping[str, float], within: float
) -> bool:
    if name not in before or name not in after:
        return False
    return abs(after[name] - before[name]) <= within * abs(before[name])


def _number(number: float | None) -> str:
    return "none" if number is None else f"{number:,.6g}"


def _said(numbers: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {_number(number)}" for name, number in numbers.items())


def _measured(
    op: Operation, consumer: Consumer, evaluation: Evaluation, run: RunContext
) -> dict[str, float] | None:
    """Give the numbers of one side; None where a model or column that the consumer reads is not there."""
    view = run.view()
    if any(reading.model not in view.models or _lacks(run, reading) for reading in consumer.reads):
        return None
    read = tuple(_read(run, reading, view.ready(reading.model)) for reading in consumer.reads)
    question = (evaluation, tuple((each.model.name, each.columns) for each in read))
    tables = tuple((each.model, each.table, each.cells) for each in read)
    return dict(measured_once(op, question, tables, lambda: _run(op, evaluation, read)).numbers)


def _lacks(run: RunContext, reading: Reading) -> bool:
    """Whether a model has not all columns that are read, as before a plan that adds one."""
    return not {*reading.columns} <= {
        column.name for column in run.graph.model(reading.model).schema
    }


def _read(run: RunContext, reading: Reading, ready: IntervalSet) -> _Read:
    model = run.graph.model(reading.model)
    since = reads_since(reading, model.cadence, run.clock())
    if since is not None and ready:
        ready = ready.within(epoch_of(since), max(epoch_of(since), ready.boundaries[-1]))
    columns = tuple(reading.columns) or tuple(column.name for column in model.schema)
    return _Read(model, published_table(run, reading.model), columns, ready)


def _run(op: Operation, evaluation: Evaluation, read: tuple[_Read, ...]) -> Measured:
    """Write what the consumer reads as Parquet files, and run its command over them."""
    from pyarrow import parquet  # noqa: PLC0415 - a tenth of a second that plans without evaluations must not pay

    with TemporaryDirectory(prefix="evaluation-") as folder:
        for each in read:
            rows = rows_read(op.spark(), each.model, each.table, each.columns, each.cells)
            parquet.write_table(rows, Path(folder) / f"{each.model.name}.parquet")
        return Measured(tuple(numbers_of(evaluation, folder).items()))


def numbers_of(evaluation: Evaluation, folder: str) -> dict[str, float]:
    """Run the command of an evaluation over a folder, and give its numbers.

    Raises:
        EvaluationFailedError: it gives none.
    """
    command, seconds = tuple(evaluation.command), evaluation.minutes * 60
    try:
        ended = subprocess.run(  # noqa: S603 - the consumer's own command
            (*command, folder),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise EvaluationFailedError(
            command, f"it did not end within {evaluation.minutes:g} min"
        ) from error
    except OSError as error:
        raise EvaluationFailedError(command, error.strerror or str(error)) from error
    if ended.returncode:
        reason = f": {last_line(ended.stderr)}" if ended.stderr.strip() else ""
        raise EvaluationFailedError(command, f"it ended with exit code {ended.returncode}{reason}")
    return _printed(command, last_line(ended.stdout))


def _printed(command: tuple[str, ...], line: str) -> dict[str, float]:
    try:
        content: Any = json.loads(line)
    except ValueError as error:
        raise EvaluationFailedError(command, f"it ended with {line[:60]!r}") from error
    numbers = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    if not numbers or not all(_is_number(each) for each in numbers.values()):
        raise EvaluationFailedError(command, f"it ended with {line[:60]!r}")
    return {name: float(number) for name, number in numbers.items()}


def _is_number(value: object) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # an int beyond all floats
        return False
