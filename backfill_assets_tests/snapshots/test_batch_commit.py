from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from backfill_assets.models.audit import Severity
from backfill_assets.models.audit_result import AuditResult
from backfill_assets.models.content import Content
from backfill_assets.snapshots.batch import BatchCommit, CommittedCell
from backfill_assets.snapshots.ready import InputPin
from backfill_assets_tests.builders import day

words = st.text(max_size=10)
huge = st.integers(-(10**38), 10**38)

commits = st.builds(
    BatchCommit,
    batch_id=words,
    environment=words,
    model=words,
    version=words,
    fingerprint=words,
    interval=st.integers(1, 28).map(day),
    run_id=words,
    root_id=words,
    plan_id=st.none() | words,
    reason=words,
    attempt=st.integers(1, 9),
    built_at=huge,
    token=huge,
    started_at=st.datetimes(timezones=st.just(UTC)),
    inputs=st.lists(st.builds(InputPin, words, words, words, huge), max_size=2).map(tuple),
    cells=st.lists(
        st.builds(
            CommittedCell,
            st.integers(1, 28).map(day),
            st.builds(Content, huge, huge, st.dictionaries(words, huge, max_size=3)),
        ),
        max_size=3,
    ).map(tuple),
    audits=st.lists(
        st.builds(
            AuditResult,
            audit=words,
            severity=st.sampled_from(Severity),
            passed=st.booleans(),
            found=words,
            allowed=words,
            failing_rows=huge,
            cells=st.lists(words, max_size=2).map(tuple),
            sample=st.lists(words, max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
)


@given(commits)
def test_a_commit_reads_back_from_its_metadata_with_checksums_of_any_size(commit: BatchCommit):
    text = commit.to_json()

    assert BatchCommit.from_json(text) == commit
    assert BatchCommit.from_json(text).to_json() == text  # type: ignore[union-attr]
    assert json.loads(text)["@"] == "BatchCommit"


def test_a_checksum_is_more_than_a_double_can_hold():
    content = Content(1, 10**38 + 1, {"cost": -(10**38) - 1})
    commit = BatchCommit(
        "b", "prod", "a.b", "v", "f", day(1), "r", "r", None, "gap", 1, 2, 3,
        datetime(2024, 1, 1, tzinfo=UTC), (), (CommittedCell(day(1), content),), (),
    )  # fmt: skip

    read = BatchCommit.from_json(commit.to_json())

    assert read is not None
    assert read.cells[0].content == content


@pytest.mark.parametrize(
    "text",
    [None, "", "{}", "made by hand", '{"@":"Other","v":{}}', '{"job": {"@": "BatchCommit"}}'],
)
def test_a_commit_that_is_no_batch_of_ours_is_none(text: str | None):
    assert BatchCommit.from_json(text) is None
