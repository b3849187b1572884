from __future__ import annotations

from dataclasses import replace

from backfill_assets.render.plan_markdown import plan_markdown
from backfill_assets_tests.render.plans import (
    DAYS,
    NAMING,
    PERFORMANCE,
    ROI,
    a_plan,
    added_columns,
    restated,
    span,
)

ADDED_COLUMNS = """\
## Plan `p1a2b3c4d5` for `prod` (protected), asked for by ada

- **Reason:** new columns
- **Expires:** 2024-06-08 12:00 UTC; history ends at 2024-06-01 12:00 UTC
- **Estimate:** 3 min 20 s (P50), 1 h 05 min (P90); cost 0.12, at most 0.30 EUR; reads 1.2 GB; rests on 41 recorded batches
- **Way back:** the pointers go back to performance__1; nothing is computed

|  | model | cells | which, and why |
|---|---|---:|---|
| ~ | `marketing.campaign_performance` | 152 | 2024-01-01..2024-05-31 (152)  new snapshot |
| ≈ | `marketing.roi_analysis` | 152 | 2024-01-01..2024-05-31 (152)  upstream changed: marketing.campaign_performance, if its input changes |
| ≈ | `marketing.roi_analysis` | 2 | 2024-05-02..2024-05-03 (2)  owed: plan p0 |

prod: 2 models, 154 cells certain, 150 more if their input changes, 3 batches, 1 left alone.

### ~ `marketing.campaign_performance`: non-breaking: adds clicks, conversions (decided by planner)

```diff
--- prod
+++ loaded
@@ -3,4 +3,5 @@
   CAST(SUM(cost) AS DECIMAL(18, 2)) AS cost,
+  SUM(clicks) AS clicks,
-  COUNT(*) AS events
+  COUNT(*) AS events,
+  SUM(conversions) AS conversions
```

### ≈ `marketing.roi_analysis`: non-breaking: reads clicks of marketing.campaign_performance (decided by grace)

### Details

- `marketing.campaign_performance`
  - build: new version performance__2, now performance__1
  - cut into: 2 batches of up to 91 cells, about 480.5 MB of its inputs each (batch_size is not declared)
  - reads: marketing.ad_events 2024-01-01..2024-05-31 (152), clicks, cost
  - takes: 2 min 30 s (P50), 3 min 50 s (P90); cost 0.10, at most 0.20; reads 900.0 MB; rests on 41 recorded batches
- `marketing.roi_analysis`
  - build: in place roi__1
  - cut into: 1 batch
  - **2024-06-01 is left out: it has not ended**

### Left alone

- `marketing.campaign_trends_monthly`: reads none of: clicks, conversions

### In flight

- `marketing.roi_analysis` 2024-05-30..2024-05-31 (2): run cli-77

### Strategy

- `marketing.campaign_performance`: column enrichment; risk: a join that multiplies rows; watched: row count and all other columns equal
- `marketing.roi_analysis`: partition repair

### Gates

- an explicit promotion

### Notes

- promised until 2024-07-01

### Stages

- `apply`: open a workspace, which no reader sees
- `apply`: build up to 304 cells of 2 models in the workspace
- `apply`: audit cells that the plan keeps, where it changes their audits
- `apply`: check that no input has changed, and run the checks of strategies and contract
- `promote`: compute with the new logic the cells that were published in the meantime
- `promote`: check that no input has changed, and run the checks of strategies and contract
- `promote`: audit cells that the plan keeps, where it changes their audits
- `promote`: publish all models in one transaction

### Signs

`+` added, `~` modified, `≈` indirectly modified, `↻` restated, owed or overtaken, `○` pointer only, `·` gap fill, `-` removed

"""


def test_a_plan_as_markdown_has_everything():
    assert plan_markdown(added_columns(), NAMING) == ADDED_COLUMNS


def test_a_conflict_stands_under_a_title_of_its_own():
    assert (
        "### Conflicts\n\n- `marketing.roi_analysis` 2024-01-01..2024-01-31 (31): plan p0; this plan "
        "can't be applied before the other plan has ended\n" in plan_markdown(restated(), NAMING)
    )


def test_a_bar_in_a_reason_does_not_break_the_table():
    model = added_columns().models[1]
    work = replace(model.work[0], because="a | b")

    assert "upstream changed: a \\| b, if its input" in plan_markdown(
        a_plan(replace(model, work=(work,))), NAMING
    )


def test_a_fence_in_a_diff_does_not_end_it():
    model = replace(added_columns().models[0], diff="+```sql\n+SELECT 1\n+```")

    assert "\n````diff\n+```sql\n" in plan_markdown(a_plan(model), NAMING)


def test_cells_that_are_left_out_and_removed_models_stand_in_the_table():
    model = replace(added_columns().models[0], waiting=span(DAYS, "2024-06-01", "2024-06-02"))
    rows = plan_markdown(a_plan(model, removed=("toy.old",)), NAMING).splitlines()

    assert (
        f"| ~ | `{PERFORMANCE}` | 2 | 2024-06-01..2024-06-02 (2)  left out: what they read is neither "
        "ready nor planned |"
    ) in rows
    assert "| - | `toy.old` | | removed; its table stays for `backfill gc` |" in rows


def test_models_that_are_changed_in_the_same_way_stand_together():
    model = added_columns().models[0]
    text = plan_markdown(a_plan(model, replace(model, model=ROI)), NAMING)

    assert f"- `{PERFORMANCE}`, `{ROI}`: column enrichment; risk: a join that" in text


def test_a_plan_without_work_has_no_table():
    text = plan_markdown(a_plan(), NAMING)

    assert "| model |" not in text
    assert "\n\nprod: 0 models, 0 cells certain" in text
