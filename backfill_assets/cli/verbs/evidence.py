"""`backfill evidence`: verify the evidence of a plan, sum it up, write it again, and read its release notes."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.cli.exits import FAILED
from backfill_assets.cli.lazy_commands import Helping
from backfill_assets.cli.options import AsJson, PlanId, refuse_together
from backfill_assets.cli.output import print_json, say, writing
from backfill_assets.errors import RequestError
from backfill_assets.evidence.summary import NoEvidenceError, summary
from backfill_assets.evidence.verify import verify as verified
from backfill_assets.intervals.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.cli.operating import Operating

# What opens the project is imported by the verbs that need it: evidence is verified without.

app = typer.Typer(cls=Helping, add_completion=False, rich_markup_mode=None)


@app.callback()
def evidence() -> None:
    """Verify, sum up or write again the evidence of a plan, and read its release notes."""


@app.command()
def verify(
    folder: Annotated[
        Path, typer.Argument(help="Folder of one plan, or a folder with several plans.")
    ],
    as_json: AsJson = False,
) -> None:
    """Find every changed byte and every missing file of evidence; neither state nor Spark is needed.

    Given the folder of several plans, the chain of their manifests is verified as well.

    Exit code: 0 when the evidence is unchanged and complete, 1 when something was changed or is missing, or is INCOMPLETE.

    Example: backfill evidence verify data/evidence

    Example: backfill evidence verify data/evidence/p1a2b3c4d5 --json
    """
    try:
        result = verified(folder)
    except OSError as error:
        raise _unreadable(folder, error.strerror or str(error)) from error
    if as_json:
        print_json(
            {
                "plans": result.plans,
                "files": result.files,
                "last_manifest": result.last,
                "findings": [
                    {"trouble": each.trouble.value, "path": each.path, "text": each.text}
                    for each in result.findings
                ],
            }
        )
    else:
        for each in result.findings:
            say(f"{each.trouble.value}  {each.path}: {each.text}", indent=2)
        say(
            f"{counted(len(result.findings), 'finding')} in {counted(result.files, 'file')} of "
            f"{counted(result.plans, 'plan')}; last manifest {result.last or 'none'}"
        )
    if result.findings:
        raise typer.Exit(FAILED)


@app.command()
def show(
    plan: Annotated[
        str, typer.Argument(help="Plan id, a file of `plan --out`, or the folder of its evidence.")
    ],
    as_json: AsJson = False,
) -> None:
    """Show in ten lines the changes, the consumers, the passed checks, who accepted the plan, and how to go back.

    Given a folder, only the folder is read: neither state nor Spark is needed.

    Example: backfill evidence show p1a2b3c4d5

    Example: backfill evidence show /mnt/audit/p1a2b3c4d5
    """
    folder = Path(plan) if Path(plan).is_dir() else _folder_of(plan)
    try:
        lines = summary(folder)
    except NoEvidenceError as error:
        raise _unreadable(folder, str(error)) from error
    if as_json:
        print_json({"folder": str(folder), "lines": list(lines)})
        return
    for line in lines:
        say(line, indent=10)


@app.command()
def write(plan: PlanId, as_json: AsJson = False) -> None:
    """Write the evidence of a plan from the state: the same bytes, unless something has happened since.

    Example: backfill evidence write p1a2b3c4d5
    """
    from backfill_assets.cli.operating import operating  # noqa: PLC0415 - see above
    from backfill_assets.cli.stored_plans import kept_plan  # noqa: PLC0415
    from backfill_assets.engine.review.evidence import location_of, write_again  # noqa: PLC0415

    with operating() as at:
        plan_id = kept_plan(at.store, plan).plan_id
        write_again(at, plan_id)
        last, where = at.store.evidence.of_plan(plan_id)[-1], location_of(at, plan_id)
    if as_json:
        print_json(
            {"plan_id": plan_id, "ended": last.ended, "evidence": where, "sha256": last.sha256}
        )
        return
    say(f"Evidence: {where}")
    say(f"{plan_id}: {last.ended}, place {last.place} of the chain, manifest {last.sha256}")


@app.command()
def note(
    plan: PlanId,
    consumer: Annotated[
        str | None,
        typer.Option(help="Only changes that concern this consumer, by its declared name."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the release note of a plan, for all or for one consumer, as Markdown.

    Which dates changed and why, which comparisons straddle the change, what to refresh, what was tested, how to go back.

    Example: backfill evidence note p1a2b3c4d5

    Example: backfill evidence note p1a2b3c4d5 --consumer "weekly report"
    """
    from backfill_assets.cli.operating import looking  # noqa: PLC0415 - see above
    from backfill_assets.cli.stored_plans import kept_plan  # noqa: PLC0415
    from backfill_assets.engine.review.evidence import facts_of  # noqa: PLC0415
    from backfill_assets.engine.review.release_note import release_note  # noqa: PLC0415
    from backfill_assets.planning.review.release_note import (  # noqa: PLC0415
        for_consumer,
        note_text,
    )

    with looking() as at:
        plan_id = kept_plan(at.store, plan).plan_id
        made = release_note(facts_of(at, plan_id))
    text = note_text(made if consumer is None else for_consumer(made, consumer))
    if as_json:
        names = list(dict.fromkeys(reader.consumer for reader in made.consumers))
        print_json({"plan_id": plan_id, "consumer": consumer, "concerns": names, "note": text})
        return
    typer.echo(text, nl=False)


