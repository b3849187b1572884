"""The robust band of a number over its neighbours: a cliff or a spike lies outside of it."""

from __future__ import annotations

from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_FEWEST_AROUND = 4
_SCALE = Fraction("1.4826")  # makes the median deviation of normal values their standard deviation


def robust_band(around: Sequence[Fraction], band: float) -> tuple[Fraction, Fraction] | None:
    """Give the lowest and the highest value that neighbours allow; None where they allow any.

    Args:
        around: the same number of the cells around; with fewer than four, or where most are zero, there is no band.
        band: how many scaled median absolute deviations around their median.
    """
    if len(around) < _FEWEST_AROUND:
        return None
    middle = median(around)
    spread = median(abs(value - middle) for value in around) * _SCALE
    reach = Fraction(str(band)) * max(spread, abs(middle) / 100)
    return (middle - reach, middle + reach) if reach else None
