from __future__ import annotations

import statistics
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, strategies as st

from backfill_assets.engine.batch.judge import judge
from backfill_assets.errors import DeclarationError, RequestError
from backfill_assets.intervals import Daily, Interval
from backfill_assets.models.audit import (
    Audit,
    Severity,
    complete,
    fresh,
    known_rows,
    metric_within,
    not_null,
    percentile_within,
    reconciles,
    references,
    row_count_within,
    row_rule,
    sql_audit,
    total_within,
    trend_within,
    unique,
)
from backfill_assets.models.audit_result import AuditResult
from backfill_assets.models.content import CellProfile, Content
from backfill_assets.models.number import NumberFound
from backfill_assets_tests.builders import day

DAILY = Daily(start="2024-01-01")
RULE = row_rule("rule", "cost > 0")


def a_profile(number: int, rows: int = 100, **measured: Any) -> CellProfile:  # noqa: ANN401
    failing = {name: value for name, value in measured.items() if isinstance(value, int)}
    sums = {name: value for name, value in measured.items() if not isinstance(value, int)}
    return CellProfile(day(number), Content(rows, 1, {}), failing, sums)


def judged(audit: Audit, *profiles: CellProfile, before: dict[Interval, int] | None = None):
    previous = {cell: Content(rows, 1, {}) for cell, rows in (before or {}).items()}
    (result,) = judge([audit], profiles, previous, DAILY)
    return result


def test_a_rule_that_every_row_obeys_passes():
    assert judged(RULE, a_profile(1, rule=0), a_profile(2, rule=0)) == AuditResult(
        audit="rule",
        severity=Severity.BLOCKING,
        passed=True,
        found="0 of 200 rows fail cost > 0",
        allowed="0 rows",
    )


def test_one_failing_row_blocks_and_its_cell_is_named():
    result = judged(RULE, a_profile(1, rule=0), a_profile(2, 1_000, rule=1))

    assert result.blocks
    assert result.found == "1 of 1,100 rows fail cost > 0"
    assert result.failing_rows == 1
    assert result.cells == ("2024-01-02",)


@pytest.mark.parametrize(("bad", "passed"), [(28, True), (29, True), (30, False)])
def test_an_allowed_fraction_is_exact(bad: int, passed: bool):  # noqa: FBT001
    rule = row_rule("rule", "cost > 0", allowed=0.29)  # as a float, 0.29 of 100 is less than 29

    result = judged(rule, a_profile(1, 100, rule=bad))

    assert result.passed == passed
    assert result.allowed == "29.00% of a cell's rows"


def test_an_allowed_fraction_is_of_each_cell_whatever_batch_it_is_in():
    rule = row_rule("rule", "cost > 0", allowed=0.05)
    days = [a_profile(each, 100, rule=0) for each in range(1, 30)]
    wrong = a_profile(30, 100, rule=100)

    alone, among_others = judged(rule, wrong), judged(rule, *days, wrong)

    assert alone.blocks
    assert among_others.blocks
    assert among_others.cells == alone.cells == ("2024-01-30",)
    assert among_others.found == ("100 of 3,000 rows fail cost > 0, 100 of 100 in 2024-01-30")


def test_a_warning_fails_without_blocking():
    result = judged(not_null("id", warn=True), a_profile(1, not_null_id=3))

    assert not result.passed
    assert not result.blocks


def test_duplicates_and_missing_references_say_what_they_are_about():
    twice = judged(unique("ds", "id"), a_profile(1, unique_ds_id=2))
    lost = judged(references("id", "shop.orders", "order_id"), a_profile(1, references_id=2))

    assert twice.found == "2 of 100 rows fail unique(ds, id)"
    assert lost.found == "2 of 100 rows fail `id` in shop.orders.order_id"
    assert twice.blocks
    assert lost.blocks


def test_a_batch_without_rows_passes_its_row_rules():
    assert judged(RULE, a_profile(1, 0, rule=0)).passed


@pytest.mark.parametrize(
    ("before", "rows", "passed"),
    [(100, 102, True), (100, 98, True), (100, 103, False), (100, 97, False), (0, 0, True),
     (0, 1, False), (1, 0, False)],
)  # fmt: skip
def test_rows_of_a_rebuilt_cell_stay_within_the_fraction(before: int, rows: int, passed: bool):  # noqa: FBT001
    result = judged(row_count_within(0.02), a_profile(1, rows), before={day(1): before})

    assert result.passed == passed
    assert result.cells == (() if passed else ("2024-01-01",))


