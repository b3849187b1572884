"""Hold what the planner says of an edit against what Spark gives before and after it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from backfill_assets.models.column import Column
from backfill_assets.models.fingerprint import changed_logic
from backfill_assets.models.graph import stored_graph
from backfill_assets.models.model import Model
from backfill_assets.models.sql.lineage import lineage_of
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.planning.change.categorize import difference
from backfill_assets.planning.change.sql_change import sql_effect
from backfill_assets.planning.change.sql_edit import SqlEdit
from backfill_assets.planning.plan.request import Category
from backfill_assets_tests.builders import a_whole
from backfill_assets_tests.edit_pairs.data import TABLES, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets_tests.edit_pairs.generate import Pair

_KEY = Column("_key", "int")  # an edit of a key's value is breaking at once: here no column is one

UNCHANGED, METADATA, ADDITIVE, SOME, ALL = (
    "unchanged",
    "metadata",
    "non-breaking",
    "breaking, some columns",
    "breaking",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What Spark gives for a query.

    Attributes:
        types: per output column, its type.
        rows: sorted, each as text per column; Spark gives them in any order.
    """

    types: dict[str, str]
    rows: tuple[dict[str, str], ...]

    def of(self, columns: Iterable[str]) -> Counter[tuple[str, ...]]:
        """The rows, as often as they occur, of some columns."""
        names = sorted(columns)
        return Counter(tuple(row[name] for name in names) for row in self.rows)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the planner says of an edit.

    Attributes:
        word: the category.
        touched: columns that may differ, are new or gone; None where rows may differ too.
    """

    word: str
    touched: frozenset[str] | None


def planner_says(pair: Pair, before: Answer, after: Answer) -> Verdict:
    """Ask the planner, about two models that declare what the queries give."""
    old, new = (_model(sql, answer) for sql, answer in ((pair.old, before), (pair.new, after)))
    if old.schema == new.schema and not changed_logic(old, new):
        return Verdict(UNCHANGED, frozenset())
    found = difference(old, new)
    if found.rows or found.columns is None:
        return Verdict(ALL, None)
    words = {Category.METADATA: METADATA, Category.NON_BREAKING: ADDITIVE}
    return Verdict(words.get(found.category, SOME), found.columns)


def _model(sql: str, answer: Answer) -> Model:
    columns = [_KEY, *(Column(name, dtype) for name, dtype in answer.types.items())]
    return a_whole("web.m", sql=sql, columns=columns, unique_key=[_KEY.name], upstreams=["web.e"])


def violation(verdict: Verdict, before: Answer, after: Answer) -> str | None:
    """Say what a verdict calls untouched and Spark gives otherwise; None for a verdict that holds."""
    if verdict.touched is None:
        return None
    kept = before.types.keys() - verdict.touched
    same = verdict.word in (UNCHANGED, METADATA)
    gone = (set(before.types) if verdict.word == ADDITIVE else kept) - after.types.keys()
    fresh = after.types.keys() - before.types.keys() - verdict.touched
    retyped = [
        name for name in kept & after.types.keys() if before.types[name] != after.types[name]
    ]
    if (
        gone
        or fresh
        or retyped
        or (same and list(before.types.items()) != list(after.types.items()))
    ):
        return f"another schema: {before.types} and {after.types}"
    if before.of(kept) != after.of(kept):
        return f"other rows of {sorted(kept)}"
    return None


@dataclass(slots=True)
class Bench:
    """Runs each query once.

    Attributes:
        spark: with the tables put up.
        answers: by query; None where Spark refuses it.
        tables: each as it is, and with other values in some columns.
    """

    spark: SparkSession
    answers: dict[str, Answer | None] = field(default_factory=dict[str, "Answer | None"])
    tables: dict[tuple[str, frozenset[str]], DataFrame] = field(
        default_factory=dict["tuple[str, frozenset[str]]", "DataFrame"]
    )

    def answer(self, sql: str) -> Answer | None:
        """Run a query, once."""
        if sql not in self.answers:
            self.answers[sql] = self._asked(sql)
        return self.answers[sql]

    def changed(self, sql: str, name: str, columns: frozenset[str]) -> Answer | None:
        """Run a query where one table has other values in some columns."""
        for each in (frozenset[str](), columns):
            if (name, each) not in self.tables:
                self.tables[name, each] = table(self.spark, name, each)
        self.tables[name, columns].createOrReplaceTempView(name)
        try:
            return self._asked(sql)
        finally:
            self.tables[name, frozenset()].createOrReplaceTempView(name)

    def _asked(self, sql: str) -> Answer | None:
        try:
            return _collected(self.spark.sql(sql))
        except PySparkException:
            return None

    def read(self, query: str, of: str) -> Answer | None:
        """Run a reader of ``m``, which holds what a query gives."""
        return self.answer(
            f"WITH m AS ({of}) {query}"
            if "WITH" not in query
            else query.replace("WITH ", f"WITH m AS ({of}), ", 1)
        )


def unread(spark: SparkSession, sql: str) -> dict[str, frozenset[str]]:
    """Name by table the columns that a query is said not to read; no table where that is not known of all of them."""
    named = _TABLE.sub(r"\1 web.\2", sql)
    read = {name: name.removeprefix("web.") for name in SqlQuery(named).tables()}
    if not set(read.values()) <= TABLES.keys() or read.keys() & TABLES.keys():
        return {}
    types = {
        name: [_KEY, *(Column(*each) for each in spark.table(of).dtypes)]
        for name, of in read.items()
    }
    tables = [
        a_whole(name, columns=types[name], unique_key=["_key"], upstreams=[]) for name in read
    ]
    reader = a_whole("web.r", sql=named, upstreams=sorted(read))
    reads = lineage_of(stored_graph([*tables, reader], []), reader).reads
    return {
        read[name]: frozenset(column.name for column in types[name]) - columns - {_KEY.name}
        for name, columns in reads.items()
    }


_TABLE = re.compile(r"\b(FROM|JOIN)\s+([ef])\b(?!\s*\()", re.IGNORECASE)
"""A table where a query reads it: models have names of two parts."""

_READ = "web.m"
READERS = (
    "SELECT {a}, {b} FROM {m}",
    "SELECT {a}, COUNT(*) AS c, MAX({b}) AS d FROM {m} GROUP BY {a}",
    "SELECT DISTINCT {a} FROM {m}",
    "SELECT *, COUNT({b}) OVER (PARTITION BY {a}) AS c FROM {m}",
    "WITH w AS (SELECT {a} AS p, {b} AS q FROM {m} WHERE {a} IS NOT NULL) SELECT p, MIN(q) AS q FROM w GROUP BY 1",
    "SELECT l.{a}, r.{b} FROM {m} l JOIN {m} r ON l.{a} = r.{a}",
    "SELECT *, COUNT(*) AS c FROM {m} GROUP BY ALL",
    "SELECT p FROM (SELECT * FROM (SELECT {b} AS q, {a} AS p FROM {m}) ORDER BY 1, 2 LIMIT 3)",
    "SELECT p FROM (SELECT {b} AS q, {a} AS p FROM {m} UNION ALL SELECT {b}, {a} FROM {m} ORDER BY ALL LIMIT 3)",
)


def reader_violations(bench: Bench, pair: Pair, verdict: Verdict) -> Iterator[str]:
    """Follow a verdict through readers of the edited query; say which untouched columns differ."""
    before, after = bench.answer(pair.old), bench.answer(pair.new)
    if before is None or after is None or not verdict.touched:
        return
    names = [name for name in before.types if name in after.types and name.isidentifier()]
    other = [
        (a, b) for a in names for b in names if (a in verdict.touched) != (b in verdict.touched)
    ]
    for a, b in other[:1] + other[-1:]:
        for reader in READERS:
            query = reader.format(a=a, b=b, m="m")
            touched = _reached(reader.format(a=a, b=b, m=_READ), verdict.touched, before)
            if touched is None:
                continue
            read = [bench.read(query, sql) for sql in (pair.old, pair.new)]
            if read[0] is None or read[1] is None:
                continue
            kept = [
                column
                for column in read[0].types
                if column in read[1].types and column.lower() not in touched
            ]
            if read[0].of(kept) != read[1].of(kept):
                yield f"{query}: other rows of {kept}"


def _reached(sql: str, touched: frozenset[str], read: Answer) -> frozenset[str] | None:
    """What a reader's outputs may differ in; nothing where it reads nothing that is touched, None for all."""
    query = SqlQuery(sql)
    columns = [_KEY, *(Column(*column) for column in read.types.items())]
    upstream = a_whole(_READ, columns=columns, unique_key=[_KEY.name], upstreams=[])
    reader = a_whole("web.r", sql=sql, upstreams=[_READ])
    lineage = lineage_of(stored_graph([upstream, reader], []), reader).reads.get(_READ)
    if lineage is not None and not lineage & touched:
        return frozenset()
    effect = sql_effect(query, {_READ: SqlEdit(changed=touched)})
    if effect.rows or effect.added or effect.removed or effect.moved:
        return None
    return effect.changed | {name.lower() for name in touched}


def _collected(frame: Any) -> Answer | None:  # noqa: ANN401 - a DataFrame of either kind
    names = frame.columns
    if len({name.lower() for name in names}) < len(names):
        return None  # can't be published: two columns share a name
    rows = (
        {name: repr(value) for name, value in zip(names, row, strict=True)}
        for row in frame.collect()
    )
    return Answer(dict(frame.dtypes), tuple(sorted(rows, key=str)))
