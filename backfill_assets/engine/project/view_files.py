"""Write files of views: what an environment publishes, by name, for engines that execute SQL."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets.engine.project.events import Noted
from backfill_assets.errors import RequestError
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.snapshot import stored_model
from backfill_assets.warehouse.files.layers import table_read
from backfill_assets.warehouse.files.view_sql import Dialect, View, view_file

if TYPE_CHECKING:
    from backfill_assets.engine.project.events import Listener
    from backfill_assets.engine.project.project import InProject
    from backfill_assets.state.store import Store


def views_text(store: Store, environment: str, dialect: Dialect) -> tuple[str, tuple[str, ...]]:
    """Write the views of all that an environment publishes at one moment, and name the models.

    Raises:
        UnknownEnvironmentError: there is no environment of that name.
        RequestError: it has published nothing.
        CorruptTableError: a table's log is damaged.
    """
    _, published = store.views.published(environment)
    views = {
        name: View(
            stored_model(model.definition),
            table_read(model.tables, store.located, model.pointer.certain),
        )
        for name, model in published.items()
    }
    there = {name: view for name, view in views.items() if view.table.exists}
    if not there:
        raise RequestError(
            found=f"environment '{environment}' has published nothing",
            do="fill it first: `backfill run`",
        )
    return view_file(dialect, environment, there), tuple(sorted(there))


def write_whole(out: Path, text: str) -> None:
    """Put a file in the place of another one at once: a reader finds the one or the other.

    Raises:
        RequestError: it can't be written there.
    """
    try:
        descriptor, beside = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            Path(beside).chmod(0o644)
            Path(beside).replace(out)
        except BaseException:
            with suppress(OSError):
                Path(beside).unlink()
            raise
    except OSError as error:
        raise RequestError(
            found=f"{out} can't be written: {error.strerror or error}",
            do="name a file in a folder that is there and may be written",
        ) from error


def refresh_views(run: InProject, environment: str, listener: Listener) -> None:
    """Write the files of views that the settings ask for, after `prod` has published something.

    The publication is done, so a file that can't be written is told of and keeps nothing from going on.
    """
    if environment != PROD:
        return
    for dialect, out in run.project.view_files:
        try:
            text, _ = views_text(run.store, PROD, Dialect(dialect))
            write_whole(Path(out), text)
        except RequestError as error:
            listener(Noted("", out, f"the views are still those from before: {error}"))
