from __future__ import annotations

from dataclasses import replace

from backfill_assets.planning.plan.plan import Build, Plan
from backfill_assets.render.plan_text import Tone, plan_text
from backfill_assets.render.plan_words import count_line, plain_symbols, seconds_text
from backfill_assets_tests.render.plans import (
    NAMING,
    PERFORMANCE,
    a_plan,
    added_columns,
    larger_than_a_screen,
    restated,
)

ADDED_COLUMNS = """\
Plan p1a2b3c4d5 for prod (protected), asked for by ada
Reason    new columns
Expires   2024-06-08 12:00 UTC; history ends at 2024-06-01 12:00 UTC
~ marketing.campaign_performance: non-breaking: adds clicks, conversions (decided by planner)
    @@ -3,4 +3,5 @@
       CAST(SUM(cost) AS DECIMAL(18, 2)) AS cost,
    +  SUM(clicks) AS clicks,
    -  COUNT(*) AS events
    +  COUNT(*) AS events,
    +  SUM(conversions) AS conversions
≈ marketing.roi_analysis: non-breaking: reads clicks of marketing.campaign_performance (decided by grace)
Work
  ~ marketing.campaign_performance     152  2024-01-01..2024-05-31 (152)  new snapshot
  ≈ marketing.roi_analysis             152  2024-01-01..2024-05-31 (152)  upstream changed: marketing.campaign_performance, if its input changes
                                         2  2024-05-02..2024-05-03 (2)  owed: plan p0
        2024-06-01 is left out: it has not ended
Left alone
    marketing.campaign_trends_monthly  reads none of: clicks, conversions
In flight marketing.roi_analysis 2024-05-30..2024-05-31 (2): run cli-77
Estimate  3 min 20 s (P50), 1 h 05 min (P90); cost 0.12, at most 0.30 EUR; reads 1.2 GB; rests on 41 recorded batches
Strategy  column enrichment: marketing.campaign_performance
          risk: a join that multiplies rows
          watched: row count and all other columns equal
Strategy  partition repair: marketing.roi_analysis
Gate      an explicit promotion
Way back  the pointers go back to performance__1; nothing is computed
Note      promised until 2024-07-01"""


def text_of(plan: Plan, *, whole: bool = False) -> str:
    return "\n".join(line.text for line in plan_text(plan, NAMING, whole=whole))


def test_a_plan_is_read_from_its_head_to_its_way_back():
    assert text_of(added_columns()) == ADDED_COLUMNS


def test_a_restatement_says_what_was_asked_and_who_is_in_the_way():
    text = text_of(restated())

    assert "Asked     restate marketing.ad_events 2024-01-01..2024-01-31" in text
    assert "↻ marketing.roi_analysis      31  2024-01-01..2024-01-31 (31)  restated: " in text
    assert "Conflict  marketing.roi_analysis 2024-01-01..2024-01-31 (31): plan p0; " in text


def test_a_large_plan_fits_a_screen_and_says_what_it_hides():
    lines = plan_text(larger_than_a_screen(), NAMING)

    assert len(lines) <= 45
    assert "    and 23 models more: -v shows them" in [line.text for line in lines]


def test_all_of_a_large_plan_is_there_when_asked_for():
    text = text_of(larger_than_a_screen(), whole=True)

    assert text.count("+ line") == 900
    assert "many.reader_29" in text
    assert "more: -v" not in text


def test_the_whole_text_adds_builds_reads_and_the_meaning_of_signs():
    text = text_of(added_columns(), whole=True)

    assert "build: new version performance__2, now performance__1" in text
    assert "cut into: 2 batches of up to 91 cells, about 480.5 MB of its inputs each (batch" in text
    assert "reads: marketing.ad_events 2024-01-01..2024-05-31 (152), clicks, cost" in text
    assert "≈ indirectly modified" in text


def test_lines_of_a_diff_have_the_tone_of_their_sign():
    tones = {line.text.strip()[:1]: line.tone for line in plan_text(added_columns(), NAMING)}

    assert tones["-"] is Tone.MINUS


def test_the_count_line_keeps_what_is_certain_apart():
    assert count_line(NAMING, added_columns()) == (
        "prod: 2 models, 154 cells certain, 150 more if their input changes, 3 batches, "
        "1 left alone."
    )


def test_a_model_of_which_nothing_is_computed_says_why():
    pointer = replace(added_columns().models[0], build=Build.POINTER, work=(), batches=())

    assert f"  ○ {PERFORMANCE}       0  nothing is computed: pointer only" in text_of(
        a_plan(pointer)
    )


def test_removed_models_are_named():
    assert "  - toy.old: removed; " in text_of(a_plan(removed=("toy.old",)))


def test_every_sign_has_one_that_ascii_can_write():
    assert plain_symbols("+~≈↻○·-") == "+~iro.-"


def test_times_are_written_as_people_say_them():
    assert [seconds_text(seconds) for seconds in (0.2, 45, 200, 7500)] == [
        "under 1 s",
        "45 s",
        "3 min 20 s",
        "2 h 05 min",
    ]
