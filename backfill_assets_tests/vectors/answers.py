"""Our answer to a case: its `call.fn` looked up here, and the product's own functions called."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals import Cadence, Interval, IntervalSet
from backfill_assets.intervals.cron import Cron
from backfill_assets.intervals.instants import When, end_at, start_at
from backfill_assets.intervals.interval import epoch_of, instant_of
from backfill_assets.intervals.parse_range import (
    OutsideLifeError,
    ReversedRangeError,
    parse_interval,
)
from backfill_assets.intervals.required import missing
from backfill_assets.intervals.restated import restated
from backfill_assets.planning.plan.batching import batches, unblocked
from backfill_assets.planning.plan.plan_batches import PlannedBatches, Rows
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.planning.plan.windows import window_of
from backfill_assets.planning.rule.reopening import late_cells
from backfill_assets.snapshots.environment import PROD
from backfill_assets_tests.vectors import translate as tr
from backfill_assets_tests.vectors.categories import StrangeWord, categorize, plan_categories
from backfill_assets_tests.vectors.restating import auto_restate, restate

Json = Any


class NotSupportedYet(Exception):  # noqa: N818 - a fact about this stage, not an error
    """The case asks for something that a later stage builds; the message names it."""


def answer(case: dict[str, Json]) -> Json:
    """What the product says, in the case's words; a refusal is `{"error": its text}`.

    Raises:
        NotSupportedYet: The product can't be asked this yet.
    """
    name = case["call"]["fn"]
    if name not in FUNCTIONS:
        raise NotSupportedYet(name)
    fn, words = FUNCTIONS[name]
    models = [case.get("model") or {}, *(case.get("models") or {}).values()]
    strange = sorted(case["call"].keys() - {"fn", *words.split()})
    strange += sorted({word for model in models for word in tr.not_understood(model)})
    strange += sorted((case.get("state") or {}).keys() - {"intervals"})
    if strange:
        raise NotSupportedYet(f"{name} with {', '.join(strange)}")
    try:
        return fn(case)
    except StrangeWord as word:
        raise NotSupportedYet(f"{name} with {word}") from word
    except BackfillAssetsError as refusal:
        return {"error": str(refusal)}


def _merge(case: dict[str, Json]) -> Json:
    return tr.texts(tr.instants(case["call"]["intervals"]))


def _add(case: dict[str, Json]) -> Json:
    cadence, ready = tr.cadence_of(case["model"]), tr.state_of(case)
    for start, end in case["call"]["add"]:
        if not _is_empty(start, end, cadence):
            ready |= cadence.snap_in(parse_interval(start, end, cadence))
    return tr.texts(ready)


def _inherit(case: dict[str, Json]) -> Json:
    cadence, call = tr.cadence_of(case["model"]), case["call"]
    since = call.get("effective_from") if call.get("new_fingerprint") else None
    ready = tr.state_of(case)
    if since is not None and ready:
        ready = ready.within(ready.boundaries[0], epoch_of(start_at(since, cadence.tz)))
    return tr.texts(cadence.snap_in(ready))


def _inclusive_exclusive(case: dict[str, Json]) -> Json:
    cadence, call = tr.cadence_of(case["model"]), case["call"]
    asked = parse_interval(call["start"], call["end"], cadence)
    rounded = cadence.snap_out(asked) if call.get("expand", True) else cadence.snap_in(asked)
    return _one(rounded)


def _remove(case: dict[str, Json]) -> Json:
    call = case["call"]
    return tr.texts(tr.instants(call["intervals"]) - tr.instants([call["remove"]]))


def _removal_interval(case: dict[str, Json]) -> Json:
    model, call, ready = case["model"], case["call"], tr.state_of(case)
    cadence = tr.cadence_of(model)
    asked = parse_interval(call["start"], call["end"], cadence)
    wrong = restated(cadence, asked, in_order=tr.reaches_onward(model), now=tr.now_of(case))
    return {"removal": _one(wrong), "state_after": tr.texts(ready - wrong)}


def _missing_intervals(case: dict[str, Json]) -> Json:
    model, call = case["model"], case["call"]
    return _cells(model, _missing(case, model, tr.cadence_of(model), call))


def _plan_missing_intervals(case: dict[str, Json]) -> Json:
    found: dict[str, Json] = {}
    for name, model in case["models"].items():
        cadence = tr.cadence_of(model, tr.start_of(name, case["models"]))
        call = dict(case["call"])
        for bound in ("start", "end"):
            call[bound] = call.get(f"{bound}_override", {}).get(name, call.get(bound))
        try:
            cells = _cells(model, _missing(case, model, cadence, call))
        except ReversedRangeError:  # of a plan only some models may have such a range
            continue
        if cells:
            found[name] = cells
    return found


def _missing(
    case: dict[str, Json], model: dict[str, Json], cadence: Cadence, call: dict[str, Json]
) -> IntervalSet:
    """A range outside the model's life is an error of ours, where the cases say: nothing."""
    start, end = call.get("start"), call.get("end")
    if start and not cadence.start:  # the cases know models whose life the range begins
        cadence = replace(cadence, start=start_at(start, cadence.tz))
    if start and end and _is_empty(start, end, cadence):
        return IntervalSet.empty()
    request = PlanRequest(
        environment=PROD,
        start=start,
        end=end,
        end_bounded=call.get("end_bounded", False),
        ignore_cron=call.get("ignore_cron", False),
    )
    try:
        cells = window_of(request, cadence, tr.now_of(case), IntervalSet.empty()).cells
    except OutsideLifeError:
        return IntervalSet.empty()
    gaps = missing(cadence, cells, tr.state_of(model) | tr.state_of(case))
    return _with_late(case, model, gaps, cells)


