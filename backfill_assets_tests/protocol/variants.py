"""Protocols that lack a rule: each must be caught, by the invariant that the rule is there for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from backfill_assets_tests.protocol.explorer import explore
from backfill_assets_tests.protocol.happenings import system
from backfill_assets_tests.protocol.invariants import (
    FILES,
    GAPS,
    MIXTURE,
    NEWER,
    ONCE,
    PINS,
    READER,
    REST,
    ZOMBIE,
)
from backfill_assets_tests.protocol.rules import SAFE
from backfill_assets_tests.protocol.scenarios import (
    AUDITED_GAP,
    COLLECT,
    GAP,
    INTRUDE,
    OTHER_GAP,
    OTHER_REFRESH,
    PILED,
    PROMOTE,
    REFRESH,
    ROLLBACK,
    SHARED,
    Scenario,
)

if TYPE_CHECKING:
    from backfill_assets_tests.protocol.explorer import Explored


@dataclass(frozen=True, slots=True)
class Variant:
    """A protocol that lacks rules, and what shows it.

    Attributes:
        name: what is wrong with it.
        lacks: the names of the rules.
        scenario: in which it shows.
        caught_by: the invariant that does not hold.
    """

    name: str
    lacks: tuple[str, ...]
    scenario: Scenario
    caught_by: str

    def explored(self) -> Explored:
        """Explore it up to its first violation."""
        rules = replace(SAFE, **dict.fromkeys(self.lacks, False))
        return explore(system(self.scenario.world(), rules))

    def is_caught(self, found: Explored) -> bool:
        """Whether the invariant that was expected is the one that does not hold."""
        return (found.violation or "").startswith(self.caught_by)


_ASLEEP = Scenario("two fills of a cell", ((OTHER_GAP,), (OTHER_GAP,)), lapses=1)
_DYING = replace(_ASLEEP, lapses=0, crashes=1)
_NEW = Scenario("two fills of a new table", ((AUDITED_GAP,), (GAP,)), published=False, lapses=1)
_OVERTAKEN = Scenario("a refresh and a promotion", ((REFRESH,), (PROMOTE,)))
_COLLECTED = Scenario("a collection and a fill", ((COLLECT,), (OTHER_GAP,)), days=1)
_TWICE = Scenario("two promotions of a plan", ((PROMOTE,), (PROMOTE,)), crashes=1)
_BACK = Scenario(
    "a collection, a promotion and its rollback",
    ((COLLECT,), (PROMOTE, ROLLBACK)),
    lapses=1,
    days=1,
    expiries=1,
)
_JOINED = Scenario(
    "two collections that join files", ((COLLECT,), (COLLECT,)), lapses=1, days=1, block=PILED
)

BROKEN = (
    Variant("an entry lands wherever the log ends", ("compare_and_set",), _ASLEEP, ZOMBIE),
    Variant("the token in the log is not looked at", ("tokens_checked",), _ASLEEP, ZOMBIE),
    Variant("a lock that was taken over is not fenced", ("takeover_fenced",), _ASLEEP, ZOMBIE),
    Variant(
        "a lock that a live holder has is taken, without a fence",
        ("lock_exclusive", "takeover_fenced"),
        Scenario("fills of two cells", ((REFRESH,), (OTHER_GAP,))),
        ZOMBIE,
    ),
    Variant("what the last holder left is not reconciled", ("reconciled",), _DYING, REST),
    Variant(
        "a batch is recorded before its entry is made", ("commit_before_record",), _DYING, READER
    ),
    Variant(
        "rows are audited after their entry is made",
        ("audit_before_commit",),
        replace(_NEW, lapses=0, crashes=1),
        READER,
    ),
    Variant(
        "claims are not looked at before the entry",
        ("claims_checked",),
        replace(_ASLEEP, programs=((REFRESH,), (REFRESH,))),
        NEWER,
    ),
    Variant(
        "a batch commits what a publication overtook", ("overtaken_refused",), _OVERTAKEN, NEWER
    ),
    Variant("a plan is published over newer cells", ("stale_refused",), _OVERTAKEN, NEWER),
    Variant(
        "an unfinished publication leaves its tables open",
        ("tables_closed",),
        replace(_OVERTAKEN, crashes=1),
        NEWER,
    ),
    Variant("a gap fill overwrites what was adopted", ("adopted_refused",), _DYING, GAPS),
    Variant(
        "a commit after a stranger's is recorded",
        ("strangers_refused",),
        Scenario("a fill and a stranger", ((OTHER_GAP,), (INTRUDE,))),
        READER,
    ),
    Variant("a fill names files that may be gone", ("files_checked",), _COLLECTED, FILES),
    Variant(
        "a rollback names files that may be gone",
        ("files_checked", "promise_checked"),
        replace(_BACK, lapses=0),
        FILES,
    ),
    Variant("a copy is made again by who finishes", ("copies_found",), _TWICE, ONCE),
    Variant(
        "pointers move before the copies",
        ("copies_before_pointers",),
        Scenario("a promotion", ((PROMOTE,),)),
        READER,
    ),
    Variant(
        "pointers move one by one",
        ("pointers_together",),
        Scenario("a promotion of two tables", ((PROMOTE,),), tables=2),
        MIXTURE,
    ),
    Variant(
        "whoever once began a publication moves pointers",
        ("intent_checked",),
        replace(_TWICE, programs=((PROMOTE,), (PROMOTE, ROLLBACK)), crashes=0, lapses=1),
        PINS,
    ),
    Variant("files are deleted without the lock", ("collector_locked",), _COLLECTED, FILES),
    Variant(
        "files that no log names go at once", ("grace_kept",), replace(_COLLECTED, lapses=1), FILES
    ),
    Variant(
        "files that a way back needs are deleted",
        ("promises_kept",),
        Scenario("a promotion and a collection", ((PROMOTE,), (COLLECT,)), days=1),
        FILES,
    ),
    Variant(
        "files that a pin needs are deleted",
        ("pins_kept",),
        Scenario(
            "a promotion and a collection",
            ((PROMOTE,), (COLLECT,)),
            crashes=1,
            days=1,
            expiries=1,
        ),
        FILES,
    ),
    Variant(
        "a gap fill does not look whether its cells became ready before its turn",
        ("ready_refused",),
        _ASLEEP,
        GAPS,
    ),
    Variant(
        "a table that a silent writer makes after a takeover is not fenced",
        ("birth_fenced",),
        replace(_NEW, programs=((GAP,), (GAP,))),
        ZOMBIE,
    ),
    Variant(
        "a batch commits files that are older than the collector's grace",
        ("old_files_refused",),
        replace(_COLLECTED, lapses=1),
        FILES,
    ),
    Variant(
        "a rollback does not look under its locks whether it is still promised",
        ("promise_checked",),
        _BACK,
        FILES,
    ),
    Variant(
        "a file goes with all that it holds of other cells",
        ("rests_kept",),
        Scenario("a fill of a shared file", ((REFRESH,),), block=SHARED),
        READER,
    ),
    Variant(
        "what is left of a file is what was there before the lock was taken",
        ("rests_under_lock",),
        Scenario("fills of a shared file", ((REFRESH,), (OTHER_REFRESH,)), block=SHARED),
        READER,
    ),
    Variant(
        "a joined file stands for others though one of them has gone",
        ("piles_checked",),
        Scenario("a fill and a collection", ((REFRESH,), (COLLECT,)), block=PILED),
        READER,
    ),
    Variant(
        "files are joined into one that is older than the collector's grace",
        ("old_files_refused",),
        _JOINED,
        FILES,
    ),
    Variant(
        "no pin follows when files are joined, and what one needs is deleted",
        ("pins_followed", "pins_kept"),
        replace(_JOINED, lapses=0),
        READER,
    ),
    Variant(
        "commits that were taken back are accounted for one by one",
        ("restores_counted_whole",),
        Scenario("a fill and a stranger", ((OTHER_GAP,), (INTRUDE,)), crashes=2),
        REST,
    ),
)
