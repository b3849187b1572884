"""Sum up a plan's evidence in ten lines: what changed, who depends on it, what passed, who accepted it, how to go back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from backfill_assets.evidence.manifest import MANIFEST
from backfill_assets.evidence.verify import Trouble, verify

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MODELS, _RANGES, _NAMES = 3, 3, 4
_BACK = "    backfill "


class NoEvidenceError(Exception):
    """A folder holds no evidence of a plan that can be read."""


def summary(folder: Path) -> tuple[str, ...]:
    """Answer, in at most ten lines, what will be asked of a plan later.

    Raises:
        NoEvidenceError: no evidence of a plan can be read there.
    """
    try:
        manifest = _read(folder, MANIFEST)
        outputs, timeline = _read(folder, "outputs.json"), _read(folder, "timeline.json")
        consumers, audits = _read(folder, "consumers.json"), _read(folder, "audits.json")
        contract, signed = _read(folder, "contract.json"), _read(folder, "approvals.json")
        back = (folder / "way_back.md").read_text(encoding="utf-8")
        return (
            _title(manifest, timeline["plan"]),
            *_changed(outputs),
            _depends(consumers),
            _audits(audits),
            *_expected(contract),
            _accepted(timeline, outputs, signed),
            _back(back),
            _sound(folder),
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise NoEvidenceError(f"{type(error).__name__}: {error}") from error


def _read(folder: Path, name: str) -> dict[str, Any]:
    return json.loads((folder / name).read_text(encoding="utf-8"))


def _title(manifest: dict[str, Any], plan: dict[str, Any]) -> str:
    why = f"; {manifest['why']}" if manifest.get("why") else ""
    reason = f": {plan['reason']}" if plan["reason"] else ""
    return (
        f"Plan {manifest['plan_id']} for {manifest['environment']}{reason}. "
        f"{manifest['ended'].capitalize()} on {_minute(manifest['at'])}{why}"
    )


def _changed(outputs: dict[str, Any]) -> Iterator[str]:
    published = [
        publication for publication in outputs["publications"] if publication["kind"] == "promote"
    ]
    if not published:
        yield "Changed   nothing that readers read"
        return
    models = [
        model
        for model in published[-1]["models"]
        if model["published_cells"] or model.get("gone") or model["after"] is None
    ]
    for model in models[:_MODELS]:
        if model["after"] is None:
            yield f"Changed   {model['model']}: removed; readers have it no more"
            continue
        columns = model["differing_columns"]
        where = f" in {_listed(columns)}" if columns else ""
        cells = _listed(model["differ"], _RANGES) or "no cell"
        yield (
            f"Changed   {model['model']}: {cells} ({model['differing_cells']:,} of "
            f"{model['published_cells']:,} cells differ{where}){_gone(model)}"
        )
    if len(models) > _MODELS:
        more = len(models) - _MODELS
        yield f"          and {more:,} more model{'s' * (more > 1)}: outputs.json lists them"
    if not models:
        yield "Changed   no cell; pointers and descriptions alone"


def _gone(model: dict[str, Any]) -> str:
    """Name the cells that readers have lost; evidence of an earlier release counts them as published."""
    gone = model.get("gone")
    return f"; no longer published: {_listed(gone, _RANGES)}" if gone else ""


def _depends(consumers: dict[str, Any]) -> str:
    readers = [
        f"{each['consumer']} ({each['owner']}) on {each['model']}"
        for each in consumers["consumers"]
    ]
    return f"Depend    {_listed(readers) or 'no declared consumer reads what changed'}"


def _audits(audits: dict[str, Any]) -> str:
    done = [result for result in audits["batches"] if result["committed"]]
    passed = sum(result["passed"] for result in done)
    failed = [f"{result['audit']} of {result['model']}" for result in done if not result["passed"]]
    checks = audits["checks"]
    kept = [event for event in audits["kept_cells"] if not event["passed"]]
    lost = {
        f"{result['audit']} of {result['model']}": None
        for result in audits["batches"]
        if not result["committed"] and not result["passed"]
    }
    parts = [f"{passed:,} of {len(done):,} results passed"]
    if lost:
        parts.append(f"failed, and nothing was committed: {_listed([*lost])}")
    if failed:
        parts.append(f"warnings: {_listed(failed)}")
    if checks:
        parts.append(
            f"{sum(check['passed'] for check in checks)} of {len(checks)} checks of the plan"
        )
    if kept:
        parts.append(f"failed on kept cells of {_listed([event['model'] for event in kept])}")
    return f"Audits    {'; '.join(parts)}"


def _expected(contract: dict[str, Any]) -> Iterator[str]:
    """Say whether what was expected was found, and whose word stands for what was not."""
    rules = contract["rules"]
    acceptances = [
        f"{each['check']} of {each['model']} by {each['who']} ({each['reason']})"
        for each in contract["accepted"]
    ]
    compared = [rule for rule in rules if rule["passed"] is not None]
    parts = [f"{sum(rule['passed'] for rule in compared)} of {len(compared)} rules hold"]
    if remaining := len(rules) - len(compared):
        parts.append(f"{remaining} not compared")
    if acceptances:
        parts.append(f"accepted: {_listed(acceptances)}")
    if rules or acceptances:
        yield f"Expected  {'; '.join(parts)}"


def _accepted(timeline: dict[str, Any], outputs: dict[str, Any], signed: dict[str, Any]) -> str:
    given = [each for each in signed["signed"] if each["act"] == "approve"]
    by = [each["principal"] for each in given if not each.get("void")]
    approved = f"; approved, signed, by {_listed(dict.fromkeys(by))}" if by else ""
    requester = timeline["plan"]["created_by"] or "an unnamed person"
    promoted = [
        publication for publication in outputs["publications"] if publication["kind"] == "promote"
    ]
    if not promoted:
        return f"Accepted  by none; asked for by {requester}{approved}"
    last = promoted[-1]
    why = f" ({last['why']})" if last["why"] else ""
    taken = [
        publication for publication in outputs["publications"] if publication["kind"] != "promote"
    ]
    back = f"; taken back by {taken[-1]['who']} on {_minute(taken[-1]['at'])}" if taken else ""
    who = last["who"] or "an unnamed person"
    return f"Accepted  by {who} on {_minute(last['at'])}{why}; asked for by {requester}{approved}{back}"


def _back(text: str) -> str:
    lines = text.splitlines()
    commands = [line.strip() for line in lines if line.startswith(_BACK)]
    if not commands:
        return f"Go back   {lines[-1]}"
    until = next((line.rstrip(":") for line in lines if line.startswith("Until ")), "")
    return f"Go back   {' or '.join(commands)}{f', u{until[1:]}' if until else ''}"


def _sound(folder: Path) -> str:
    result = verify(folder)
    if not result.findings:
        return f"Evidence  as it was written: {result.files} files, manifest {result.last or 'without a place'}"
    lacks = [each for each in result.findings if each.trouble is Trouble.INCOMPLETE]
    word = "INCOMPLETE" if len(lacks) == len(result.findings) else "NOT as it was written"
    first = result.findings[0]
    return f"Evidence  {word}: {first.trouble.value} {first.path}: {first.text}"


def _minute(instant: str) -> str:
    return f"{instant[:10]} {instant[11:16]} UTC"


def _listed(names: Any, limit: int = _NAMES) -> str:  # noqa: ANN401 - any names
    listed = [*names]
    more = len(listed) - limit
    return ", ".join(listed[:limit]) + (f" and {more} more" if more > 0 else "")
