"""The map names the snapshot and the plan that made each published cell, and what holds none."""

from __future__ import annotations

from datetime import timedelta
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.plans.plan_verbs import rollback_plan
from backfill_assets.engine.review.mapping import map_of
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.render.history_map import map_json, map_lines
from backfill_assets.render.history_map_html import map_html
from backfill_assets.render.plan_words import Naming
from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets_tests.builders import EVENTS, a_graph, a_source, days
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_explaining import DOUBLED
from backfill_assets_tests.engine.test_plans import (
    COSTS,
    OLD,
    ROWS,
    VISITS,
    changed,
    costs,
    visits,
)
from backfill_assets_tests.engine.world import row

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.review.history_map import MappedModel
    from backfill_assets_tests.engine.world import World


@pytest.fixture
def plans(world: World) -> Plans:
    return Plans(world)


def mapped(world: World, graph: Graph, model: str) -> MappedModel:
    (found,) = map_of(world.open(graph), [model])
    return found


def naming(graph: Graph) -> Naming:
    return Naming({name: model.cadence for name, model in graph.models.items()})


def test_cells_are_named_by_snapshot_and_by_the_plan_that_built_them(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 80.0)))
    plan = plans.published(OLD, restate=(Restatement(EVENTS, "2024-01-08", "2024-01-08"),))
    found = mapped(world, OLD, COSTS)
    assert [(made.letter, made.plan_id) for made in found.made] == [("A", None)]
    assert {by.plan_id: by.cells for by in found.made[0].by} == {
        None: days(7, 9, 10),
        plan.plan_id: days(8),
    }


def test_an_environment_that_follows_another_names_the_plans_of_that_one(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    world.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    plan = plans.published(DOUBLED)
    world.environment = "dev"
    (made,) = mapped(world, DOUBLED, COSTS).made
    assert (made.letter, made.plan_id) == ("A", plan.plan_id)


def test_a_cutoff_parts_the_definitions_and_is_named(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    plan = plans.published(DOUBLED, cutoff="2024-01-09", reason="doubled since then")
    found = mapped(world, DOUBLED, COSTS)
    assert [(made.letter, made.plan_id, made.cells) for made in found.made] == [
        ("A", None, days(7, 8)),
        ("B", plan.plan_id, days(9, 10)),
    ]
    assert found.cutoff is not None
    lines = [*map_lines([found], naming(DOUBLED), 50)]
    drawn = lines[1].split()[1]
    assert (drawn[0], drawn[-1], drawn.count("|")) == ("A", "B", 1)
    assert drawn.replace("|", "B") == "".join(sorted(drawn.replace("|", "B")))
    assert any(line.strip().startswith("cutoff: before 2024-01-09") for line in lines)


def test_gaps_stale_and_empty_cells_are_shown(world: World, plans: Plans):
    world.land(a_source(), *ROWS)
    plans.published(OLD, empty=True, end="2024-01-08")
    world.fill(OLD, cells=days(9))
    world.land(a_source(), *changed(row(9, 1, 5.0)))
    world.fill(a_graph(visits()), VISITS, cells=days(9))
    found = mapped(world, OLD, VISITS)
    assert (found.empty, found.missing) == (days(7, 8), days(10))
    text = "\n".join(map_lines([found], naming(OLD), 60))
    assert "empty: 2024-01-07..2024-01-08 (2)" in text
    assert "missing: 2024-01-10" in text
    (told,) = map_json([found], naming(OLD))
    assert (told["empty"], told["missing"]) == (["2024-01-07..2024-01-08"], ["2024-01-10"])


def test_after_a_rollback_the_old_snapshot_is_still_the_first(world: World, plans: Plans):
    world.begin(OLD, *ROWS)
    plan = plans.published(DOUBLED)
    world.clock.now += timedelta(minutes=1)
    assert [made.plan_id for made in mapped(world, OLD, COSTS).made] == [plan.plan_id]
    rollback_plan(plans.project(DOUBLED), plan)
    found = mapped(world, OLD, COSTS)
    assert [(made.letter, made.plan_id, made.cells) for made in found.made] == [
        ("A", None, days(7, 8, 9, 10))
    ]


class Page(HTMLParser):
    """What a page has: tags, titles, labels, and whether each tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.tags: list[str] = []
        self.given: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.given += [(name, value or "") for name, value in attrs]
        if tag != "meta":
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag


def test_the_page_needs_no_network_and_no_script_and_says_in_words_what_it_draws(
    world: World, plans: Plans
):
    world.begin(OLD, *ROWS)
    plans.published(DOUBLED, cutoff="2024-01-09", reason='<b>"doubled"</b> since then')
    models = map_of(world.open(DOUBLED), [VISITS, COSTS])
    text = map_html(models, naming(DOUBLED), "prod", world.clock.now)
    page = Page(text)
    assert page.opened == []
    assert not {"script", "link", "img", "iframe", "b"} & {*page.tags}
    assert not [value for name, value in page.given if name in ("href", "src") or "//" in value]
    assert "url(" not in text
    labels = [value for name, value in page.given if name == "aria-label"]
    assert [label.partition(":")[0] for label in labels] == [VISITS, COSTS]
    titles = [value for name, value in page.given if name == "title"]
    assert any("2024-01-07..2024-01-08 (2): A, snapshot" in title for title in titles)
    assert any(title.startswith("cutoff: before 2024-01-09") for title in titles)


def test_a_model_of_which_nothing_is_published_has_a_line(world: World):
    world.land(a_source(), *ROWS)
    graph = a_graph(visits(), costs())
    found = mapped(world, graph, COSTS)
    assert (found.made, found.missing) == ((), days(7, 8, 9, 10))
