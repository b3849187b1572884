"""Evidence that was changed is found and named, by the standard library alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from backfill_assets.evidence.manifest import (
    EXPECTED,
    FORMAT,
    FORMAT_VERSION,
    MANIFEST,
    SEAL,
    UNFINISHED,
    earlier_name,
    json_text,
    seal_of,
    sha256,
)
from backfill_assets.evidence.summary import NoEvidenceError, summary
from backfill_assets.evidence.verify import Finding, Trouble, verify

if TYPE_CHECKING:
    from pathlib import Path

ALL = {name: f"the {name} of a plan, größer\n".encode() for name in EXPECTED}


def left(
    folder: Path,
    plan_id: str,
    place: int | None,
    previous: dict[str, Any] | None = None,
    files: dict[str, bytes] = ALL,
    **said: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """Leave a plan's evidence, and give what the next one names of it."""
    at = folder / plan_id
    at.mkdir(parents=True, exist_ok=True)
    listed = {name: {"sha256": sha256(text), "bytes": len(text)} for name, text in files.items()}
    told = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "plan_id": plan_id,
        "ended": "promoted",
        "place": place,
        "previous": previous,
        "lacks": {},
        "files": listed,
        **said,
    }
    manifest = json_text(told).encode()
    for name, text in {**files, MANIFEST: manifest, SEAL: seal_of(manifest)}.items():
        (at / name).write_bytes(text)
    return {"place": place, "plan_id": plan_id, "sha256": sha256(manifest)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three plans; the first was promoted, and taken back after the second."""
    folder = tmp_path / "evidence"
    first = left(folder, "p1", 1)
    promoted = (folder / "p1" / MANIFEST).read_bytes()
    second = left(folder, "p2", 2, first)
    third = left(folder, "p1", 3, second, {**ALL, earlier_name(1): promoted}, ended="undone")
    left(folder, "p3", 4, third)
    return folder


def troubles(folder: Path) -> list[tuple[Trouble, str]]:
    return [(found.trouble, found.path) for found in verify(folder).findings]


def test_evidence_as_it_was_written_has_no_finding(root: Path):
    found = verify(root)

    assert (found.plans, found.findings) == (3, ())
    assert found.last == sha256((root / "p3" / MANIFEST).read_bytes())
    assert verify(root / "p1").findings == ()


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_byte_that_is_flipped_is_found_and_its_file_named(root: Path, data: st.DataObject):
    files = sorted(file for file in root.rglob("*") if file.is_file())
    file = data.draw(st.sampled_from(files))
    content = file.read_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    flipped = bytearray(content)
    flipped[at] ^= data.draw(st.integers(1, 255))
    for folder in (root, file.parent):
        file.write_bytes(bytes(flipped))
        try:
            named = [str(found) for found in map(_words, verify(folder).findings)]
        finally:
            file.write_bytes(content)
        assert any(file.name in found for found in named), named


def _words(found: Finding) -> str:
    return f"{found.trouble} {found.path} {found.text}"


def test_a_file_that_was_added_and_one_that_is_missing_are_named(root: Path):
    (root / "p2" / "forged.json").write_text("{}", encoding="utf-8")
    (root / "p2" / "nested").mkdir()
    (root / "p2" / "nested" / "hidden").write_text("", encoding="utf-8")
    (root / "stray").write_text("", encoding="utf-8")
    (root / "p3" / "audits.json").unlink()

    assert sorted(troubles(root)) == [
        (Trouble.ADDED, "p2/forged.json"),
        (Trouble.ADDED, "p2/nested/hidden"),
        (Trouble.ADDED, "stray"),
        (Trouble.MISSING, "p3/audits.json"),
    ]


@pytest.mark.parametrize("name", [MANIFEST, SEAL])
def test_a_folder_without_its_manifest_or_seal_says_so(root: Path, name: str):
    (root / "p3" / name).unlink()

    assert (Trouble.MISSING, f"p3/{name}") in troubles(root)


def test_a_folder_that_was_made_anew_with_another_content_breaks_the_chain(root: Path):
    before = json.loads((root / "p2" / MANIFEST).read_text(encoding="utf-8"))["previous"]
    left(root, "p2", 2, before, {**ALL, "audits.json": b"all passed\n"})

    assert verify(root / "p2").findings == ()
    (found,) = verify(root).findings
    assert (found.trouble, found.path) == (Trouble.BROKEN_CHAIN, f"p1/{MANIFEST}")
    assert f"p2/{MANIFEST}" in found.text


def test_a_plan_that_is_gone_from_the_middle_of_the_chain_is_named(root: Path):
    shutil.rmtree(root / "p2")

    (found,) = verify(root).findings
    assert found.trouble is Trouble.INCOMPLETE
    assert "of plan p2, is not here" in found.text


def test_two_manifests_at_one_place_break_the_chain(root: Path):
    before = json.loads((root / "p3" / MANIFEST).read_text(encoding="utf-8"))["previous"]
    left(root, "p4", 4, before)

    assert troubles(root) == [(Trouble.BROKEN_CHAIN, f"p4/{MANIFEST}")]


def test_a_manifest_that_names_none_before_it_breaks_the_chain(root: Path):
    left(root, "p3", 4)

    assert troubles(root) == [(Trouble.BROKEN_CHAIN, f"p3/{MANIFEST}")]


def test_a_publication_that_was_only_about_to_begin_is_incomplete(tmp_path: Path):
    left(tmp_path, "p1", None, ended=UNFINISHED)

    (found,) = verify(tmp_path / "p1").findings
    assert found.trouble is Trouble.INCOMPLETE
    assert "backfill evidence write p1" in found.text


def test_a_part_that_no_manifest_lists_is_incomplete_with_its_reason(tmp_path: Path):
    files = {name: text for name, text in ALL.items() if name not in ("plan.md", "audits.json")}
    left(tmp_path, "p1", 1, files=files, lacks={"plan.md": "it can't be read"})

    assert [(found.path, found.text) for found in verify(tmp_path / "p1").findings] == [
        ("./audits.json", "no manifest lists it"),
        ("./plan.md", "it can't be read"),
    ]


def test_an_empty_folder_is_incomplete(tmp_path: Path):
    assert troubles(tmp_path) == [(Trouble.INCOMPLETE, ".")]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": 3}', '{"files": {"a": 1}}', "\x00"])
def test_what_is_no_manifest_is_said_and_never_a_traceback(tmp_path: Path, text: str):
    left(tmp_path, "p1", 1)
    (tmp_path / "p1" / MANIFEST).write_text(text, encoding="utf-8")

    assert (Trouble.CHANGED, f"p1/{MANIFEST}") in troubles(tmp_path)


def test_nothing_heavy_is_imported_to_verify():
    said = (
        "import sys, backfill_assets.cli.verbs.evidence, backfill_assets.evidence.summary\n"
        "heavy = {'pyspark', 'dagster', 'sqlalchemy', 'deltalake', 'pyarrow', 'pandas', 'pydantic', 'sqlglot'}\n"
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_a_folder_without_evidence_can_not_be_summed_up(tmp_path: Path):
    with pytest.raises(NoEvidenceError, match=MANIFEST):
        summary(tmp_path)