@app.command()
def report(
    plan: Annotated[
        str, typer.Argument(help="Plan id, a file of `plan --out`, or the folder of its evidence.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Where to write the page; PLAN.html unless given."
        ),
    ] = None,
    markdown: Annotated[
        bool,
        typer.Option("--markdown", help="Print it in short, as the comment of a pull request."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the report of a plan as one HTML file, without network or scripts.

    The verdict comes first: what changed, whether it is right, who agreed, how to go back. Then what was expected beside what was
    found, cells over time, sums before and after, audits, consumers, approvals, and what it took. A plan that is not
    published yet has a report, too.

    Example: backfill evidence report p1a2b3c4d5 --out report.html

    Example: backfill evidence report p1a2b3c4d5 --markdown
    """
    from backfill_assets.render.report.content import Report  # noqa: PLC0415 - see above
    from backfill_assets.render.report.page import report_comment, report_html  # noqa: PLC0415

    refuse_together(markdown=markdown, out=out)
    refuse_together(markdown=markdown, json=as_json)
    parts, lacks = _parts_of(plan)
    content = Report(parts)
    with _reading(Path(plan)):
        name, verdict, ended = content.plan.get("plan_id", plan), content.verdict, content.ended
        text = report_comment(parts) if markdown else report_html(parts, lacks)
    if markdown:
        typer.echo(text, nl=False)
        return
    file = out or Path(f"{name}.html")
    with writing(file):
        file.write_text(text, encoding="utf-8")
    if as_json:
        print_json({"plan_id": name, "ended": ended, "verdict": verdict, "file": str(file)})
        return
    say(f"{name}: {verdict}")
    say(f"Report: {file}")


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Tell of parts in a folder that are damaged, whatever that raises; what the state gives is not."""
    try:
        yield
    except Exception as error:
        if not folder.is_dir():
            raise
        raise _unreadable(folder, f"{type(error).__name__}: {error}") from error


def _parts_of(plan: str) -> tuple[dict[str, bytes], dict[str, str]]:
    """Read the parts of a folder, or make those of a plan as it stands."""
    folder = Path(plan)
    if folder.is_dir():
        try:
            parts = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
        except OSError as error:
            raise _unreadable(folder, error.strerror or str(error)) from error
        if "timeline.json" not in parts:
            raise _unreadable(folder, "timeline.json is missing")
        return parts, {}
    from backfill_assets.cli.operating import looking  # noqa: PLC0415 - see above
    from backfill_assets.cli.stored_plans import kept_plan  # noqa: PLC0415
    from backfill_assets.engine.review.evidence import facts_of  # noqa: PLC0415
    from backfill_assets.engine.review.parts import made_parts  # noqa: PLC0415

    with looking() as at:
        return made_parts(facts_of(at, kept_plan(at.store, plan).plan_id))


def told_evidence(at: Operating, plan_id: str) -> str:
    """Say where a plan has left its evidence, or that it is not written yet."""
    from backfill_assets.engine.review.evidence import location_of  # noqa: PLC0415 - see above

    records = at.store.evidence.of_plan(plan_id)
    if records and records[-1].written:
        return f"Evidence: {location_of(at, plan_id)}"
    return f"Evidence is not complete; `backfill evidence write {plan_id}` writes it"


def _folder_of(plan: str) -> Path:
    from backfill_assets.cli.operating import looking  # noqa: PLC0415 - see above
    from backfill_assets.cli.stored_plans import kept_plan  # noqa: PLC0415
    from backfill_assets.engine.review.evidence import location_of  # noqa: PLC0415

    with looking() as at:
        stored = kept_plan(at.store, plan)
        plan_id = stored.plan_id
        if not any(record.written for record in at.store.evidence.of_plan(plan_id)):
            raise RequestError(
                found=f"no evidence of plan {plan_id} is written yet; the plan is {stored.status.value}",
                do=f"it is written when a plan ends; `backfill evidence write {plan_id}` writes it from the state",
            )
        where = location_of(at, plan_id)
    if "://" in where:
        raise RequestError(
            found=f"the evidence lies in {where}", do="copy it to a folder, and name that"
        )
    return Path(where)


def _unreadable(folder: Path, problem: str) -> RequestError:
    return RequestError(
        found=f"{folder} holds no evidence of a plan that can be read ({problem})",
        do="name the folder of a plan below `evidence` in the data folder; `backfill evidence verify FOLDER` "
        "names each damaged file, and `backfill evidence write PLAN` writes all of them from the state",
    )
