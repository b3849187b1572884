"""What people ask of plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backfill_assets.planning.plan.request import Category, Restatement, Strategy
from backfill_assets_tests.histories.slices import any_slice

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets_tests.histories.history import History

Asked = dict[str, Any]


def any_request(history: History) -> Asked:
    """Ask for something at random; mostly for nothing in particular, or that something be built again."""
    kinds, weights = zip(*_KINDS.items(), strict=True)
    return history.random.choices(kinds, weights)[0](history)


def _plain(history: History) -> Asked:
    return {}


def _restated(history: History) -> Asked:
    random = history.random
    name = random.choice([*history.graph.sources, *history.project])
    asked: Asked = {"restate": (Restatement(name),)}
    if random.random() < 0.8:
        asked["restate"] = (Restatement(name, *_stretch(history)),)
    if random.random() < 0.2:
        asked["restate_all_snapshots"] = True
    if random.random() < 0.15:
        asked["end_bounded"] = True
    if random.random() < 0.15:
        asked["ignore_cron"] = True
    return asked


def _sliced(history: History) -> Asked:
    """Restate a model, of which only the rows may change that a condition selects."""
    name = _model(history)
    chosen = any_slice(history.random, name)
    history.slices[chosen.sql] = chosen
    asked: Asked = {"restate": (Restatement(name, *_stretch(history)),), "where": chosen.sql}
    if history.random.random() < 0.3:
        asked["restate"] = (Restatement(name),)
    if history.random.random() < 0.2:
        asked["restate"] = (*asked["restate"], Restatement(_model(history)))
    return asked


def _forward_only(history: History) -> Asked:
    if history.random.random() < 0.5:
        return {"forward_only": True}
    return {"forward_only": True, "effective_from": _day(history)}


def _categorized(history: History) -> Asked:
    category = history.random.choice(list(Category))
    return {"categories": ((_model(history), category),)}


def _selected(history: History) -> Asked:
    before, after = history.random.choice(["", "+"]), history.random.choice(["", "+"])
    return {"select": (f"{before}{_model(history)}{after}",)}


def _within(history: History) -> Asked:
    start, end = _stretch(history)
    asked: Asked = {"start": start}
    if history.random.random() < 0.5:
        asked["end"] = end
    if history.random.random() < 0.4:
        asked["end_bounded"] = True
    return asked


def _whatever_the_cron_says(history: History) -> Asked:
    return {"ignore_cron": True}


def _with_canaries(history: History) -> Asked:
    return {"canary": True}


def _cut_off(history: History) -> Asked:
    return {"cutoff": _day(history), "reason": "what is older keeps its definition"}


def _cutoff_lifted(history: History) -> Asked:
    return {"lift_cutoffs": (_model(history),)}


def _dual_run(history: History) -> Asked:
    days = history.random.choice([0, 1, 2])
    return {"strategies": ((_model(history), Strategy.DUAL_RUN),), "dual_run_days": days}


def _recorded_empty(history: History) -> Asked:
    """Ask for gaps to be recorded as empty, of a model with or without what it reads."""
    asked: Asked = {"empty": True, "select": (_model(history),)}
    if history.random.random() < 0.5:
        asked["skip_upstream"] = True
    if history.random.random() < 0.5:
        asked["start"], asked["end"] = _stretch(history)
    return asked


_KINDS: dict[Callable[[History], Asked], int] = {
    _plain: 5,
    _restated: 5,
    _sliced: 3,
    _forward_only: 3,
    _categorized: 2,
    _selected: 1,
    _within: 1,
    _whatever_the_cron_says: 1,
    _with_canaries: 1,
    _cut_off: 3,
    _cutoff_lifted: 2,
    _dual_run: 1,
    _recorded_empty: 1,
}


def _model(history: History) -> str:
    return history.random.choice(list(history.project))


def _day(history: History) -> str:
    return str(history.random.choice(history.past_days))


def _stretch(history: History) -> tuple[str, str]:
    first, last = sorted([_day(history), _day(history)])
    return first, last