def test_the_cell_whose_rows_differ_most_is_named():
    before = {day(1): 100, day(2): 100, day(3): 100}

    result = judged(
        row_count_within(0.02), a_profile(1, 105), a_profile(2, 50), a_profile(4), before=before
    )

    assert result.found == "rows of 2024-01-02 differ by 50.00% from what is published"
    assert result.allowed == "2.00% per cell"
    assert result.cells == ("2024-01-01", "2024-01-02")


def test_a_cell_that_was_never_published_has_no_row_count_to_keep():
    result = judged(row_count_within(0.02), a_profile(1))

    assert result.passed
    assert result.found == "no cell was published before"


SUM = reconciles("cost", "web.events", "price")


def test_equal_sums_pass_whatever_their_size_and_scale():
    big = "12345678901234567890123456789012345.678"

    result = judged(SUM, a_profile(1, reconciles_cost=(big, big + "000")))

    assert result.passed
    assert result.found == (
        "sum(cost) = 12,345,678,901,234,567,890,123,456,789,012,345.678 against "
        "12,345,678,901,234,567,890,123,456,789,012,345.678 in web.events.price"
    )
    assert result.allowed == "no difference per cell"


def test_the_last_digit_of_a_big_sum_counts():
    big = "1234567890123456789012345678901234567"
    assert judged(SUM, a_profile(1, reconciles_cost=(big + "8", big + "9"))).blocks


def test_cells_that_make_up_for_each_other_fail_both_and_the_worst_is_shown():
    result = judged(
        SUM,
        a_profile(1, reconciles_cost=("10", "11")),
        a_profile(2, reconciles_cost=("13", "10")),
        a_profile(3, reconciles_cost=("8", "10")),
    )

    assert result.cells == ("2024-01-01", "2024-01-02", "2024-01-03")
    assert result.found == "sum(cost) = 13 against 10 in web.events.price in 2024-01-02"


@pytest.mark.parametrize(("own", "passed"), [("100.1", True), ("99.9", True), ("100.11", False)])
@pytest.mark.parametrize("sign", ["", "-"])
def test_a_tolerance_is_a_fraction_of_the_upstreams_sum(own: str, passed: bool, sign: str):  # noqa: FBT001
    audit = reconciles("cost", "web.events", "price", tolerance=0.001)
    sums = f"{sign}{own}", f"{sign}100"
    assert judged(audit, a_profile(1, reconciles_cost=sums)).passed == passed


@pytest.mark.parametrize("pair", [("NaN", "10"), ("10", "NaN"), ("NaN", "NaN")])
def test_a_sum_over_values_that_have_none_does_not_reconcile_and_its_cell_is_named(
    pair: tuple[str, str],
):
    result = judged(
        SUM, a_profile(1, reconciles_cost=("10", "10")), a_profile(2, reconciles_cost=pair)
    )

    assert result.blocks
    assert result.cells == ("2024-01-02",)
    assert result.found == (
        "cost, or web.events.price, holds NaN, infinite or huge values in 2024-01-02: they can't be summed"
    )


@pytest.mark.parametrize("audit", [RULE, SUM, unique("id")])
def test_what_was_not_measured_can_not_pass(audit: Audit):
    with pytest.raises(RequestError, match="no measurement for cell 2024-01-01"):
        judged(audit, a_profile(1, other=0))


def test_at_most_twenty_cells_are_named():
    profiles = [a_profile(number, rule=1) for number in range(1, 32)]
    assert len(judged(RULE, *profiles).cells) == 20


@given(st.permutations([a_profile(n, 100 + n % 2, rule=n % 3) for n in range(1, 8)]))
def test_the_order_of_profiles_does_not_matter(profiles: list[CellProfile]):
    before = {day(number): 100 for number in range(1, 8)}
    for audit in (RULE, row_count_within(0.001)):
        in_order = judged(audit, *sorted(profiles, key=lambda profile: profile.cell), before=before)
        assert judged(audit, *profiles, before=before) == in_order


def numbered(number: int, audit: str, **found: Any) -> CellProfile:  # noqa: ANN401
    """A cell of which an audit's number was measured."""
    return CellProfile(day(number), Content(1, 1, {}), {}, {}, {audit: NumberFound(**found)})


