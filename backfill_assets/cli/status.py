"""`backfill status`: per model what is required, ready, missing and stale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli.output import bar, out, print_json, print_table
from backfill_assets.cli.project import opened_run
from backfill_assets.cli.selecting import selected
from backfill_assets.intervals.text import ranges_text
from backfill_assets.planning.needs_work import needs_work

if TYPE_CHECKING:
    from backfill_assets.execution.run_context import RunContext
    from backfill_assets.models.model import Model
    from backfill_assets.planning.needs_work import Work


def status(
    select: Annotated[str, typer.Option(help="models, comma separated; all by default")] = "",
    env: Annotated[str, typer.Option(help="the environment")] = "prod",
    as_json: Annotated[bool, typer.Option("--json", help="JSON alone on stdout")] = False,
) -> None:
    """Show per model what is required, ready, missing and stale, as ranges of cells.

    Example: backfill status --select marketing.campaign_performance
    """
    with opened_run(env) as run:
        view, now = run.view(), run.clock()
        work = {
            name: needs_work(
                run.graph, view, run.graph.model(name), now=now, reads=run.reads.get(name)
            )
            for name in selected(run.graph, select)
        }
        rows = [_row(run, name, work[name]) for name in work]
    if as_json:
        print_json({"environment": env, "models": rows})
        return
    _print(env, rows)


def _row(run: RunContext, name: str, work: Work) -> dict[str, Any]:
    model = run.graph.model(name)
    count = model.cadence.count
    return {
        "model": name,
        "required": count(work.required),
        "ready": count(work.ready),
        "missing": count(work.gaps),
        "stale": count(work.stale_cells),
        "required_ranges": ranges_text(model.cadence, work.required),
        "missing_ranges": ranges_text(model.cadence, work.gaps),
        "stale_ranges": ranges_text(model.cadence, work.stale_cells),
        "stale_because": {
            one.upstream: ranges_text(run.graph.node(one.upstream).cadence, one.upstream_cells)
            for one in work.stale
        },
        "waits_for": {up: ranges_text(model.cadence, cells) for up, cells in work.blocked.items()},
        "watermark": _watermark(run, model),
        "changed": name in run.changed,
    }


def _watermark(run: RunContext, model: Model) -> str | None:
    mark = run.store.watermark(run.pointer(model).version)
    return mark.isoformat() if mark else None


def _print(env: str, rows: list[dict[str, Any]]) -> None:
    print_table(
        ("model", "", "ready#", "required#", "missing#", "stale#", "missing / stale cells"),
        [
            (
                row["model"],
                bar(row["ready"], row["required"]),
                f"{row['ready']:,}",
                f"{row['required']:,}",
                f"{row['missing']:,}",
                f"{row['stale']:,}",
                _remark(row),
            )
            for row in rows
        ],
    )
    for row in rows:
        if row["changed"]:
            out.print(
                f"~ {row['model']}: the loaded logic is not what {env} runs; {env} goes on with its "
                "own snapshot until a plan promotes the new one"
            )
    missing, stale = (sum(row[key] for row in rows) for key in ("missing", "stale"))
    if missing:
        out.print("Next: backfill run")
    out.print(f"{env}: {len(rows)} models, {missing:,} cells missing, {stale:,} stale.")


def _remark(row: dict[str, Any]) -> str:
    parts: list[str] = []
    if row["missing"]:
        parts.append(row["missing_ranges"])
    if row["stale"]:
        because = ", ".join(row["stale_because"])
        parts.append(f"stale: {row['stale_ranges']} ({because} changed; needs a plan)")
    return "; ".join(parts)