def _with_late(
    case: dict[str, Json], model: dict[str, Json], gaps: IntervalSet, cells: IntervalSet
) -> IntervalSet:
    """The cells before each new one that late rows may belong to, inside the requested range.

    A model that has ended has no new cells, but what would have been its last one still counts.
    """
    cadence, window = tr.cadence_of(model), model.get("lookback") or 0
    if cadence.end is not None and window:
        end = case["call"].get("end")
        asked = tr.now_of(case) if end is None else end_at(end, cadence.tz)
        until = cadence.floor(min(asked, tr.now_of(case)))
        if until > cadence.end:
            gaps |= IntervalSet.of([Interval(cadence.shift(until, -1), until)])
    return late_cells(cadence, gaps, window) & cells


def _is_empty(start: When, end: When, cadence: Cadence) -> bool:
    """A range of no time is refused from a person, but the cases reckon with it."""
    return start_at(start, cadence.tz) == end_at(end, cadence.tz)


def _cells(model: dict[str, Json], span: IntervalSet) -> Json:
    return tr.texts(batches(tr.cadence_of(model), span, 1))


def _one(span: IntervalSet) -> Json:
    """The interval that a set is; the cases refuse where we say that it is none."""
    return tr.texts(span)[0] if span else {"error": "nothing"}


def _cron(case: dict[str, Json]) -> Json:
    cadence, at = tr.cadence_of(case["model"]), start_at(case["call"]["at"], "UTC")
    cron = Cron(cadence.cron or "@daily", cadence.cron_tz or cadence.tz)
    return {
        "interval_unit": tr.UNIT_NAMES[cadence.unit],
        "cron_floor": tr.text(cron.floor(at)),
        "cron_next": tr.text(cron.next(at)),
        "cron_prev": tr.text(cron.floor(at - timedelta(microseconds=1))),
        "unit_floor": tr.text(cadence.floor(at)),
    }


def _batches(case: dict[str, Json]) -> Json:
    model, call = case["model"], case["call"]
    cadence = tr.cadence_of(model)
    todo, size = _missing(case, model, cadence, call), model.get("batch_size")
    whole = todo.hull() if model.get("kind") in tr.ONE_BATCH else None
    cut = batches(cadence, todo, size) if whole is None else (whole,)
    rows = Rows(
        [epoch_of(batch.start) for batch in cut],
        [epoch_of(batch.end) for batch in cut],
        (True,) * len(cut),
    )
    behind = 1 if tr.in_order(model) else model.get("batch_concurrency")
    planned = PlannedBatches("model", cadence, rows, behind=behind)
    waits = [[number for _, number in batch.waits_for] for batch in planned]
    return {"batches": tr.texts(cut), "waits_for": waits}


def _interval_diff(case: dict[str, Json]) -> Json:
    call = case["call"]
    units = [Interval(instant_of(start), instant_of(end)) for start, end in call["a"]]
    blocked = IntervalSet.of_pairs((start, end) for start, end in call["b"])
    free = unblocked(units, blocked, in_order=call.get("uninterrupted", False))
    return [[epoch_of(each.start), epoch_of(each.end)] for each in free]


_RANGE = "start end execution_time"
_MISSING = f"{_RANGE} ignore_cron end_bounded"

FUNCTIONS = {
    "merge": (_merge, "intervals"),
    "add_intervals": (_add, "add"),
    "inherit_intervals": (_inherit, "effective_from new_fingerprint"),
    "inclusive_exclusive": (_inclusive_exclusive, "start end expand strict"),
    "remove": (_remove, "intervals remove"),
    "removal_interval": (_removal_interval, f"{_RANGE} is_preview strict"),
    "missing_intervals": (_missing_intervals, _MISSING),
    "plan_missing_intervals": (
        _plan_missing_intervals,
        f"{_MISSING} start_override end_override",
    ),
    "cron": (_cron, "at"),
    "batches": (_batches, _MISSING),
    "interval_diff": (_interval_diff, "a b uninterrupted"),
    "restate": (restate, f"{_RANGE} restate merged is_dev environment ignore_cron"),
    "auto_restate": (auto_restate, "execution_time"),
    "categorize": (categorize, "mode old_sql new_sql old_meta new_meta"),
    "plan_categories": (plan_categories, "mode forward_only environment start end"),
}
"""What answers a call, and the words of the call that it understands."""