NUMBERS = st.integers(-1000, 1000)


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=6),
    st.integers(0, 100),
    st.booleans(),
)
def test_a_number_near_the_published_one_is_that_of_the_oracle(
    pairs: list[tuple[int, int]],
    percent: int,
    together: bool,  # noqa: FBT001
):
    audit = metric_within("cost", percent / 100, together=together)
    profiles = [
        numbered(at, audit.name, own=str(own), published=str(theirs))
        for at, (own, theirs) in enumerate(pairs, 1)
    ]

    result = judged(audit, *profiles, before={profile.cell: 1 for profile in profiles})

    compared = (
        [(sum(own for own, _ in pairs), sum(theirs for _, theirs in pairs))] if together else pairs
    )
    assert result.passed == all(
        100 * abs(own - theirs) <= percent * abs(theirs) for own, theirs in compared
    )


@given(st.lists(NUMBERS, min_size=0, max_size=9), NUMBERS, st.integers(1, 9))
def test_the_band_over_neighbours_is_that_of_the_oracle(around: list[int], own: int, band: int):
    audit = trend_within("cost", band=band)

    result = judged(audit, numbered(1, audit.name, own=str(own), around=tuple(map(str, around))))

    if len(around) < 4:
        assert result.passed
        return
    middle = statistics.median(map(Fraction, around))
    spread = statistics.median(abs(value - middle) for value in around) * Fraction(14826, 10000)
    reach = band * max(spread, abs(middle) / 100)
    assert result.passed == (not reach or abs(own - middle) <= reach)


@pytest.mark.parametrize(
    ("own", "published", "passed"),
    [("15", "10", True), ("15.01", "10", False), ("110", "100", True), ("110.01", "100", False)],
)
def test_of_a_fraction_and_an_amount_the_larger_one_is_allowed(
    own: str,
    published: str,
    passed: bool,  # noqa: FBT001
):
    audit = metric_within("cost", 0.1, absolute=5)

    result = judged(
        audit, numbered(1, audit.name, own=own, published=published), before={day(1): 1}
    )

    assert result.passed == passed


def test_a_cell_that_was_published_without_rows_had_a_sum_of_nothing():
    audit = metric_within("cost", 0.5)

    result = judged(audit, numbered(1, audit.name, own="3"), before={day(1): 0})

    assert result.blocks
    assert result.found == "sum(cost) in 2024-01-01 = 3 against 0 published"


@pytest.mark.parametrize(("own", "published"), [("NaN", "1"), ("1", "NaN"), ("NaN", "NaN")])
def test_a_sum_that_is_no_number_fails_against_what_is_published(own: str, published: str):
    audit = metric_within("cost", 0.5)

    result = judged(
        audit,
        numbered(1, audit.name, own="1", published="1"),
        numbered(2, audit.name, own=own, published=published),
        before={day(1): 1, day(2): 1},
    )

    assert result.blocks
    assert result.found == "sum(cost) of 2024-01-02 holds NaN, infinite or huge values"
    assert result.cells == ("2024-01-02",)


@pytest.mark.parametrize(
    ("own", "passed"), [("0", True), ("10", True), ("-0.1", False), ("10.1", False)]
)
def test_a_range_holds_both_of_its_bounds(own: str, passed: bool):  # noqa: FBT001
    audit = percentile_within("cost", 0.5, 0, 10)

    assert judged(audit, numbered(1, audit.name, own=own)).passed == passed


@pytest.mark.parametrize(("lacking", "passed"), [(2, True), (3, False)])
def test_as_many_entities_may_lack_as_are_allowed(lacking: int, passed: bool):  # noqa: FBT001
    audit = complete("id", seen=1, allowed=2)

    result = judged(audit, a_profile(1, **{audit.name: lacking}))

    assert result.passed == passed
    assert result.allowed == "2 per cell"


@pytest.mark.parametrize("text", ["NaN", "Infinity"])
def test_a_number_that_is_none_lies_in_no_range(text: str):
    audit = percentile_within("cost", 0.5, 0, 10)

    result = judged(audit, numbered(1, audit.name, own=text))

    assert result.blocks
    assert result.found.startswith(
        f"p50 of cost = {text} in 2024-01-01: NaN, infinite or huge values"
    )


def test_huge_sums_are_compared_and_written():
    audit = metric_within("cost", 0.01)
    published = 10**37

    result = judged(
        audit,
        numbered(1, audit.name, own=str(2 * published), published=str(published)),
        before={day(1): 1},
    )

    assert f"= {2 * published:,} against {published:,} published (+100.00%)" in result.found


def test_a_number_of_any_size_is_told():
    audit = percentile_within("cost", 0.5, 0, 10)

    result = judged(audit, numbered(1, audit.name, own="1.5E200"))

    assert result.found == "p50 of cost = 1.50000e+200 in 2024-01-01, outside [0, 10]"


