"""What `make faults` does with the model: explores every scenario, and tries every broken variant."""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time
from typing import TYPE_CHECKING

from backfill_assets_tests.protocol.explorer import explore
from backfill_assets_tests.protocol.happenings import system
from backfill_assets_tests.protocol.rules import SAFE
from backfill_assets_tests.protocol.scenarios import SCENARIOS
from backfill_assets_tests.protocol.variants import BROKEN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from backfill_assets_tests.protocol.scenarios import Scenario
    from backfill_assets_tests.protocol.variants import Variant


@dataclass(frozen=True, slots=True)
class Told:
    """What the model has shown.

    Attributes:
        states: how many different states were visited.
        violations: what did not hold in the whole protocol, and each variant that was not caught.
        broken: how many broken variants there are.
    """

    states: int
    violations: tuple[str, ...]
    broken: int

    def __str__(self) -> str:
        """Say it in a line."""
        return (
            f"protocol: {self.states:,} states, {len(self.violations)} violations, {self.broken} broken "
            "variants"
        )


def explore_protocol(
    say: Callable[[str], None],
    scenarios: Sequence[Scenario] = SCENARIOS,
    broken: Sequence[Variant] = BROKEN,
) -> Told:
    """Explore the scenarios and the variants, and tell how each went."""
    states, wrong = 0, list[str]()
    for scenario in scenarios:
        since, found = process_time(), explore(system(scenario.world(), SAFE))
        states += found.states
        took = process_time() - since
        say(
            f"protocol, {scenario.name}: {found.states:,} states, {found.ends:,} ends, {took:.0f} s of a core"
        )
        if found.violation is not None:
            say(str(found))
            wrong.append(f"{scenario.name}: {found.violation}")
    wrong += [missed for variant in broken if (missed := _missed(variant))]
    return Told(states, tuple(wrong), len(broken))


def _missed(variant: Variant) -> str:
    """Say what was found of a variant instead of what was expected; nothing when it is caught."""
    found = variant.explored()
    if variant.is_caught(found):
        return ""
    return f"'{variant.name}' was to be caught by '{variant.caught_by}'; {found}"
