"""Write the report of a plan: one HTML file without network or scripts, or the comment of a pull request."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from backfill_assets.intervals.text import counted
from backfill_assets.render.plan_words import bytes_text
from backfill_assets.render.report import pictures
from backfill_assets.render.report.content import Report, by_checksums, minute, ranges
from backfill_assets.render.templates import templates

if TYPE_CHECKING:
    from collections.abc import Mapping


def report_html(parts: Mapping[str, bytes], lacks: Mapping[str, str]) -> str:
    """Write the page.

    Args:
        parts: the parts of the plan's evidence, by the name of their file.
        lacks: the parts that could not be made, and why.
    """
    report = Report(parts)
    more = {"heat": pictures.heatmap(report.models), "plot": pictures.plot, "lacks": lacks}
    return _written("page.html.jinja", report, more)


def report_comment(parts: Mapping[str, bytes]) -> str:
    """Write the same in short, as Markdown."""
    return _written("comment.md.jinja", Report(parts), {})


def _written(template: str, report: Report, more: Mapping[str, Any]) -> str:
    return (
        templates()
        .get_template(f"report/{template}")
        .render(
            report=report,
            plan_id=report.plan.get("plan_id", ""),
            changed=[*report.changed],
            agreed=[*report.agreed],
            findings_line=_findings_line(report),
            audits_line=_audits_line(report),
            cost=_cost(report),
            reproduce=_reproduce(report),
            no_way_back=_no_way_back(report),
            ranges=ranges,
            by_checksums=by_checksums,
            counted=counted,
            minute=minute,
            number=pictures.number,
            values=_values,
            cell=_table_cell,
            **more,
        )
    )


_PLURALS = {
    "holds": "met",
    "does not hold": "not met",
    "accepted": "not met, and accepted",
    "warning": "not met, which only warns",
    "not compared yet": "not compared yet",
}


def _findings_line(report: Report) -> str:
    if not report.findings:
        return "The plan has no expectation that could be compared."
    counts = [
        (sum(finding.word == word for finding in report.findings), plural)
        for word, plural in _PLURALS.items()
    ]
    counts_text = ", ".join(f"{count:,} {plural}" for count, plural in counts if count)
    return f"{counted(len(report.findings), 'expectation')}: {counts_text}."


def _audits_line(report: Report) -> str:
    results = report.audits
    lost = sum(not result["committed"] for result in report.failed_audits)
    names = dict.fromkeys(
        result["audit"] for result in report.failed_audits if not result["committed"]
    )
    uncommitted = f"{counted(lost, 'result')} failed ({ranges([*names])}), and nothing of these batches was committed."
    if not results.total():
        return uncommitted if lost else "No audit has run."
    failed = [
        f"{counted(results[word], f'{word} result')} failed"
        for word in ("blocking", "warning")
        if results[word]
    ]
    passed = f"{results['passed']:,} of {counted(results.total(), 'audit result')} passed"
    return f"{'; '.join((passed, *failed))}."


def _cost(report: Report) -> str:
    costs = report.read("estimate.json")
    actual, estimate = costs.get("actual"), costs.get("estimate")
    if not actual:
        return "Nothing was measured."
    took = (
        f"{actual['seconds'] or 0:,.0f} s, {counted(actual['batches'], 'batch', 'batches')}, "
        f"{counted(actual['rows'], 'row')}, {bytes_text(actual['bytes_written'])} written, "
        f"{counted(actual['failed'], 'failed attempt')}."
    )
    if not estimate:
        return f"It took {took} Nothing was estimated."
    half, most = estimate["seconds"]
    return f"It took {took} Estimated: {half:,.0f} s (P50), {most:,.0f} s (P90)."


def _reproduce(report: Report) -> list[str]:
    plan_id = report.plan.get("plan_id", "")
    differing = (
        (model.model, name)
        for model in report.models
        if model.compared
        for name, share in zip(model.cells, model.shares, strict=True)
        if share
    )
    if report.publication is None:
        return [f"backfill show {plan_id} -v", f"backfill diff {plan_id}"]
    by_checksums = (
        (model["model"], stretch.partition("..")[0].partition(" ")[0])
        for model in report.publication["models"]
        for stretch in model["differ"]
    )
    first = next(chain(differing, by_checksums), None)
    replayed = [f"backfill replay {first[0]} {first[1]}"] if first else []
    return [*replayed, f"backfill evidence verify evidence/{plan_id}"]


def _no_way_back(report: Report) -> str:
    if report.publication is None:
        return "Nothing is published, so there is nothing to go back from."
    return "It was taken back already, or can no longer be taken back."


def _values(row: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name}={'NULL' if value is None else value}" for name, value in row.items())


def _table_cell(text: str) -> str:
    """Write a text so that Markdown takes it as text."""
    for sign in ("\\", "|", "`", "*", "_", "[", "<", "@"):
        text = text.replace(
            sign, f"\\{sign}" if sign not in "<@" else {"<": "&lt;", "@": "&#64;"}[sign]
        )
    return " ".join(text.split())
