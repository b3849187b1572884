"""Read what a person expects of a plan, on the command line or in a TOML file.

    MODEL: RULE; RULE; ...

    only COLUMN, COLUMN          no other column differs, and no row comes or goes; `only nothing`
    rows within 2%               at most so many rows changed, added and removed, each
    rows added within 1%         the same of one of the three
    COLUMN within 0.5% a month   its sum; also `a cell`, `a COLUMN`, or nothing for the sum over all cells
      , 3% in 2024-03, ...       one month, cell or value of the column that may differ by another share
    COLUMN null within 1%        of the rows afterwards
    cells A..B, C                no other cell differs

A TOML file has the same rules as a list of texts under the model's name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeAlias, cast

from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.parse_range import parse_interval
from backfill_assets.intervals.partition_keys import PartitionKeyError
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.column import is_numeric
from backfill_assets.planning.review.contract import (
    Expectation,
    NullsWithin,
    OnlyCells,
    OnlyColumns,
    Per,
    RowChange,
    RowsWithin,
    Rule,
    SumWithin,
    rule_words,
    subject,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.model import Model

Written: TypeAlias = "tuple[tuple[str, str], ...]"

_PERCENT = r"(?P<percent>\d+(?:\.\d+)?) ?%"
_NAME = r"`?(?P<column>[^`;,]+?)`?"
_OWN = r"(\d+(?:\.\d+)?) ?% in ([^,;]+)"
_ONLY = re.compile(r"only (?P<columns>.+)", re.IGNORECASE)
_CELLS = re.compile(r"cells (?P<cells>.+)", re.IGNORECASE)
_ROWS = re.compile(rf"rows(?: (?P<how>changed|added|removed))? within {_PERCENT}", re.IGNORECASE)
_NULLS = re.compile(rf"{_NAME} null within {_PERCENT}", re.IGNORECASE)
_SUM = re.compile(
    rf"(?:sum of )?{_NAME} within {_PERCENT}(?: (?:an?|per) `?(?P<per>[^`;,]+?)`?(?P<own>(?:, ?{_OWN})*))?",
    re.IGNORECASE,
)
_FORMS = (
    "only COLUMN,...", "rows within N%", "rows changed|added|removed within N%",
    "COLUMN within N% [a month|a cell|a COLUMN[, N% in VALUE]]", "COLUMN null within N%", "cells A..B",
)  # fmt: skip
_LONGER = (Unit.YEAR, Unit.WHOLE)


def written_expectations(lines: Iterable[str]) -> Written:
    """Read ``MODEL: RULE; RULE`` as pairs of a model and one rule.

    Raises:
        RequestError: there is no model, or no rule.
    """
    return tuple(pair for line in lines for pair in _line(line))


def _line(line: str) -> Iterator[tuple[str, str]]:
    model, _, rules = (part.strip() for part in line.partition(":"))
    texts = [" ".join(rule.split()) for rule in rules.split(";") if rule.strip()]
    if not model or not texts:
        raise RequestError(
            found=f"--expect {line!r} can't be read",
            expected="MODEL: RULE; RULE, or a file that ends in .toml",
        )
    yield from ((model, text) for text in texts)


def expectations_of_toml(text: str, path: str) -> Written:
    """Read a TOML file: under each model's name a list of rules.

    Raises:
        RequestError: it is no TOML, or holds something else.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RequestError(found=f"--expect {path}: it is no TOML ({error})") from error
    return tuple(_of_table(document, "", path))


def _of_table(table: Mapping[str, object], prefix: str, path: str) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _of_table(cast("Mapping[str, object]", value), f"{name}.", path)
            continue
        rules = [value] if isinstance(value, str) else value
        if not isinstance(rules, list) or not all(
            isinstance(rule, str) for rule in cast("list[object]", rules)
        ):
            problem = f"--expect {path}: {name} = {value!r}"
            raise RequestError(found=problem, expected='a list of rules, such as ["only discount"]')
        yield from _line(f"{name}: {'; '.join(cast('list[str]', rules))}")


def expectations(
    model: Model, old: Model | None, texts: Iterable[str], author: str
) -> tuple[Expectation, ...]:
    """Read the rules of one model.

    ``only`` also says that no row is added or removed, unless another rule says how many.

    Args:
        model: as the plan declares it.
        old: as it is published; None where it is not.
        texts: the rules.
        author: who wrote them.

    Raises:
        RequestError: a rule can't be read, names no column or cell, or is said twice.
    """
    rules = [rule for text in texts for rule in _rules(model, old, text)]
    by_subject = {subject(rule): rule for rule in rules}
    if len(by_subject) < len(rules):
        twice = next(rule for rule in rules if by_subject[subject(rule)] is not rule)
        wording = _words(model, twice)
        raise RequestError(found=f"--expect {model.name}: {wording!r} is said twice, or otherwise")
    if ("columns",) in by_subject:
        for change in (RowChange.ADDED, RowChange.REMOVED):
            by_subject.setdefault(("rows", change.value), RowsWithin(change, 0.0))
    return tuple(expectation(model, rule, author) for rule in by_subject.values())


