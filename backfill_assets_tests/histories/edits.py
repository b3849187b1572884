"""What happens outside of plans: time passes, sales come in late, and authors edit declarations."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from backfill_assets.intervals import Unit
from backfill_assets_tests.histories.declared import CRONS, ENDS, STARTS, Declared
from backfill_assets_tests.histories.deliveries import ARRIVALS, STOCK
from backfill_assets_tests.histories.functions import PACED, PACES
from backfill_assets_tests.histories.hours import (
    BUSY_DAYS,
    HOURS,
    LOCAL_DAYS,
    LOCAL_WEEKS,
    day_in_berlin,
    hour_of,
    some_hours,
)
from backfill_assets_tests.histories.ledger import LEDGER, RANGES
from backfill_assets_tests.histories.models import (
    BALANCE,
    DAYS,
    PERIODS,
    RENAMED,
    REPORT,
    RUNNING,
    TRAILING,
)
from backfill_assets_tests.histories.oracle import midnight
from backfill_assets_tests.histories.receipts import DELETES, RECEIPTS, TAKINGS
from backfill_assets_tests.histories.supplying import deliver_in_time
from backfill_assets_tests.histories.weights import SMOOTHED, WEIGHED

if TYPE_CHECKING:
    from datetime import date

    from backfill_assets_tests.histories.history import History

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
_HOURS_ALONE = 0.3
_RECENT_DAYS = 4
_NUMBERS = (0, 1, 2, 3, 5)
_EDITED = {
    DAYS: ("factor", "counts", "counts", "start", "end", "note", "expected", "late_window"),
    TRAILING: ("lookback", "plus", "counts", "note", "start", "end", "late_window", "cron"),
    PERIODS: ("factor", "unit", "unit", "note", "cron"),
    BALANCE: ("factor", "note", "start", "end", "late_window", "cron"),
    RENAMED: ("factor", "note", "start", "end", "late_window", "cron"),
    RUNNING: ("factor", "note", "start", "end", "late_window", "cron"),
    REPORT: ("plus",),
    HOURS: ("factor", "note", "late_window"),
    LOCAL_DAYS: ("factor", "lookback", "note", "late_window"),
    LOCAL_WEEKS: ("factor", "note", "late_window"),
    BUSY_DAYS: ("factor", "note", "late_window"),
    RECEIPTS: ("factor", "deletes", "deletes", "note", "start", "end", "late_window", "cron"),
    ARRIVALS: ("factor", "lookback", "note", "late_window", "cron"),
    STOCK: ("factor", "note", "late_window", "cron"),
    WEIGHED: ("factor", "note", "start", "end", "late_window", "cron"),
    SMOOTHED: ("lookback", "note", "late_window", "cron"),
    TAKINGS: ("plus", "lookback", "note", "late_window"),
    LEDGER: ("factor", "ranges", "ranges", "note", "late_window"),
    PACED: ("factor", "lookback", "note", "start", "end", "late_window", "cron"),
    PACES: ("plus", "lookback", "note", "late_window"),
}


def days_pass(history: History) -> None:
    """Let one day end, or several, most of them with sales; or, where hours count, some hours without any."""
    if history.has_hours and history.random.random() < _HOURS_ALONE:
        history.world.clock.now += history.random.randint(1, 4) * HOUR
        history.say(f"it is {history.world.clock.now}")
        return
    for _ in range(history.random.choice([1, 1, 1, 2, 4])):
        _a_day_passes(history)
    history.say(f"it is {history.world.clock.now}")


def _a_day_passes(history: History) -> None:
    today, random = history.today, history.random
    history.world.clock.now = midnight(today + DAY) + random.randint(1, 200) * MINUTE
    if random.random() < 0.9:
        history.sales.sell_some(today, random.randint(1, 2), random)
    if history.has_hours:
        visit(history, day_in_berlin(history.world.clock.now) - DAY)
        history.visits.sell_some(hour_of(history.world.clock.now), 1, random)
    if history.has_deliveries:
        deliver_in_time(history, today)


def visit(history: History, day: date) -> None:
    """Let there be visits in some hours of a day in Berlin."""
    for hour in some_hours(day, history.random):
        history.visits.sell_some(hour, 1, history.random)


def late_sales(history: History) -> None:
    """Append, correct or delete a sale of a day that is over, or say that it was on another day."""
    random = history.random
    sales = history.visits if history.has_hours and random.random() < 0.4 else history.sales
    day = random.choice(sales.days[-_RECENT_DAYS:] if random.random() < 0.4 else sales.days)
    sale = random.choice(sales.of(day))
    ways = ["append", "append", "correct", "delete"]
    if history.has_receipts and sales is history.sales:
        ways += ["delete", "move", "move"]
    match random.choice(ways):
        case "append":
            sales.sell_some(day, 1, random)
            history.say(f"a late sale on {day}")
        case "correct":
            sales.correct(sale)
            history.say(f"sale {sale} on {day} is corrected")
        case "move":
            other = random.choice(sales.days)
            sales.move(sale, other)
            history.say(f"sale {sale} was not on {day}, but on {other}")
        case _:
            sales.delete(sale)
            history.say(f"sale {sale} on {day} is deleted")


def bad_sale(history: History) -> None:
    """Append a sale that an audit stops, or delete those that are there."""
    if history.sales.refused:
        delete_bad_sales(history)
        return
    day = history.random.choice(history.sales.days[-_RECENT_DAYS:])
    history.sales.sell(day, [-100])
    history.say(f"a bad sale on {day}")


def delete_bad_sales(history: History) -> None:
    """Take away what no audit lets pass."""
    for sale in history.sales.refused:
        history.sales.delete(sale)
    history.say("no bad sales")


def edit(history: History) -> None:
    """Edit a declaration."""
    name = history.random.choice(list(history.project))
    attribute = history.random.choice(_EDITED[name])
    old = history.project[name]
    new = replace(old, **{attribute: _edited(history, old, attribute)})
    declare(history, name, new)
    history.say(f"{name}: {attribute} is {getattr(new, attribute)}")


def declare(history: History, name: str, declared: Declared) -> None:
    """Let a model be declared otherwise; nobody reads a column that is not declared any more."""
    history.project[name] = declared
    trailing = history.project[TRAILING]
    if trailing.counts and not history.project[DAYS].counts:
        history.project[TRAILING] = replace(trailing, counts=False)


def _edited(history: History, old: Declared, attribute: str) -> Any:  # noqa: ANN401
    before = getattr(old, attribute)
    if attribute == "note":
        return before + ", still"
    if attribute == "counts":
        return not before
    values = {
        "start": STARTS,
        "end": ENDS,
        "cron": CRONS,
        "late_window": (0, 1, 3, 6),
        "lookback": (0, 1, 2, 4),
        "expected": (10, 1000),
        "deletes": DELETES,
        "ranges": RANGES,
        "unit": (Unit.WEEK, Unit.MONTH, Unit.DAY),
    }.get(attribute, _NUMBERS)
    return history.random.choice([one for one in values if one != before])


def edit_all_back(history: History) -> None:
    """Declare everything as it was at first."""
    history.project = dict(history.first)
    history.say("everything is declared as at first")


def rename_or_remove(history: History) -> None:
    """Give a model another name; or remove one that nothing reads, or add it again."""
    name = history.random.choice(["rename", BALANCE, REPORT, RUNNING])
    project = history.project
    if name == "rename":
        other = {BALANCE: RENAMED, RENAMED: BALANCE}
        history.project = {other.get(one, one): declared for one, declared in project.items()}
        history.say("the balance has another name")
    elif name in project:
        del project[name]
        history.say(f"{name} is removed")
    elif name != BALANCE or RENAMED not in project:
        project[name] = history.first[name]
        history.say(f"{name} is declared")
