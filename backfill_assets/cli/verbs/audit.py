"""`backfill audit`: run the audits alone over the published cells; for CI."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.cli.named_model import published_model
from backfill_assets.cli.operating import looking
from backfill_assets.cli.options import AsJson, Env, Select, refuse_together, refuse_without
from backfill_assets.cli.output import Heading, err, print_json, print_table, say, writing
from backfill_assets.engine.batch.audit_run import (
    audit_and_keep_each,
    audited_model,
    refuse_nothing_published,
)
from backfill_assets.engine.batch.planted_run import audit_planted
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.intervals.text import counted
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.planted import advice, defects_of
from backfill_assets.planning.plan.selecting import selected
from backfill_assets.planning.plan.written_options import chosen
from backfill_assets.render.junit import junit_xml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.audit_result import AuditResult
    from backfill_assets.models.model import Model
    from backfill_assets.models.planted import Noticed

_ROWS = 3


_Mutated = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="Insert defects into a copy of a few cells, and show which the audits find.",
    ),
]
_Least = Annotated[
    int,
    typer.Option(
        "--min",
        min=0,
        max=100,
        help="With --mutate: the percentage of defects that blocking audits have to stop.",
    ),
]


def audit(
    select: Select = None,
    env: Env = "prod",
    junit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the results here too, as JUnit XML for CI."),
    ] = None,
    mutate: _Mutated = None,
    least: _Least = 0,
    as_json: AsJson = False,
) -> None:
    """Run every audit over published data, without rebuilding it, and keep the results.

    `backfill audits` lists the latest results; `backfill report` reports the last result to Dagster. A model whose files are gone or damaged
    is named, and the others are audited all the same.

    With `--mutate` the audits themselves are tested: duplicates, a fanned-out join, dropped rows, a cell that stops half-way, a shifted zone, doubled values, a
    flipped sign and a burst of NULLs are planted in a copy of the newest published cells, one after the other, and judged as a batch of
    these rows would be. Nothing is written. Audits count as they are declared now, where the edit leaves how rows are computed.

    Exit code: 0 when no blocking audit fails, else 1, also when a model can't be read or nothing is published that could be audited; with `--mutate` 1 when fewer defects are stopped than `--min` says.

    Example: backfill audit

    Example: backfill audit --select commerce.fact_orders --json

    Example: backfill audit --junit audits.xml

    Example: backfill audit --mutate marketing.campaign_performance --min 90
    """
    refuse_without("--mutate", mutate, min=least)
    refuse_together(mutate=mutate, select=select)
    refuse_together(mutate=mutate, junit=junit)
    if mutate is not None:
        if _mutated(env, mutate, as_json=as_json) < least:
            raise typer.Exit(1)
        return
    with looking() as at:
        run = at.published(env)
        names = selected(run.graph, chosen(select))
        refuse_nothing_published(run, names)
        _announce(run, names)
        results, unreadable = audit_and_keep_each(run, names)
    blocking = sum(result.blocks for audited in results.values() for result in audited)
    if junit is not None:
        with writing(
            junit, "give --junit another file; the audits have run, nothing else was written"
        ):
            junit.write_bytes(junit_xml(results, unreadable))
    if as_json:
        models = {name: [asdict(result) for result in audited] for name, audited in results.items()}
        told = {"environment": env, "blocking": blocking, "models": models}
        print_json({**told, "unreadable": unreadable})
    else:
        _print(env, results, unreadable, blocking)
    if blocking or unreadable:
        raise typer.Exit(1)


def _mutated(env: str, name: str, *, as_json: bool) -> float:
    """Plant defects, tell which are noticed, and give the percentage that would be stopped."""
    with looking() as at:
        run = at.published(env)
        model = published_model(run, name)
        say(f"audits of {model.name} against planted defects; nothing is written", to=err)
        every = [*defects_of(model)]
        noticed: list[Noticed] = []
        with run.at_work.at(Phase.CHECKING, of=len(every)) as step:
            for defect in audit_planted(run, model.name):
                step.next(defect.planted.words)
                noticed.append(defect)
    stopped = [defect for defect in noticed if defect.stopped_by]
    percent = 100 * len(stopped) / len(noticed) if noticed else 100.0
    if as_json:
        print_json({
            "model": model.name, "environment": env, "percent": percent,
            "defects": [{**asdict(defect), "advice": advice(defect.planted, model)} for defect in noticed],
        })  # fmt: skip
    else:
        _print_noticed(model, noticed)
    return percent


def _print_noticed(model: Model, noticed: Sequence[Noticed]) -> None:
    print_table(
        (Heading("planted defect"), Heading("stopped by"), Heading("warned by", spare=1)),
        [
            (
                defect.planted.words,
                ", ".join(defect.stopped_by) or "nothing",
                ", ".join(defect.warned_by),
            )
            for defect in noticed
        ],
    )
    unnoticed = [defect for defect in noticed if not defect.stopped_by and not defect.warned_by]
    for defect in unnoticed:
        say(
            f"nothing notices {defect.planted.words}: {advice(defect.planted, model)} would",
            indent=2,
        )
    untold = dict.fromkeys(audit for defect in noticed for audit in defect.failed_before)
    if untold:
        say(
            f"{', '.join(untold)} fail on these cells as they are published, and tell no defect where they "
            f"fail anyway: `backfill audit --select {model.name}` shows where",
            indent=2,
            style="yellow",
        )
    stopped = sum(bool(defect.stopped_by) for defect in noticed)
    say(
        f"{model.name}: {stopped} of {counted(len(noticed), 'planted defect')} stopped before the commit, "
        f"{len(noticed) - stopped - len(unnoticed)} only warned of, {len(unnoticed)} unnoticed."
    )


def _announce(run: RunContext, names: Sequence[str]) -> None:
    """Say what the audit is before its first step."""
    view = run.view()
    published = [name for name in names if view.ready(name)]
    audits = sum(len(audits_of(audited_model(run, name))) for name in published)
    say(
        f"audit of {run.environment.name}: {counted(audits, 'audit')} of "
        f"{counted(len(published), 'model')} over all that is published; no data is written",
        to=err,
    )
    for name in published:
        declared = run.project.loaded.graph.models.get(name)
        if audited_model(run, name) != declared:
            what, by_plan = (
                ("it is not declared any more", "")
                if declared is None
                else (
                    "how its rows are computed has changed",
                    ", what is edited is audited by a plan",
                )
            )
            say(
                f"{name}: {what}; audited as {run.environment.name} runs it{by_plan}",
                to=err,
                indent=2,
            )


_HEADINGS = (
    Heading("model"),
    Heading("audit"),
    Heading("severity", spare=1),
    Heading("failing rows", number=True, spare=2),
)


def _print(
    env: str,
    results: Mapping[str, tuple[AuditResult, ...]],
    unreadable: Mapping[str, str],
    blocking: int,
) -> None:
    every = [(name, result) for name, audited in results.items() for result in audited]
    failed = [(name, result) for name, result in every if not result.passed]
    if failed:
        print_table(
            _HEADINGS,
            [
                (name, result.audit, result.severity.value, f"{result.failing_rows:,}")
                for name, result in failed
            ],
        )
    for name, result in failed:
        where = f" in {', '.join(result.cells)}" if result.cells else ""
        text = f"{name} {result.audit}: found {result.found}, allowed {result.allowed}{where}"
        say(text, indent=2, style="red" if result.blocks else "yellow")
        for row in result.sample[:_ROWS]:
            say(f"  row {row}", indent=6)
    for name, why in unreadable.items():
        say(f"{name} can't be audited: {why}", indent=2, style="red")
    without = [name for name, audited in results.items() if not audited]
    if without:
        say(f"nothing is published yet of {', '.join(without)}", indent=2)
    skipped = f", {counted(len(unreadable), 'model')} not audited" if unreadable else ""
    say(
        f"{env}: {counted(len(every), 'audit')} of {counted(len(results), 'model')}: "
        f"{len(every) - len(failed)} passed, {blocking} blocking and {len(failed) - blocking} "
        "warning ones failed"
        f"{skipped}."
    )
