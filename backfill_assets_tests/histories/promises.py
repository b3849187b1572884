"""How long a way back is promised, and what is deleted once nothing needs it: then it is refused, and before it is open."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.upkeep import collecting
from backfill_assets.errors import RequestError
from backfill_assets.warehouse.files import collection
from backfill_assets_tests.histories.checks import differ_only
from backfill_assets_tests.histories.edits import days_pass
from backfill_assets_tests.histories.published import WrongError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.histories.checks import Allowed
    from backfill_assets_tests.histories.history import History
    from backfill_assets_tests.histories.published import Contents

_DAYS = (0, 1, 1, 3, 3, 30, 30)
_OVER = "can't be taken back any more"


def promise_otherwise(history: History) -> None:
    """Let ways back be kept for another number of days from now on."""
    history.promise = timedelta(days=history.random.choice(_DAYS))
    history.say(f"ways back are promised for {history.promise.days} days")


def collect_rest(history: History) -> None:
    """Delete what nothing needs any more: nothing that is published changes."""
    days_pass(history)
    history.backup = None  # what it names may be deleted
    before = history.contents()
    history.say("collect")
    run = history.world.open(history.graph)
    with _old_files():
        collected = collecting.collect(run, history.promise)
    history.say(
        f"  {len(collected.tables)} tables, {sum(len(one.files) for one in collected.vacuumed)} files"
    )
    after = history.contents()
    differ_only(before.cells, after.cells, recorded_late(history, before, after), "collecting")


def recorded_late(history: History, before: Contents, after: Contents) -> Allowed:
    """Give the cells that a dead process had committed in models that are not declared: a collection alone still finds them."""
    return {
        name: after.of(name).keys() - before.of(name).keys()
        for name in after.cells
        if name not in history.graph.models
    }


@contextmanager
def _old_files() -> Iterator[None]:
    """Let every file be older than a reader's grace: files and logs carry the machine's time, not the history's."""
    late = datetime.now(UTC) + 2 * collection.GRACE

    def at(vacuum: Callable[..., Any]) -> Callable[..., Any]:
        return lambda path, **given: vacuum(path, **{**given, "now": late})

    with pytest.MonkeyPatch.context() as patch:
        for name in ("vacuum", "vacuum_unborn"):
            patch.setattr(collecting, name, at(getattr(collection, name)))
        yield


@contextmanager
def open_while_promised(history: History, plan: Plan) -> Iterator[None]:
    """A way back is refused as over once its promise is, and not before."""
    promoted = history.promoted[plan.plan_id]
    until = promoted.at + max(promoted.promise, history.promise)
    is_over = until < history.world.clock.now
    try:
        yield
    except RequestError as error:
        if _OVER in str(error) and not is_over:
            raise WrongError(f"{plan.plan_id} is promised until {until}, and {error}") from error
        raise
    if is_over:
        raise WrongError(f"{plan.plan_id} was promised until {until}, and is taken back after it")
