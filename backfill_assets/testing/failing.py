"""Steps of a batch that fail a few times, as a store or a network does."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from backfill_assets.engine.batch import effects
from backfill_assets.engine.batch.effects import Effects
from backfill_assets.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FAILURES = tuple(effect.name for effect in fields(Effects))
"""The steps that can be let fail: ``inputs``, ``rows``, ``computed``, ``audited``, ``turn``, ``commit``, ``record``."""


@contextmanager
def failing_at(
    step: str,
    error: Exception | None = None,
    *,
    when: Callable[[tuple[Any, ...]], bool] = lambda _: True,
) -> Iterator[list[Exception]]:
    """Let a step of every batch fail in place of what it usually does; gives the errors that were raised.

    Args:
        step: one of `FAILURES`.
        error: what it raises; unless given, that a machine does not answer: a transient failure.
        when: whether it fails, by what the step is given.

    Raises:
        RequestError: there is no such step.
    """
    if step not in FAILURES:
        raise RequestError(
            found=f"a batch has no step {step!r}",
            expected=f"one of {', '.join(FAILURES)}",
            do="name one of these steps",
        )
    raised: list[Exception] = []
    real = getattr(effects.USUAL, step)
    failure = error or ConnectionResetError("the machine did not answer")

    def stepped(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - passed on
        if not when(given):
            return real(*given, **named)
        raised.append(failure)
        raise failure

    with patch.object(effects, "USUAL", replace(effects.USUAL, **{step: stepped})):
        yield raised
