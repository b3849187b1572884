"""What the report of a plan says, read from the parts of its evidence."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from backfill_assets.evidence.manifest import EXPIRED, REFUSED, STOPPED, UNFINISHED, WATCHED
from backfill_assets.intervals.text import counted
from backfill_assets.planning.review.release_note import KNOWN
from backfill_assets.snapshots.stored_plan import PlanStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Json = dict[str, Any]
_COMMAND = "    backfill "
_NAMED = 3


class Tone(StrEnum):
    """How a verdict is to be taken; the words of the verdict say the same."""

    GOOD = "good"
    BAD = "bad"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Finding:
    """One expectation beside what was found.

    Attributes:
        model: of which model.
        expected: in words.
        found: in words; empty while nothing was compared.
        by: who expects it: ``strategy``, ``planner`` or a person.
        word: ``holds``, ``does not hold``, ``accepted``, ``warning`` or ``not compared yet``.
        accepted: by whom and why.
    """

    model: str
    expected: str
    found: str
    by: str
    word: str
    accepted: str = ""

    @property
    def stops(self) -> bool:
        """Whether it keeps the plan from being published."""
        return self.word == "does not hold"


@dataclass(frozen=True, slots=True)
class Series:
    """The sum of one column, cell by cell, before and after.

    Attributes:
        column: its name.
        changed: rows of both sides in which it differs.
        old: sums before, one a cell; empty unless it has a sum in every cell, before and after.
        new: sums after.
        old_filled: rows before in which it is not NULL.
        new_filled: rows after in which it is not NULL.
    """

    column: str
    changed: int
    old: tuple[Decimal, ...]
    new: tuple[Decimal, ...]
    old_filled: int
    new_filled: int

    @property
    def has_sums(self) -> bool:
        """Whether it has numbers that can be drawn."""
        return bool(self.old)

    @property
    def change(self) -> str:
        """By how much the sum changes, in percent."""
        before, after = sum(self.old), sum(self.new)
        if not before:
            return "from 0" if after else "+0.00%"
        return f"{(after - before) / abs(before):+.2%}"


@dataclass(frozen=True)
class ModelDifference:
    """Old against new of one model.

    Attributes:
        model: its name.
        found: the model's entry in `diff.json`.
    """

    model: str
    found: Json

    @property
    def cells(self) -> list[str]:
        """The partition keys of the cells that were compared."""
        return self.found["cells"]

    @property
    def compared(self) -> bool:
        """Whether any cell was compared."""
        return bool(self.cells)

    @property
    def differs(self) -> bool:
        """Whether any published cell does, by its checksums."""
        return bool(self.found.get("differing_cells"))

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """By cell, the share of rows that differ: 0 for an equal cell, at most 1."""
        parts = [self.found[name] for name in ("keys_added", "keys_removed", "rows_changed")]
        rows = zip(self.found["old_rows"], self.found["new_rows"], strict=True)
        return tuple(
            min(1.0, sum(counts) / max(*both, 1))
            for counts, both in zip(zip(*parts, strict=True), rows, strict=True)
        )

    def total(self, name: str) -> int:
        """Sum a count over all cells that were compared."""
        return sum(self.found.get(name, ()))

    @cached_property
    def series(self) -> tuple[Series, ...]:
        """The columns that differ, those with most changed rows first."""
        columns = [_series(name, numbers) for name, numbers in self.found["columns"].items()]
        return tuple(sorted(columns, key=lambda series: (-series.changed, series.column)))


@dataclass(frozen=True)
class Report:
    """What a report says of a plan.

    Attributes:
        parts: the parts of its evidence, by the name of their file.
    """

    parts: Mapping[str, bytes]

    def read(self, name: str) -> Json:
        """Read a part; empty where evidence lacks it."""
        return json.loads(self.parts[name]) if name in self.parts else {}

    def text(self, name: str) -> str:
        """Read a part that is text; empty where evidence lacks it."""
        return self.parts[name].decode() if name in self.parts else ""

    @cached_property
    def plan(self) -> Json:
        """The plan's own line of the timeline."""
        return self.read("timeline.json").get("plan", {})

    @cached_property
    def events(self) -> Sequence[Json]:
        """What happened to it, the earliest first."""
        return self.read("timeline.json").get("events", [])

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The known differences of its release note: cells that keep an old definition are among them."""
        _, heading, after = self.text("release_note.md").partition(f"## {KNOWN}\n")
        section = after.partition("\n## ")[0] if heading else ""
        return tuple(line.removeprefix("- ") for line in section.splitlines() if line)

    @cached_property
    def failures(self) -> Sequence[Json]:
        """The attempts of batches that failed."""
        return [batch for batch in self.read("timeline.json").get("batches", []) if batch["error"]]

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Each expectation beside what was found: expectations that do not hold come first."""
        checks = self.read("audits.json").get("checks", [])
        named = {(check["model"], check["check"]) for check in checks}
        rules = self.read("contract.json").get("rules", [])
        findings = [
            *map(_checked, checks),
            *(
                Finding(rule["model"], rule["rule"], "", rule["decided_by"], "not compared yet")
                for rule in rules
                if (rule["model"], rule["rule"]) not in named
            ),
        ]
        return tuple(sorted(findings, key=lambda finding: not finding.stops))

    @cached_property
    def models(self) -> tuple[ModelDifference, ...]:
        """Old against new, model by model."""
        entries = self.read("diff.json").get("models", [])
        return tuple(ModelDifference(entry["model"], entry) for entry in entries)

    @cached_property
    def definitions(self) -> Sequence[Json]:
        """The models whose definition differs."""
        return [model for model in self.read("model_diffs.json").get("models", []) if model["diff"]]

    @cached_property
    def publication(self) -> Json | None:
        """What its promotion moved; None while nothing is published."""
        publications = [
            publication
            for publication in self.read("outputs.json").get("publications", [])
            if publication["kind"] == "promote"
        ]
        return publications[-1] if publications else None

    @cached_property
    def audits(self) -> Counter[str]:
        """How many results of committed batches and of kept cells passed, and how many failed, by severity."""
        audits = self.read("audits.json")
        results = [
            *(result for result in audits.get("batches", []) if result["committed"]),
            *(audit for event in audits.get("kept_cells", []) for audit in event["audits"]),
        ]
        return Counter(
            "passed" if result["passed"] else str(result["severity"]) for result in results
        )

    @cached_property
    def failed_audits(self) -> Sequence[Json]:
        """The results that failed, also of attempts that were not committed."""
        batches = self.read("audits.json").get("batches", [])
        return [result for result in batches if not result["passed"]]

    @cached_property
    def consumers(self) -> Sequence[Json]:
        """Whom it concerns."""
        return self.read("consumers.json").get("consumers", [])

    @cached_property
    def results(self) -> Sequence[Json]:
        """The registered results that rest on what it changes."""
        return self.read("consumers.json").get("results", [])

    @cached_property
    def answers(self) -> Sequence[Json]:
        """What consumers have answered."""
        return self.read("consumers.json").get("answers", [])

    @cached_property
    def signatures(self) -> Sequence[Json]:
        """What principals have signed about it."""
        return self.read("approvals.json").get("signed", [])

    @cached_property
    def accepted(self) -> Sequence[Json]:
        """The differences that people have accepted."""
        return self.read("contract.json").get("accepted", [])

    @cached_property
    def way_back(self) -> tuple[str, ...]:
        """The commands that take it back."""
        lines = self.text("way_back.md").splitlines()
        return tuple(line.strip() for line in lines if line.startswith(_COMMAND))

    @property
    def ended(self) -> str:
        """How it ended, or where it stands."""
        return self.plan.get("ended", "unknown")

    @property
    def holds(self) -> bool:
        """Whether nothing that was looked at keeps it from being published."""
        return not any(finding.stops for finding in self.findings) and not self.audits["blocking"]

    @property
    def tone(self) -> Tone:
        """How the verdict is to be taken."""
        if not self.holds or self.plan.get("why") or self.ended in _BAD:
            return Tone.BAD
        return Tone.GOOD if self.ended in _GOOD else Tone.OPEN

    @property
    def verdict(self) -> str:
        """One sentence: where the plan stands, and whether what it built is as expected."""
        stands = _STANDS.get(self.ended, self.ended.capitalize())
        stopped = [finding for finding in self.findings if finding.stops]
        if stopped:
            names = "; ".join(f"{each.model}: {each.expected}" for each in stopped[:_NAMED])
            more = f"; and {len(stopped) - _NAMED} more" if len(stopped) > _NAMED else ""
            word = "expectation does" if len(stopped) == 1 else "expectations do"
            return f"{stands}. {len(stopped)} {word} not hold: {names}{more}."
        if self.ended == STOPPED and self.failures:
            failed = Counter(batch["model"] for batch in self.failures)
            named = [f"{counted(count, 'attempt')} of {model}" for model, count in failed.items()]
            return f"{stands}. Failed: {', '.join(named[:_NAMED])}."
        if why := self.plan.get("why"):
            return f"{stands}. {why[:1].upper()}{why[1:]}."
        judged = sum(finding.word == "holds" for finding in self.findings)
        warned = sum(finding.word == "warning" for finding in self.findings)
        if not judged:
            return f"{stands}."
        warnings = f", {warned} with a warning" if warned else ""
        word = "expectation holds" if judged == 1 else "expectations hold"
        return f"{stands}. {judged} {word}{warnings}."

    @property
    def changed(self) -> Iterator[str]:
        """What changes for readers, one line a model."""
        if self.publication is not None:
            for model in self.publication["models"]:
                yield _published(model)
            return
        for model in self.models:
            yield _built(model)

    @property
    def why(self) -> str:
        """Why it was asked for or, where that was not said, promoted; empty where no reason was given."""
        reason = self.plan.get("reason") or (self.publication or {}).get("why")
        return reason or ""

    @property
    def until(self) -> str:
        """Until when it can be taken back; empty where that is not known."""
        lines = self.text("way_back.md").splitlines()
        ends = [line.strip(" :") for line in lines if line.startswith("Until ")]
        return ends[0].replace("Until", "until", 1) if ends else ""

    @property
    def agreed(self) -> Iterator[str]:
        """Who agreed."""
        yield f"Asked for by {self.plan.get('created_by') or 'an unnamed person'}"
        if not self.signatures:
            yield "No approval was signed"
        for signed in self.signatures:
            void = f"; void: {signed['void']}" if signed.get("void") else ""
            yield f"{signed['principal']} signed '{signed['act']}' on {minute(signed['at'])}{void}"
        for each in self.accepted:
            yield f"{each['who']} accepted {each['model']}, {each['text']}: {each['reason']}"
        if self.publication is not None:
            who = self.publication["who"] or "an unnamed person"
            yield f"Promoted by {who} on {minute(self.publication['at'])}"


