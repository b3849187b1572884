"""What the protocol does for its safety, one rule each; a broken variant leaves one of them out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of the protocol. All hold, unless a variant says otherwise.

    Attributes:
        compare_and_set: an entry follows directly on the version that its writer has read (`log_entry.write_entry`).
        tokens_checked: a writer whose token the log has passed is refused (`log_entry._opened`).
        lock_exclusive: a lock that a live holder has is waited for (`locks.take_commit_lock`).
        takeover_fenced: whoever takes a lock over writes a fence first (`table_turn.take`).
        reconciled: a holder accounts for every commit that the state does not know (`table_turn.reconcile`).
        restores_counted_whole: what a restore took back counts together with it (`table_turn.reconcile`).
        commit_before_record: a batch is recorded after its entry is in the log (`batch_run._write`).
        audit_before_commit: rows are audited before the entry (`batch_run._write`).
        claims_checked: a batch that lost its claims commits nothing (`commit_turn.commit_turn`).
        overtaken_refused: a batch that a publication has overtaken commits nothing (`overtaking.check_inputs`).
        adopted_refused: a gap fill leaves cells alone that were adopted in its own turn.
        ready_refused: the same of cells that became ready before its turn (`overtaking.check_inputs`).
        birth_fenced: a table that another has only just made is fenced (`commit.prepare_table`).
        strangers_refused: a commit that follows on a stranger's is not recorded (`commit_turn.record`).
        files_checked: an entry names only files that are there (`log_entry.refuse_gone`).
        old_files_refused: a batch that began before the collector's grace commits nothing (`batch_run._write`),
            and joined files neither (`collecting._compacted`).
        tables_closed: an open intent keeps others from its tables (`promotions.check_closed`).
        copies_found: a copy that is in the log already is not made again (`rewriting.rewritten`).
        copies_before_pointers: pointers move after the copies (`publishing._carried_out`).
        pointers_together: all pointers of a publication move in one transaction (`state/publications.publish`).
        intent_checked: only the holder of an open intent moves pointers (`promotions.check_held`).
        stale_refused: a plan whose cells were built again since is not published (`refusals.refuse_stale`).
        promise_checked: under its locks, a way back is still promised (`going_back._prepared`).
        collector_locked: files are deleted by a holder of the table's lock (`collecting._alone`).
        grace_kept: a file that is younger than the grace stays (`collection._old`).
        promises_kept: the files that a promised way back needs stay (`collecting._oldest_needed`).
        pins_kept: the files that a pin needs stay (`collecting._oldest_needed`).
        rests_kept: what a file that goes holds of other cells is written again (`commit.WrittenCells._rest`).
        rests_under_lock: which files go is read from the log's end, under the lock (`log_entry.set_cells`).
        piles_checked: files are joined only where all of them are still named (`log_entry.exchange_files`).
        pins_followed: pins at the head follow a commit that changes no row (`state/locks.follow_head`).
    """

    compare_and_set: bool = True
    tokens_checked: bool = True
    lock_exclusive: bool = True
    takeover_fenced: bool = True
    reconciled: bool = True
    restores_counted_whole: bool = True
    commit_before_record: bool = True
    audit_before_commit: bool = True
    claims_checked: bool = True
    overtaken_refused: bool = True
    adopted_refused: bool = True
    ready_refused: bool = True
    birth_fenced: bool = True
    strangers_refused: bool = True
    files_checked: bool = True
    old_files_refused: bool = True
    tables_closed: bool = True
    copies_found: bool = True
    copies_before_pointers: bool = True
    pointers_together: bool = True
    intent_checked: bool = True
    stale_refused: bool = True
    promise_checked: bool = True
    collector_locked: bool = True
    grace_kept: bool = True
    promises_kept: bool = True
    pins_kept: bool = True
    rests_kept: bool = True
    rests_under_lock: bool = True
    piles_checked: bool = True
    pins_followed: bool = True


SAFE = Rules()
