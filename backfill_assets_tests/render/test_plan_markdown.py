from __future__ import annotations

from dataclasses import replace

from backfill_assets.render.plan_markdown import plan_markdown
from backfill_assets_tests.render.plans import NAMING, a_plan, added_columns, restated

ADDED_COLUMNS = """\
## Plan `p1a2b3c4d5` for `prod` (protected)

- **Reason:** new columns
- **Asked by:** ada
- **Expires:** 2024-06-08 12:00 UTC
- **History ends at:** 2024-06-01 12:00 UTC
- **Estimate:** 3 min 20 s (P50), 1 h 05 min (P90); cost 0.12, at most 0.30; reads 1.2 GB; rests on 41 recorded batches
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

### Batches

- `marketing.campaign_performance`: 2 batches of up to 91 cells, about 480.5 MB of its inputs each (batch_size is not declared)
- `marketing.roi_analysis`: 1 batch

### Left alone

- `marketing.campaign_trends_monthly`: reads none of: clicks, conversions

### Strategy

- `marketing.campaign_performance`: column enrichment; risk: a join that multiplies rows; watched: row count and all other columns equal
- `marketing.roi_analysis`: partition repair

### In flight

- `marketing.roi_analysis` 2024-05-30..2024-05-31 (2): run cli-77

### Gates

- an explicit promotion

### Stages

- `apply`: open a workspace, which no reader sees
- `apply`: build up to 304 cells of 2 models in the workspace
- `apply`: audit published cells that stay, where the plan changes their audits
- `apply`: check that nothing has moved, and what the strategies promise
- `promote`: compute with the new logic what was published meanwhile
- `promote`: check that nothing has moved, and what the strategies promise
- `promote`: audit published cells that stay, where the plan changes their audits
- `promote`: move all pointers in one transaction

### Notes

- `marketing.roi_analysis`: 2024-06-01 is left out: it has not ended
- promised until 2024-07-01

"""


def test_a_plan_as_markdown_has_everything():
    assert plan_markdown(added_columns(), NAMING) == ADDED_COLUMNS


def test_a_conflict_stands_under_a_title_of_its_own():
    assert (
        "### Conflicts\n\n- `marketing.roi_analysis` 2024-01-01..2024-01-31 (31): plan p0\n"
        in plan_markdown(restated(), NAMING)
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
