"""Files of views: one look at what an environment publishes, and the files that follow its publications."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from backfill_assets.engine.project.at_work import Phase
from backfill_assets.snapshots.snapshot import stored_model
from backfill_assets.warehouse.files.layers import table_read
from backfill_assets.warehouse.views.published_views import (
    PublishedView,
    PublishedViews,
    view_name,
)
from backfill_assets.warehouse.views.view_file import replace_file, views_sql

if TYPE_CHECKING:
    from backfill_assets.engine.project.project import InProject
    from backfill_assets.settings import ViewsFile
    from backfill_assets.state.layers import PublishedModel
    from backfill_assets.state.store import Store

_LOOKS = 5
_log = logging.getLogger(__name__)


def published_views(store: Store, environment: str, named: str | None = None) -> PublishedViews:
    """Look once at all that an environment publishes.

    Args:
        store: the state.
        environment: whose.
        named: the environment after which views are named; the same one unless given. A held consumer finds
            its views under the names that it knows.

    Raises:
        UnknownEnvironmentError: there is no environment of that name.
    """
    number, models = store.views.published(environment)
    named = named or environment
    shown = (
        _view(store, named, name, published_model)
        for name, published_model in sorted(models.items())
    )
    views = tuple(view for view in shown if view.table.exists)
    moved = {view_name(named, model) for model in store.views.moved_models(environment)}
    gone = moved - {view.name for view in views}
    return PublishedViews(environment, number, views, tuple(sorted(gone)))


def rewrite_views(run: InProject, published: str) -> None:
    """Write again the files of views that show what an environment has just published.

    It is published already, so a file that can't be written is told of in the log, and written by
    the next publication.

    Args:
        run: the project whose files they are.
        published: the environment.
    """
    for file in run.project.views:
        if published in run.store.views.followed(file.environment):
            _rewrite(run, file)


def _rewrite(run: InProject, file: ViewsFile) -> None:
    try:
        with run.at_work.at(Phase.RECORDING, f"views in {file.path}"):
            _write_newest(run.store, file)
    except Exception as error:  # noqa: BLE001 - whatever it is, the publication is done
        _log.warning(
            "the views in %s were not written and do not show what '%s' publishes now: %s; the next publication "
            "writes them again, and so does `backfill views --for %s --env %s --out %s`",
            *(file.path, file.environment, error, file.dialect, file.environment, file.path),
        )


def _write_newest(store: Store, file: ViewsFile) -> None:
    """Write what is published, until another look finds nothing newer.

    Meanwhile another process may publish, or may write an older file over a newer one.
    """
    written = None
    for _ in range(_LOOKS):
        newest = published_views(store, file.environment)
        if newest == written:
            return
        replace_file(file.path, views_sql(file.dialect, newest))
        written = newest


def _view(
    store: Store, environment: str, model: str, published_model: PublishedModel
) -> PublishedView:
    return PublishedView(
        view_name(environment, model),
        stored_model(published_model.definition),
        published_model.definition,
        table_read(published_model.tables, store.located, published_model.pointer.certain),
        {store.located(pin.path): pin.version for pin in published_model.tables},
    )
