"""Our answer to a case: its `call.fn` looked up here, and the product's own functions called."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals import Cadence, Interval, IntervalSet
from backfill_assets.intervals.cron import Cron
from backfill_assets.intervals.instants import end_at, start_at
from backfill_assets.intervals.interval import epoch_of, instant_of
from backfill_assets.intervals.parse_range import (
    OutsideLifeError,
    parse_instant,
    parse_interval,
    parse_range,
)
from backfill_assets.intervals.required import inherited, missing, required
from backfill_assets.intervals.restated import restated
from backfill_assets.planning.batching import batches, unblocked, waits_for
from backfill_assets_tests.vectors import translate as tr

Json = Any


class NotSupportedYet(Exception):  # noqa: N818 - a fact about this stage, not an error
    """The case asks for something that a later stage builds."""


def answer(case: dict[str, Json]) -> Json:
    """What the product says, in the case's words; a refusal is `{"error": its class}`.

    Raises:
        NotSupportedYet: The product can't be asked this yet.
    """
    fn = FUNCTIONS.get(case["call"]["fn"])
    models = [case.get("model") or {}, *(case.get("models") or {}).values()]
    if fn is None or any(model.get("lookback") for model in models):
        raise NotSupportedYet
    try:
        return fn(case)
    except BackfillAssetsError as refusal:
        return {"error": type(refusal).__name__}


def _merge(case: dict[str, Json]) -> Json:
    return tr.texts(tr.instants(case["call"]["intervals"]))


def _add(case: dict[str, Json]) -> Json:
    cadence, ready = tr.cadence_of(case["model"]), tr.state_of(case)
    for start, end in case["call"]["add"]:
        ready |= cadence.snap_in(parse_interval(start, end, cadence))
    return tr.texts(ready)


def _inherit(case: dict[str, Json]) -> Json:
    cadence, call = tr.cadence_of(case["model"]), case["call"]
    since = call.get("effective_from") if call.get("new_fingerprint") else None
    before = None if since is None else parse_instant(since, cadence)
    return tr.texts(inherited(cadence, tr.state_of(case), before=before))


def _inclusive_exclusive(case: dict[str, Json]) -> Json:
    cadence, call = tr.cadence_of(case["model"]), case["call"]
    (rounded,) = cadence.snap_out(parse_interval(call["start"], call["end"], cadence))
    return tr.texts([rounded])[0]


def _remove(case: dict[str, Json]) -> Json:
    call = case["call"]
    return tr.texts(tr.instants(call["intervals"]) - tr.instants([call["remove"]]))


def _removal_interval(case: dict[str, Json]) -> Json:
    model, call, ready = case["model"], case["call"], tr.state_of(case)
    cadence = tr.cadence_of(model)
    asked = parse_interval(call["start"], call["end"], cadence)
    wrong = restated(cadence, asked, reach=tr.reach_of(model), ready=ready, now=tr.now_of(case))
    return {"removal": tr.texts(wrong)[0], "state_after": tr.texts(ready - wrong)}


def _missing_intervals(case: dict[str, Json]) -> Json:
    cadence = tr.cadence_of(case["model"])
    return tr.texts(cadence.cells(_missing(case, cadence, tr.state_of(case), case["call"])))


def _plan_missing_intervals(case: dict[str, Json]) -> Json:
    found: dict[str, Json] = {}
    for name, model in case["models"].items():
        cadence = tr.cadence_of(model, tr.start_of(name, case["models"]))
        call = dict(case["call"])
        for bound in ("start", "end"):
            call[bound] = call.get(f"{bound}_override", {}).get(name, call.get(bound))
        cells = tr.texts(cadence.cells(_missing(case, cadence, tr.state_of(model), call)))
        if cells:
            found[name] = cells
    return found


def _missing(
    case: dict[str, Json], cadence: Cadence, ready: IntervalSet, call: dict[str, Json]
) -> IntervalSet:
    """A range outside the model's life is an error of ours, where the cases say: nothing."""
    end_bounded = call.get("end_bounded", False)
    try:
        start, end = _bounds(call, cadence, end_bounded=end_bounded)
    except OutsideLifeError:
        return IntervalSet.empty()
    cells = required(
        cadence,
        start=start,
        end=end,
        now=tr.now_of(case),
        ignore_cron=call.get("ignore_cron", False),
        end_bounded=end_bounded,
    )
    return missing(cadence, cells, ready)


def _bounds(
    call: dict[str, Json], cadence: Cadence, *, end_bounded: bool
) -> tuple[datetime | None, datetime | None]:
    start, end = call.get("start"), call.get("end")
    if start is None or end is None:
        return (
            None if start is None else start_at(start, cadence.tz),
            None if end is None else end_at(end, cadence.tz),
        )
    found = parse_range(start, end, cadence)
    meant = found.asked if end_bounded else found.interval
    return meant.start, meant.end


def _cron(case: dict[str, Json]) -> Json:
    cadence, at = tr.cadence_of(case["model"]), start_at(case["call"]["at"], "UTC")
    cron = Cron(cadence.cron or "@daily", cadence.cron_tz or cadence.tz)
    return {
        "interval_unit": tr.UNIT_NAMES[cadence.unit],
        "cron_floor": tr.text(cron.floor(at)),
        "cron_next": tr.text(cron.next(at)),
        "cron_prev": tr.text(cron.previous(at)),
        "unit_floor": tr.text(cadence.floor(at)),
    }


def _batches(case: dict[str, Json]) -> Json:
    model, call = case["model"], case["call"]
    cadence = tr.cadence_of(model)
    size = None if model.get("kind") in tr.ONE_BATCH else model.get("batch_size")
    cut = batches(cadence, _missing(case, cadence, tr.state_of(case), call), size)
    waits = waits_for(cut, model.get("batch_concurrency"), in_order=tr.in_order(model))
    return {"batches": tr.texts(cut), "waits_for": [list(each) for each in waits]}


def _interval_diff(case: dict[str, Json]) -> Json:
    call = case["call"]
    units = [Interval(instant_of(start), instant_of(end)) for start, end in call["a"]]
    blocked = IntervalSet.of_pairs((start, end) for start, end in call["b"])
    free = unblocked(units, blocked, in_order=call.get("uninterrupted", False))
    return [[epoch_of(each.start), epoch_of(each.end)] for each in free]


FUNCTIONS = {
    "merge": _merge,
    "add_intervals": _add,
    "inherit_intervals": _inherit,
    "inclusive_exclusive": _inclusive_exclusive,
    "remove": _remove,
    "removal_interval": _removal_interval,
    "missing_intervals": _missing_intervals,
    "plan_missing_intervals": _plan_missing_intervals,
    "cron": _cron,
    "batches": _batches,
    "interval_diff": _interval_diff,
}
