"""No column or row that a verdict calls untouched differs once the edit is made."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.edit_pairs.data import put_up
from backfill_assets_tests.edit_pairs.generate import Pair, pairs, sample, templates
from backfill_assets_tests.edit_pairs.judging import (
    ADDITIVE,
    ALL,
    METADATA,
    SOME,
    UNCHANGED,
    Bench,
    Verdict,
    planner_says,
    reader_violations,
    unread,
    violation,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def bench(spark: SparkSession) -> Bench:
    put_up(spark)
    return Bench(spark)


def _judged(bench: Bench, edits: Iterable[Pair]) -> tuple[Counter[str], list[str]]:
    """Count the verdicts, and name those that are wrong."""
    words, wrong = Counter[str](), list[str]()
    for pair in edits:
        before, after = bench.answer(pair.old), bench.answer(pair.new)
        if before is None or after is None:
            words["refused by Spark"] += 1
            continue
        verdict = planner_says(pair, before, after)
        words[verdict.word] += 1
        found = violation(verdict, before, after)
        if found:
            wrong.append(
                f"{verdict.word} {sorted(verdict.touched or ())}: {found}\n  {pair.old}\n  {pair.new}"
            )
    return words, wrong


def test_no_verdict_on_a_sample_of_edits_calls_something_untouched_that_differs(bench: Bench):
    words, wrong = _judged(bench, sample(40))

    assert not wrong, "\n".join(wrong)
    assert sum(words.values()) >= 40
    assert words[UNCHANGED] + words[METADATA] + words[ADDITIVE] + words[SOME] >= 10


@pytest.mark.slow
def test_no_verdict_on_any_edit_calls_something_untouched_that_differs(bench: Bench):
    every = pairs()
    words, wrong = _judged(bench, every)
    print(f"{len(every)} edits, {len(bench.answers)} queries: {dict(words)}")  # noqa: T201 - the long run's numbers

    assert not wrong, "\n".join(wrong)
    assert len(every) - words["refused by Spark"] >= 1000
    for word in (UNCHANGED, METADATA, ADDITIVE, SOME, ALL):
        assert words[word] >= 50, word


@pytest.mark.slow
def test_what_is_followed_to_readers_reaches_every_column_that_differs_there(bench: Bench):
    wrong: list[str] = []
    followed = 0
    for pair in sample(240):
        before, after = bench.answer(pair.old), bench.answer(pair.new)
        if before is None or after is None:
            continue
        verdict = planner_says(pair, before, after)
        if verdict.word == SOME:
            followed += 1
            wrong += [
                f"{pair.old}\n  {pair.new}\n  {finding}"
                for finding in reader_violations(bench, pair, verdict)
            ]

    assert not wrong, "\n".join(wrong)
    assert followed >= 50


@pytest.mark.slow
def test_no_answer_of_any_query_follows_from_a_column_that_it_is_said_not_to_read(bench: Bench):
    judged, wrong = 0, list[str]()
    for sql in dict.fromkeys(sql for pair in pairs() for sql in (pair.old, pair.new)):
        before, columns = bench.answer(sql), unread(bench.spark, sql)
        if before is None:
            continue
        for table, names in columns.items():
            judged += bool(names)
            if names and bench.changed(sql, table, names) not in (before, None):
                wrong.append(f"{table} without {sorted(names)}\n  {sql}")
    print(f"{judged} queries that are said not to read a column")  # noqa: T201 - the long run's numbers

    assert not wrong, "\n".join(wrong)
    assert judged >= 500


def test_an_answer_that_follows_from_a_column_is_another_one_with_its_values(bench: Bench):
    sql = "SELECT k FROM e WHERE x > 1"

    assert unread(bench.spark, sql) == {"e": frozenset(bench.spark.table("e").columns) - {"k", "x"}}
    assert bench.changed(sql, "e", frozenset({"y", "n"})) == bench.answer(sql)
    assert bench.changed(sql, "e", frozenset({"x"})) != bench.answer(sql)


def test_every_clause_has_edits_and_every_edit_differs_in_its_text():
    every = pairs()
    assert {pair.group for pair in every} == set(templates())
    assert all(pair.old != pair.new for pair in every)
    assert len(every) >= 1000


LIES = [
    (
        Verdict(UNCHANGED, frozenset()),
        "SELECT k, x FROM e",
        "SELECT k, x + 0 AS x FROM e WHERE x > 1",
    ),
    (
        Verdict(METADATA, frozenset()),
        "SELECT STRUCT(x) AS v FROM e",
        "SELECT STRUCT(X) AS v FROM e",
    ),
    (
        Verdict(ADDITIVE, frozenset({"y"})),
        "SELECT DISTINCT k FROM e",
        "SELECT DISTINCT k, y FROM e",
    ),
    (Verdict(SOME, frozenset({"x"})), "SELECT k, x, y FROM e", "SELECT k, y, x AS y2 FROM e"),
    (Verdict(SOME, frozenset({"x"})), "SELECT k, x, n FROM e", "SELECT k, y AS x, x AS n FROM e"),
]


@pytest.mark.parametrize(("lie", "old", "new"), LIES)
def test_a_verdict_that_is_wrong_on_purpose_is_found(
    bench: Bench, lie: Verdict, old: str, new: str
):
    before, after = bench.answer(old), bench.answer(new)
    assert before is not None
    assert after is not None
    assert violation(lie, before, after) is not None
    assert violation(planner_says(Pair("", old, new), before, after), before, after) is None