def test_of_sums_that_differ_one_that_is_not_allowed_is_told():
    audit = metric_within("cost", 0.01)

    result = judged(
        audit,
        numbered(1, audit.name, own="1000100", published="1000000"),
        numbered(2, audit.name, own="20", published="10"),
        before={day(1): 1, day(2): 1},
    )

    assert result.cells == ("2024-01-02",)
    assert "in 2024-01-02 = 20 against 10 published" in result.found


def newest(at: Interval, seconds_before_its_end: float | None) -> CellProfile:
    """A cell with its newest value so long before its end; None where no row has a value."""
    end = int(at.end.timestamp()) * 10**6
    own = (
        None if seconds_before_its_end is None else str(end - round(seconds_before_its_end * 10**6))
    )
    return CellProfile(at, Content(1, 1, {}), {}, {}, {"fresh_at": NumberFound(own)})


@given(
    st.lists(st.none() | st.integers(-(10**6), 10**6), min_size=1, max_size=6),
    st.integers(0, 10**6),
)
def test_a_cell_is_fresh_where_its_newest_value_lies_near_its_end(
    gaps: list[int | None], within: int
):
    profiles = [newest(day(number), gap) for number, gap in enumerate(gaps, 1)]

    result = judged(fresh("at", timedelta(seconds=within)), *profiles)

    late = [number for number, gap in enumerate(gaps, 1) if gap is None or gap > within]
    assert result.cells == tuple(f"2024-01-{number:02d}" for number in late)
    assert result.passed == (not late)


@pytest.mark.parametrize(("seconds", "passed"), [(-5, True), (3600, True), (3600.000001, False)])
def test_the_limit_of_freshness_is_exact(seconds: float, passed: bool):  # noqa: FBT001
    assert judged(fresh("at", "1h"), newest(day(1), seconds)).passed == passed


def test_a_day_that_stops_at_noon_is_named_with_its_gap():
    result = judged(fresh("at", "6h"), newest(day(1), 60), newest(day(2), 12 * 3600))

    assert result.blocks
    assert result.found == "newest value of at 12h before the end of 2024-01-02"
    assert result.allowed == "at most 6h before the end of the cell"
    assert result.cells == ("2024-01-02",)


def test_a_cell_without_a_newest_value_is_not_fresh():
    some = judged(fresh("at", "6h"), newest(day(1), 60), newest(day(2), None))
    none = judged(fresh("at", "6h"), newest(day(2), None))

    assert some.found == (
        "newest value of at 1m before the end of 2024-01-01, and none in 1 of 2 cells, such as 2024-01-02"
    )
    assert none.found == "no newest value of at in 1 of 1 cells"
    assert some.cells == none.cells == ("2024-01-02",)


def test_the_end_of_a_local_day_counts_whatever_the_clocks_do():
    berlin = Daily(start="2024-03-30", tz="Europe/Berlin")
    (short,) = berlin.cells(Interval(day(91).start, day(91).start + timedelta(hours=1)))

    (result,) = judge([fresh("at", "6h")], [newest(short, 6 * 3600)], {}, berlin)

    assert berlin.key(short) == "2024-03-31"
    assert short.duration == timedelta(hours=23)
    assert result.passed


@pytest.mark.parametrize(
    "declare",
    [
        lambda: metric_within("cost", float("nan")),
        lambda: metric_within("cost", -0.1),
        lambda: metric_within("cost", absolute=float("inf")),
        lambda: total_within("cost", 5, 1),
        lambda: total_within("cost", float("nan"), None),
        lambda: trend_within("cost", band=float("nan")),
        lambda: trend_within("cost", neighbours=1),
        lambda: complete("id", seen=0),
        lambda: complete("id", allowed=-1),
        lambda: complete("id", "cost", entities=["a"]),
        lambda: known_rows([]),
        lambda: known_rows([({"id": 1}, {"cost": 1})], time_column="ds"),
        lambda: sql_audit("none", "SELECT 1"),
        lambda: fresh("at", "noon"),
        lambda: fresh("at", "0h"),
        lambda: fresh("at", timedelta(seconds=-1)),
        lambda: fresh("at", timedelta(milliseconds=1)),
    ],
)
def test_an_audit_that_could_not_be_judged_is_refused_where_it_is_declared(declare: Any):  # noqa: ANN401
    with pytest.raises(DeclarationError):
        declare()
