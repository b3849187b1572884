"""Verify evidence: find every byte that was changed since it was written, and say what is missing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from backfill_assets.evidence.manifest import (
    EXPECTED,
    FORMAT,
    FORMAT_VERSION,
    MANIFEST,
    SEAL,
    UNFINISHED,
    is_manifest,
    seal_of,
    sha256,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class Trouble(StrEnum):
    """What is wrong with evidence."""

    CHANGED = "changed"
    MISSING = "missing"
    ADDED = "added"
    BROKEN_CHAIN = "broken chain"
    INCOMPLETE = "INCOMPLETE"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        trouble: what.
        path: the file or folder, relative to what was verified.
        text: what was found, and what was expected.
    """

    trouble: Trouble
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What verifying has found.

    Attributes:
        plans: how many folders of plans were read.
        files: how many files were read.
        findings: what is wrong, by folder; empty where all is as it was written.
        last: the SHA-256 of the last manifest of the chain that was read; empty without any.
    """

    plans: int
    files: int
    findings: tuple[Finding, ...]
    last: str = ""


@dataclass(frozen=True, slots=True)
class _Link:
    """A manifest's place in the chain."""

    where: str
    place: int
    sha256: str
    before: dict[str, Any] | None


def verify(folder: Path) -> Verified:
    """Verify the folder of a plan, or one that holds those of several plans, with the chain.

    Raises:
        OSError: it can't be read.
    """
    folders = [folder] if _is_plan(folder) else sorted(_folders(folder))
    findings: list[Finding] = []
    if folders != [folder]:
        findings += [_stray(file) for file in sorted(folder.iterdir()) if not file.is_dir()]
        if not folders:
            findings.append(Finding(Trouble.INCOMPLETE, ".", "no folder of a plan lies here"))
    for of_plan in folders:
        findings += _in_folder(of_plan, "" if of_plan == folder else f"{of_plan.name}/")
    links = [link for of_plan in folders for link in _links(of_plan, folder)]
    if folders != [folder]:
        findings += _in_chain(links)
    files = sum(sum(file.is_file() for file in of_plan.rglob("*")) for of_plan in folders)
    last = max(links, key=lambda link: link.place).sha256 if links else ""
    return Verified(len(folders), files, tuple(findings), last)


def _is_plan(folder: Path) -> bool:
    named = {file.name for file in folder.iterdir() if file.is_file()}
    return bool(named & {MANIFEST, SEAL, *EXPECTED})


def _folders(folder: Path) -> Iterator[Path]:
    return (inner for inner in folder.iterdir() if inner.is_dir())


def _stray(file: Path) -> Finding:
    return Finding(Trouble.ADDED, file.name, "no plan has left it")


def _in_folder(folder: Path, prefix: str) -> Iterator[Finding]:
    """Hold a folder's files against its manifest."""
    files = {str(file.relative_to(folder)): file for file in folder.rglob("*") if file.is_file()}
    absent = [name for name in (MANIFEST, SEAL) if name not in files]
    yield from (Finding(Trouble.MISSING, prefix + name, "it is not there") for name in absent)
    if MANIFEST not in files:
        return
    text = files[MANIFEST].read_bytes()
    if SEAL in files and files[SEAL].read_bytes() != seal_of(text):
        message = f"{MANIFEST} is not what {SEAL} says: one of the two was changed"
        yield Finding(Trouble.CHANGED, prefix + MANIFEST, message)
    manifest = _manifest(text)
    if manifest is None:
        message = f"it is not a manifest of {FORMAT}, version {FORMAT_VERSION}"
        yield Finding(Trouble.CHANGED, prefix + MANIFEST, message)
        return
    listed: dict[str, dict[str, Any]] = manifest["files"]
    for name in sorted(listed):
        yield from _held(files.get(name), listed[name], prefix + name)
    for name in sorted(files.keys() - listed.keys() - {MANIFEST, SEAL}):
        yield Finding(Trouble.ADDED, prefix + name, f"{MANIFEST} does not list it")
    yield from _lacking(manifest, prefix or "./")


def _held(file: Path | None, listed: dict[str, Any], path: str) -> Iterator[Finding]:
    if file is None:
        yield Finding(Trouble.MISSING, path, f"{MANIFEST} lists it")
        return
    content = file.read_bytes()
    if (sha256(content), len(content)) != (listed.get("sha256"), listed.get("bytes")):
        message = (
            f"found {len(content):,} bytes with SHA-256 {sha256(content)}, "
            f"expected {listed.get('bytes'):,} with {listed.get('sha256')}"
        )
        yield Finding(Trouble.CHANGED, path, message)


def _lacking(manifest: dict[str, Any], path: str) -> Iterator[Finding]:
    """Say what the evidence itself says, or leaves unsaid, that it lacks."""
    if manifest.get("ended") == UNFINISHED:
        message = (
            "a publication was about to begin, and its end is not written; "
            f"`backfill evidence write {manifest.get('plan_id')}` completes it"
        )
        yield Finding(Trouble.INCOMPLETE, path, message)
    lacks: dict[str, str] = manifest.get("lacks", {})
    for name in sorted({*EXPECTED, *lacks} - manifest["files"].keys()):
        yield Finding(Trouble.INCOMPLETE, path + name, lacks.get(name, "no manifest lists it"))


def _manifest(text: bytes) -> dict[str, Any] | None:
    """Read a manifest; None for anything else."""
    try:
        read = json.loads(text)
        files = read["files"].values()
        is_of_format = (read["format"], read["format_version"]) == (FORMAT, FORMAT_VERSION)
        sound = is_of_format and all(isinstance(file["bytes"], int) for file in files)
        sound = sound and isinstance(read.get("lacks", {}), dict)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return read if sound else None


def _links(folder: Path, root: Path) -> Iterator[_Link]:
    for file in sorted(folder.iterdir()):
        if not (is_manifest(file.name) and file.is_file()):
            continue
        text = file.read_bytes()
        manifest = _manifest(text)
        place = manifest.get("place") if manifest else None
        before = manifest.get("previous") if manifest else None
        if isinstance(place, int) and (before is None or isinstance(before, dict)):
            yield _Link(str(file.relative_to(root)), place, sha256(text), before)


def _in_chain(links: Sequence[_Link]) -> Iterator[Finding]:
    """Hold each manifest against the one that it names as the one before."""
    by_place: dict[int, _Link] = {}
    for link in links:
        if link.place in by_place:
            message = f"{by_place[link.place].where} has the same place {link.place} in the chain"
            yield Finding(Trouble.BROKEN_CHAIN, link.where, message)
        by_place.setdefault(link.place, link)
    for link in sorted(links, key=lambda link: link.place):
        yield from _after(link, by_place)


def _after(link: _Link, by_place: dict[int, _Link]) -> Iterator[Finding]:
    if link.place == 1 and link.before is None:
        return
    before = link.before or {}
    if before.get("place") != link.place - 1:
        message = f"its place is {link.place}, and it names none of place {link.place - 1}"
        yield Finding(Trouble.BROKEN_CHAIN, link.where, message)
    elif link.place - 1 not in by_place:
        message = f"the manifest before it, of plan {before.get('plan_id')}, is not here"
        yield Finding(Trouble.INCOMPLETE, link.where, message)
    elif by_place[link.place - 1].sha256 != before.get("sha256"):
        predecessor = by_place[link.place - 1]
        message = (
            f"{predecessor.where} has SHA-256 {predecessor.sha256}, and the manifest after it names "
            f"{before.get('sha256')}: one of the two was made anew"
        )
        yield Finding(Trouble.BROKEN_CHAIN, link.where, message)
