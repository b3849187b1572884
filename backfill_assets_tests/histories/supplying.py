"""What becomes of deliveries: whole days of them come late, vanish, and come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date

    from backfill_assets_tests.histories.history import History

_IN_TIME = 0.7


def late_deliveries(history: History) -> None:
    """Let the deliveries of a day come, or come back, vanish or be corrected."""
    random, delivered = history.random, history.delivered
    untold = [day for day in history.delivery_days if day not in delivered.days]
    match random.choice(["come", "come", "vanish", "correct"]):
        case "come" if untold:
            day = random.choice(untold)
            deliver(history, day)
            history.say(f"the deliveries of {day} are told of")
        case "vanish":
            day = random.choice(delivered.days)
            history.withdrawn[day] = [delivered.rows[one][1] for one in delivered.of(day)]
            for one in delivered.of(day):
                delivered.delete(one)
            history.say(f"the deliveries of {day} vanish")
        case _:
            day = random.choice(delivered.days)
            delivered.correct(random.choice(delivered.of(day)))
            history.say(f"a delivery of {day} is corrected")


def deliver(history: History, day: date) -> None:
    """Land the deliveries of a day: those that have vanished, mostly as they were."""
    amounts = history.withdrawn.pop(day, None)
    if amounts and history.random.random() < 0.7:
        history.delivered.sell(day, amounts)
    else:
        history.delivered.sell_some(day, history.random.randint(1, 2), history.random)


def deliver_in_time(history: History, day: date) -> None:
    """Land the deliveries of a day, unless they come late."""
    if history.random.random() < _IN_TIME:
        deliver(history, day)


def deliver_rest(history: History) -> None:
    """Land the deliveries of every day that has none."""
    for day in history.delivery_days:
        if day not in history.delivered.days:
            deliver(history, day)
