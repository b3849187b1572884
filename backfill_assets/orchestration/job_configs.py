"""What people fill in on the launchpad, job by job."""

import dagster as dg
from pydantic import Field

from backfill_assets.snapshots.environment import PROD


class OperatorConfig(dg.Config):
    """Who asks, and why."""

    who: str = Field(
        default="",
        description="Your name: recorded as a claim, since the launchpad can not know who you are.",
    )
    reason: str = Field(default="", description="Why, in words, for the history.")


class RestatedConfig(dg.Config):
    """A model or source that was wrong."""

    name: str = Field(description="The model or source.")
    first: str = Field(default="", description="The first date that was wrong; empty: all before.")
    last: str = Field(default="", description="The last one (included); empty: all after.")


class PlanConfig(OperatorConfig):
    """What is asked of a plan; nothing asked, it plans for whatever the loaded models change."""

    environment: str = Field(default=PROD, description="Whose history it is about.")
    restate: list[RestatedConfig] = Field(
        default=[], description="What was wrong, and over which stretch."
    )
    select: list[str] = Field(
        default=[], description="Names, globs, +model, model+, tag:key=value."
    )
    first: str = Field(default="", description="First date; empty: each model's own start.")
    last: str = Field(default="", description="Last date (included); empty: now.")
    forward_only: bool = Field(default=False, description="Apply changes from now on only.")
    empty: bool = Field(default=False, description="Record missing cells as ready, uncomputed.")
    restate_all_snapshots: bool = Field(
        default=False,
        description="Mark the restated cells as owed in all tables of the model, in every environment.",
    )
    end_bounded: bool = Field(
        default=False, description="Plan no cell that ends after the last date."
    )
    ignore_cron: bool = Field(default=False, description="Plan up to now, ignoring cron.")
    skip_upstream: bool = Field(default=False, description="Do not add missing upstream cells.")
    effective_from: str = Field(default="", description="Needs forward_only: from this date on.")
    where: str = Field(
        default="", description="SQL: only such rows of a restated model may differ."
    )
    cutoff: str = Field(default="", description="Older cells keep the old definition.")
    lift_cutoff: list[str] = Field(default=[], description="Models whose cutoff ends.")
    dual_run: int = Field(
        default=0, description="How many days a dual run fills both tables before promotion."
    )
    pause_schedules: bool = Field(
        default=False,
        description="Pause sensor and schedules for its models until the plan has ended.",
    )
    canary: bool = Field(
        default=False,
        description="Build a few representative cells first, and wait for the next apply.",
    )
    category: list[str] = Field(default=[], description="MODEL=CATEGORY, one each.")
    strategy: list[str] = Field(default=[], description="MODEL=STRATEGY, one each.")
    kept_rows: str = Field(
        default="", description="carry or drop rows that are no longer in the source."
    )
    spark: list[str] = Field(default=[], description="KEY=VALUE of Spark for the plan's batches.")
    expect: list[str] = Field(default=[], description="MODEL: RULE; RULE of what may change.")
    now: str = Field(default="", description="Plan as of this instant, with offset; empty: now.")


class InEnvironment(OperatorConfig):
    """An environment."""

    environment: str = Field(default=PROD, description="Whose history it is about.")


class OfPlan(OperatorConfig):
    """A plan."""

    plan: str = Field(description="Its id, as the job `plan` or the command shows it.")


class ApplyConfig(OfPlan):
    """How a plan is built."""

    queue: bool = Field(
        default=False,
        description="Let the sensor release it in runs of its own, instead of building it in this one.",
    )
    off_peak: str = Field(
        default="",
        description="Only in these hours, such as 22:00-06:00 Europe/Berlin; needs queue.",
    )


class PromoteConfig(OfPlan):
    """How a plan is promoted."""

    at: str = Field(
        default="",
        description="Promote at this time, as 'Sun 03:00 Europe/Berlin'; empty: now; never: cancel the appointment.",
    )
    watch: str = Field(
        default="", description="Watch what it publishes for this long, as 24h; empty: not at all."
    )


class RollbackConfig(OperatorConfig):
    """Which plans are rolled back; one of the two is given."""

    plan: str = Field(default="", description="The id of the plan to take back.")
    to: str = Field(
        default="", description="Instead of it: take back every plan that was promoted after this."
    )


class StopConfig(OfPlan):
    """How a plan is stopped."""

    now: bool = Field(default=False, description="Cancel the batches in flight, too.")