_GOOD = {PlanStatus.PROMOTED.value, WATCHED, UNFINISHED}
_BAD = {REFUSED, STOPPED, EXPIRED}
_STANDS = {
    PlanStatus.PROPOSED.value: "Not built yet",
    PlanStatus.APPLYING.value: "Being built",
    PlanStatus.BUILT.value: "Built, not published",
    PlanStatus.PROMOTED.value: "Published",
    WATCHED: "Published, and watched",
    UNFINISHED: "About to be published",
    STOPPED: "Not published: not all of it is built",
    REFUSED: "Not published: refused",
    PlanStatus.ABANDONED.value: "Abandoned; nothing was published",
    EXPIRED: "Expired; nothing was published",
    PlanStatus.ROLLED_BACK.value: "Published, and rolled back since",
    PlanStatus.UNDONE.value: "Published, and undone since",
}


def _checked(check: Json) -> Finding:
    word = "holds" if check["passed"] else "does not hold"
    if not check["passed"] and check["accepted"]:
        word = "accepted"
    elif not check["passed"] and not check["blocking"]:
        word = "warning"
    return Finding(
        check["model"], check["check"], check["text"], check["decided_by"], word, check["accepted"]
    )


def _series(name: str, numbers: Json) -> Series:
    sums = [numbers["old_sum"], numbers["new_sum"]]
    drawn = all(value is not None for side in sums for value in side)
    old, new = (tuple(map(Decimal, side)) if drawn else () for side in sums)
    filled = (sum(numbers["old_filled"]), sum(numbers["new_filled"]))
    return Series(name, sum(numbers["changed"]), old, new, *filled)


