"""`backfill init`: write a project of one source and one model, which runs as it is."""

from __future__ import annotations

import keyword
import runpy
import sys
from importlib.metadata import packages_distributions
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from backfill_assets.cli.options import AsJson  # noqa: TC001 - typer reads it
from backfill_assets.cli.output import print_json, say, writing
from backfill_assets.errors import RequestError
from backfill_assets.intervals.text import counted

_TEMPLATES = {
    "{name}/__init__.py": None,
    "{name}/catalog.py": "catalog.py.tmpl",
    "{name}/landing.py": "landing.py.tmpl",
    "tests/test_catalog.py": "test_catalog.py.tmpl",
    "workspace.yaml": "workspace.yaml.tmpl",
    "dagster.yaml": "dagster.yaml.tmpl",
    "README.md": "README.md.tmpl",
    ".env": "env.tmpl",
    ".gitignore": "gitignore.tmpl",
}
"""Every file of a new project, and the template that it is made from; None for an empty one."""
_TAKEN = ("tests", "data", "backfill_assets", "dagster")


def init(
    name: Annotated[str, typer.Argument(help="Name of the project, its folder and its package.")],
    as_json: AsJson = False,
) -> None:
    """Write a new project: a catalog with one source and one model, sample rows, a test, Dagster's settings.

    The folder NAME is made here; an existing folder that is not empty is not changed. The project's settings are in its file `.env`, which `backfill`
    and `dagster` read when they are started in that folder.

    Exit code: 0 when the project is written, 1 when the folder is in use or the name can't be that of a package.

    Example: backfill init shop
    """
    _refuse_name(name)
    folder = Path(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RequestError(
            found=f"{folder.resolve()} is there already and not empty",
            do="name another project, or move it away",
        )
    written = [folder / place.format(name=name) for place in _TEMPLATES]
    with writing(folder.resolve(), "begin in a folder that you may write to, with free space"):
        for path, template in zip(written, _TEMPLATES.values(), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_filled(template, name), encoding="utf-8")
        landing = runpy.run_path(str(folder / name / "landing.py"))
        landing["land"](str(folder / "data"))
    if as_json:
        print_json({"folder": str(folder.resolve()), "files": [str(path) for path in written]})
        return
    say("In Dagster's UI, from that folder: export DAGSTER_HOME=$PWD && dagster dev", indent=2)
    say(f"Next: cd {name} && backfill setup && backfill run && backfill status")
    say(f"{folder.resolve()}: {counted(len(written), 'file')}, 1 source with sample rows, 1 model.")


def _filled(template: str | None, name: str) -> str:
    if template is None:
        return ""
    text = (
        files("backfill_assets.cli").joinpath("new_project", template).read_text(encoding="utf-8")
    )
    return Template(text).substitute(name=name)


def _refuse_name(name: str) -> None:
    fits = name.isidentifier() and name.isascii() and name == name.lower() and name[0] != "_"
    if not fits or keyword.iskeyword(name) or name in _TAKEN or _is_imported_elsewhere(name):
        raise RequestError(
            found=f"{name!r} can't be the name of a project's package",
            expected="lower-case letters, digits and _, a letter first, no word that Python or this tool uses, "
            "and no module of Python or of an installed package",
            do="try another one, such as `backfill init shop`",
        )


def _is_imported_elsewhere(name: str) -> bool:
    """Whether a package of this name would hide a module that Python or a library imports."""
    return name in sys.stdlib_module_names or name in packages_distributions()