def expectation(model: Model, rule: Rule, decided_by: str) -> Expectation:
    """Name a rule by what it says."""
    return Expectation(model.name, _words(model, rule), rule, decided_by)


def _words(model: Model, rule: Rule) -> str:
    cells = ranges_text(model.cadence, rule.cells) if isinstance(rule, OnlyCells) else ""
    return rule_words(rule, cells)


def _rules(model: Model, old: Model | None, text: str) -> Iterator[Rule]:
    if match := _ONLY.fullmatch(text):
        yield OnlyColumns(_only(model, old, match["columns"], text))
    elif match := _CELLS.fullmatch(text):
        spans = match["cells"].split(",")
        yield OnlyCells(IntervalSet.of(_cells(model.cadence, span.strip(), text) for span in spans))
    elif match := _ROWS.fullmatch(text):
        changes = [RowChange(match["how"].lower())] if match["how"] else list(RowChange)
        yield from (RowsWithin(change, float(match["percent"])) for change in changes)
    elif match := _NULLS.fullmatch(text):
        column = _column(model, None, match["column"], text)
        yield NullsWithin(column, float(match["percent"]))
    elif match := _SUM.fullmatch(text):
        yield _sum(model, old, match, text)
    else:
        raise _unreadable(text)


def _unreadable(text: str) -> RequestError:
    first, _, rest = text.partition(" ")
    close = get_close_matches(first.lower(), ("only", "rows", "cells"), n=1)
    meant = f"Did you mean '{close[0]} {rest}'?" if close and close[0] != first else ""
    return RequestError(
        found=f"--expect: the rule {text!r} can't be read",
        expected=f"one of: {'; '.join(_FORMS)}",
        do=meant,
    )


def _only(model: Model, old: Model | None, listed: str, text: str) -> tuple[str, ...]:
    names = [name.strip().strip("`") for name in listed.split(",") if name.strip()]
    if [name.lower() for name in names] == ["nothing"]:
        return ()
    columns = tuple(dict.fromkeys(_column(model, old, name, text) for name in names))
    for column in columns:
        if column in model.key:
            raise RequestError(
                found=f"--expect {text!r}: {column} is of the key of {model.name}: a row with another "
                "key is another row",
                do="say how many rows may be added and removed",
            )
    return columns


def _column(model: Model, old: Model | None, name: str, text: str) -> str:
    """Find a column of either declaration, whatever its case."""
    names = [column.name for side in (model, old) if side is not None for column in side.schema]
    for column in names:
        if column.lower() == name.strip().lower():
            return column
    close = get_close_matches(name.strip(), names, n=1)
    raise RequestError(
        found=f"--expect {text!r}: {model.name} has no column '{name.strip()}'",
        do=f"did you mean '{close[0]}'?" if close else f"it has {', '.join(dict.fromkeys(names))}",
    )


def _sum(model: Model, old: Model | None, match: re.Match[str], text: str) -> SumWithin:
    column = _column(model, old, match["column"], text)
    per, group = _per(model, old, match["per"] or "", text)
    for side in (model, old):
        types = {} if side is None else {each.name: each.dtype for each in side.schema}
        if column not in types:
            raise RequestError(
                found=f"--expect {text!r}: {column} is not in {model.name} both before and afterwards, "
                "so its sums can't be compared"
            )
        if column in model.key or not is_numeric(types[column]):
            why = "of its key" if column in model.key else f"a {types[column]}"
            raise RequestError(
                found=f"--expect {text!r}: {column} of {model.name} is {why}",
                expected="a column of numbers outside of the key",
            )
    if per is Per.MONTH and model.cadence.unit in _LONGER:
        raise RequestError(
            found=f"--expect {text!r}: cells of {model.name} are longer than a month",
            do="compare the sum a cell, or over all cells",
        )
    own = [(name.strip(), float(share)) for share, name in re.findall(_OWN, match["own"] or "")]
    return SumWithin(column, float(match["percent"]), per, group, tuple(own))


def _per(model: Model, old: Model | None, grouping: str, text: str) -> tuple[Per, str]:
    """Read over what a sum is compared: a stretch, or a column whose values are groups.

    Raises:
        RequestError: there is no such column, before and afterwards.
    """
    if not grouping:
        return Per.WHOLE, ""
    if grouping.lower() in {Per.MONTH, Per.CELL}:
        return Per(grouping.lower()), ""
    group = _column(model, old, grouping, text)
    for side in (model, old):
        if side is None or group not in {column.name for column in side.schema}:
            raise RequestError(
                found=f"--expect {text!r}: {group} is not in {model.name} both before and afterwards, "
                "so its groups can't be compared"
            )
    return Per.GROUP, group


def _cells(cadence: Cadence, span: str, text: str) -> Interval:
    first, dots, last = (part.strip() for part in span.partition(".."))
    try:
        try:
            start, end = cadence.cell(first).start, cadence.cell(last if dots else first).end
        except PartitionKeyError:
            interval = parse_interval(first, last if dots else first, cadence)
            start, end = cadence.floor(interval.start), cadence.ceil(interval.end)
        return Interval(start, end) if start < end else parse_interval(start, end, cadence)
    except BackfillAssetsError as error:
        raise RequestError(found=f"--expect {text!r}: {error}") from error
