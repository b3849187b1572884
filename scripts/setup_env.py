"""The environment of a checkout: `.venv`, holding exactly what `requirements.lock` names.

Runs with the Python that the environment will have, after `scripts/doctor.py`, and needs nothing
installed. Does nothing when the lock, the project's settings and the Python are those of last time.
`setup_env.py lock` writes the lock anew instead; further arguments go to `uv pip compile`.
`setup_env.py bounds` resolves both ends of the ranges in `pyproject.toml` and installs nothing.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PINNED_UV = "uv==0.13.8"
LOCK = "requirements.lock"
GROUPS = ("test", "lint", "build")
EXTRAS = ("postgres", "iceberg", "notices", "demo")
ENDS = ("lowest-direct", "highest")
NO_NETWORK = """\
If the lines above speak of connecting, a name lookup, a certificate or a time-out, then this
machine can't reach its Python package index. Connect it, or name a mirror or a proxy
(UV_DEFAULT_INDEX, PIP_INDEX_URL, HTTPS_PROXY), and run `make env` again: what was fetched is kept."""


class SetupError(Exception):
    """A step of the set-up that did not succeed, in words for the person who started it."""


def main(root: Path, arguments: list[str]) -> int:
    """Bring the environment to what the lock says; return the process's exit code."""
    try:
        if arguments[:1] == ["lock"]:
            write_lock(root, arguments[1:])
        elif arguments == ["bounds"]:
            resolve_bounds(root)
        else:
            sync(root)
    except SetupError as error:
        print(f"\n{error}\n", file=sys.stderr)
        return 1
    return 0


def sync(root: Path) -> None:
    """Install what the lock names and nothing else, then this project itself.

    Raises:
        SetupError: a package could not be fetched or installed.
    """
    stamp = root / ".venv" / "installed-from"
    wanted = fingerprint(root)
    python = root / ".venv" / "bin" / "python"
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return

    uv = find_uv(root)
    stamp.unlink(missing_ok=True)
    print(
        "Installing the Python packages into .venv (about 800 MB to fetch the first time) ...",
        flush=True,
    )
    venv.create(root / ".venv", clear=not made_by_this_python(root), symlinks=True)
    pip = [uv, "pip"]
    into = ["--python", str(python)]
    # Compiled once here: else every start compiles where Python may not write its bytecode.
    sync = [*pip, "sync", *into, "--compile-bytecode", "--require-hashes", str(root / LOCK)]
    run(sync, "install the packages")
    # Without isolation: the build backend is in the lock too.
    own = ["--no-deps", "--no-build-isolation", "--editable", str(root)]
    run([*pip, "install", "--quiet", *into, *own], "install the project into its .venv")
    stamp.write_text(wanted)


def write_lock(root: Path, arguments: list[str]) -> None:
    """Resolve every dependency for all Pythons and systems, with hashes and without hosts.

    Raises:
        SetupError: there is no set of versions that fits, or no network.
    """
    resolve(root, LOCK, ["--generate-hashes", *arguments], "write the lock")


def resolve_bounds(root: Path) -> None:
    """Resolve the lowest and the highest versions that `pyproject.toml` allows; the lock stays.

    Raises:
        SetupError: at one end no set of versions fits, or there is no network.
    """
    for end in ENDS:
        with tempfile.TemporaryDirectory() as folder:
            target = str(Path(folder) / LOCK)
            resolve(root, target, ["--resolution", end], f"resolve the {end} versions")
        print(f"The {end} versions that pyproject.toml allows fit together.", flush=True)


def resolve(root: Path, target: str, options: list[str], purpose: str) -> None:
    """Write which versions fit, for all Pythons and systems, with every group and extra.

    Raises:
        SetupError: there is no set of versions that fits, or no network.
    """
    everywhere = ["--universal", "--python-version", "3.11"]
    hostless = ["--no-emit-index-url", "--no-emit-find-links", "--no-header", "--quiet"]
    groups = [option for group in GROUPS for option in ("--group", group)]
    groups += [option for extra in EXTRAS for option in ("--extra", extra)]
    compile_ = [find_uv(root), "pip", "compile", "pyproject.toml", "--output-file", target]
    run([*compile_, *everywhere, *hostless, *groups, *options], purpose, cwd=root)


def fingerprint(root: Path) -> str:
    """Return what the environment depends on, as one line."""
    digest = hashlib.sha256()
    for name in (LOCK, "pyproject.toml"):
        digest.update((root / name).read_bytes())
    # The folder counts: an environment that was moved or copied points to its old place.
    return f"{digest.hexdigest()} {sys.version_info[:3]} {root}\n"


def made_by_this_python(root: Path) -> bool:
    """Return whether `.venv` is there and has this Python, so that it can be kept."""
    settings = root / ".venv" / "pyvenv.cfg"
    version = ".".join(str(part) for part in sys.version_info[:3])
    return settings.exists() and f"version = {version}\n" in settings.read_text()


def find_uv(root: Path) -> str:
    """Return the uv on PATH, or one of our own in `.tools`, fetched by pip the first time.

    Raises:
        SetupError: pip is missing or can't fetch it.
    """
    if on_path := shutil.which("uv"):
        return on_path
    own = root / ".tools" / "bin" / "uv"
    if own.exists():
        return str(own)
    print(f"Fetching {PINNED_UV} into .tools ...", flush=True)
    try:
        venv.create(root / ".tools", clear=True, symlinks=True, with_pip=True)
    except subprocess.CalledProcessError as error:
        raise SetupError(
            "This Python can't make an environment with pip in it (its ensurepip is missing).\n"
            "Install it (Debian, Ubuntu: sudo apt-get install python3-venv), or install uv."
        ) from error
    pip = [str(root / ".tools" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", PINNED_UV], "fetch uv")
    return str(own)


def run(command: list[str], purpose: str, cwd: Path | None = None) -> None:
    """Run a command in the person's sight.

    Raises:
        SetupError: the command is missing or did not end with 0.
    """
    patient = {"UV_HTTP_TIMEOUT": "180"}  # pyspark alone is 400 MB
    inherited = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(command, cwd=cwd, env=patient | inherited, check=False)
    if done.returncode:
        raise SetupError(
            f"Could not {purpose}: {Path(command[0]).name} ended with {done.returncode}.\n"
            f"{NO_NETWORK}"
        )


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent, sys.argv[1:]))
