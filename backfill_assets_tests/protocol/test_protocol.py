"""The model of the protocol: whole it violates nothing, and each variant that lacks a rule is caught."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.protocol.explorer import explore
from backfill_assets_tests.protocol.happenings import STEPS, happenings, system
from backfill_assets_tests.protocol.invariants import GAPS
from backfill_assets_tests.protocol.report import explore_protocol
from backfill_assets_tests.protocol.rules import SAFE, Rules
from backfill_assets_tests.protocol.scenarios import (
    COLLECT,
    INTRUDE,
    OTHER_GAP,
    OTHER_REFRESH,
    PILED,
    PROMOTE,
    REFRESH,
    ROLLBACK,
    SCENARIOS,
    SHARED,
    Scenario,
)
from backfill_assets_tests.protocol.variants import BROKEN, Variant
from backfill_assets_tests.protocol.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets_tests.protocol.entries import Outcome
    from backfill_assets_tests.protocol.world import Actor

SMALL = (
    Scenario("a fill", ((OTHER_GAP,),), crashes=1, lapses=1),
    Scenario("a new table", ((OTHER_GAP,), (OTHER_GAP,)), published=False, lapses=1),
    Scenario("a promotion of two tables", ((PROMOTE,),), tables=2, crashes=1, lapses=1),
    Scenario("a fill and a promotion", ((OTHER_GAP,), (PROMOTE,)), crashes=1),
    Scenario("a fill and a stranger", ((OTHER_GAP,), (INTRUDE,)), crashes=2),
    Scenario("a fill and a collection", ((OTHER_GAP,), (COLLECT,)), lapses=1, days=1),
    Scenario("fills of a shared file", ((REFRESH,), (OTHER_REFRESH,)), block=SHARED),
    Scenario("a fill and a joining collection", ((REFRESH,), (COLLECT,)), block=PILED),
    Scenario("a way back in a shared file", ((PROMOTE, ROLLBACK),), crashes=1, block=SHARED),
)


@pytest.mark.parametrize("scenario", SMALL, ids=lambda scenario: scenario.name)
def test_the_whole_protocol_violates_nothing(scenario: Scenario):
    found = explore(system(scenario.world(), SAFE))
    assert found.violation is None, str(found)
    assert found.ends


@pytest.mark.parametrize("variant", BROKEN, ids=lambda variant: variant.name)
def test_a_variant_that_lacks_a_rule_is_caught_by_the_invariant_that_it_is_there_for(
    variant: Variant,
):
    found = variant.explored()
    assert variant.is_caught(found), f"expected: {variant.caught_by}; {found}"


def test_each_rule_is_lacking_in_a_variant():
    lacking = {name for variant in BROKEN for name in variant.lacks}
    assert lacking == {rule.name for rule in fields(Rules)}


def test_the_scenarios_together_take_every_step_of_the_protocol():
    others = {"fill.record_early", "publish.close", "settle.begin", "settle.let_go"}
    missing = STEPS.keys() - others
    for scenario in SCENARIOS:
        for world in _deep(scenario.world()):
            missing -= {process.at for process in world.processes}
            if not missing:
                return
    assert not missing


def _deep(first: World) -> Iterator[World]:
    """Give a few thousand of the states that are reached, depth first."""
    seen, waiting = set[World](), [first]
    while waiting and len(seen) < 5_000:
        world = waiting.pop()
        if world not in seen:
            seen.add(world)
            yield world
            waiting += [after for _, after in happenings(world, SAFE)]


def test_a_step_that_is_wrong_by_mistake_is_noticed(monkeypatch: pytest.MonkeyPatch):
    def ready_or_not(actor: Actor) -> Iterator[Outcome]:
        yield "goes to commit, whatever is ready", actor.goes("fill.create", adopted=False)

    monkeypatch.setitem(STEPS, "fill.ready", ready_or_not)
    two = Scenario("two fills of a cell", ((OTHER_GAP,), (OTHER_GAP,)), crashes=1)
    found = explore(system(two.world(), SAFE))
    assert (found.violation or "").startswith(GAPS)


def test_a_report_says_how_it_came_to_a_violation_and_counts_it():
    said: list[str] = []
    dead_letter = replace(BROKEN[0], lacks=())
    told = explore_protocol(said.append, SMALL[:1], [dead_letter])
    assert len(told.violations) == 1
    assert "was to be caught by" in told.violations[0]
    assert str(told).startswith(f"protocol: {told.states:,} states, 1 violations")
    assert any(SMALL[0].name in line for line in said)