def _published(model: Json) -> str:
    columns = model["differing_columns"]
    where = f" in {', '.join(columns)}" if columns else ""
    gone = model.get("gone")
    if model["after"] is None:
        return f"{model['model']}: removed; readers have it no more"
    if not (model["published_cells"] or gone):
        return f"{model['model']}: pointers and descriptions alone"
    cells = f": {ranges(model['differ'])}" if model["differ"] else ""
    return (
        f"{model['model']}: {model['differing_cells']:,} of {counted(model['published_cells'], 'cell')} "
        f"differ{where}{cells}{f'; no longer published: {ranges(gone)}' if gone else ''}"
    )


def _built(model: ModelDifference) -> str:
    if not model.compared:
        return by_checksums(model, published=False)
    counts = [
        f"{counted(model.total(name), 'row')} {word}"
        for name, word in (
            ("rows_changed", "changed"),
            ("keys_added", "added"),
            ("keys_removed", "removed"),
        )
        if model.total(name)
    ]
    differing = sum(share > 0 for share in model.shares)
    text = f"{model.model}: {differing:,} of {counted(len(model.cells), 'compared cell')} differ"
    return f"{text}: {', '.join(counts)}" if counts else text


def by_checksums(model: ModelDifference, *, published: bool) -> str:
    """Say what is known of a model whose rows were not compared."""
    if not model.differs:
        return f"{model.model}: no published cell is known to differ, and no rows were compared"
    columns = model.found["differing_columns"]
    where = f" in {', '.join(columns)}" if columns else ""
    cells = counted(model.found["differing_cells"], "published cell")
    differ = "would differ"
    if published:
        differ = "differs" if model.found["differing_cells"] == 1 else "differ"
    return f"{model.model}: {cells} {differ}{where}: {ranges(model.found['differing'])}"


def ranges(names: Sequence[str]) -> str:
    """Name a few ranges, and how many more there are."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more ranges" if more > 0 else "")


def minute(instant: str | None) -> str:
    """Write an instant of evidence (ISO 8601, UTC) to the minute."""
    return f"{instant[:10]} {instant[11:16]} UTC" if instant else "at an unknown time"
