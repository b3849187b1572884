"""Whether both have computed the same rows: a benchmark of wrong results says nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
from deltalake import DeltaTable

from backfill_assets.models.column import CELL_COLUMN
from benchmarks.peer.subject import MODELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.peer.steps import Place

# Sums of doubles depend on the order of their rows.
_RELATIVE = 1e-9
_KEYS = ("event_date", "month_start", "campaign_id", "channel")


class OtherRowsError(RuntimeError):
    """Ours and SQLMesh's table of a model hold other rows."""

    def __init__(self, model: str, step: str, how: str) -> None:
        super().__init__(f"{model} after {step}, SQLMesh's rows on the left: {how}")


def check_rows(step: str, theirs: Mapping[str, Place], ours: Mapping[str, Place]) -> int:
    """Compare all three models row by row; give how many rows they have.

    Args:
        step: after which, for the message.
        theirs: where SQLMesh's tables lie.
        ours: where ours lie.

    Raises:
        OtherRowsError: they differ.
    """
    total = 0
    for model in MODELS:
        left, right = _rows(theirs[model]), _rows(ours[model])
        columns = sorted({*left.columns, *right.columns} - {CELL_COLUMN})
        left, right = _sorted(left, columns), _sorted(right, columns)
        try:
            pd.testing.assert_frame_equal(left, right, check_dtype=False, rtol=_RELATIVE)
        except AssertionError as error:
            raise OtherRowsError(model, step, str(error)) from error
        total += len(left)
    return total


def _rows(place: Place) -> pd.DataFrame:
    return DeltaTable(place.path, version=place.version).to_pyarrow_table().to_pandas()


def _sorted(rows: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Sort rows and columns; a column that counts from now on may be in no file yet: it is NULL."""
    keys = [name for name in _KEYS if name in columns]
    return rows.reindex(columns=columns).sort_values(keys, ignore_index=True)
