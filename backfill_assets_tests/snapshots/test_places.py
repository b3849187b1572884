"""A place is relative to the data root for whatever lies beneath it, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from backfill_assets.errors import RequestError
from backfill_assets.snapshots.places import is_same_place, located, place_of

ROOTS = st.sampled_from(("/data", "/da ta/x", "/", "s3://lake", "s3://lake/", "file:///data"))
REST = st.text("ab/:. ü'", min_size=1)
PATHS = st.one_of(
    st.builds(lambda root, rest: f"{root}/{rest}", ROOTS, REST), REST.map(lambda rest: f"/{rest}")
)


@given(ROOTS, PATHS)
def test_a_path_comes_back_from_its_place(root: str, path: str):
    assert located(place_of(path, root), root) == path


@given(ROOTS, ROOTS, st.text("abü'", min_size=1))
def test_what_lies_beneath_the_data_root_lies_beneath_the_next_one(old: str, new: str, name: str):
    place = place_of(f"{old}/tables/{name}", old)
    assert place == f"tables/{name}"
    assert located(place, new) == f"{new}/tables/{name}"
    assert is_same_place(place, f"{old}/tables/{name}")


@pytest.mark.parametrize("path", ["/database/x", "/other/x", "s3://lake/x", "file:///data/x"])
def test_what_lies_elsewhere_stays_where_it_is(path: str):
    assert place_of(path, "/data") == path
    assert located(path, "/elsewhere") == path
    assert not is_same_place(path, f"/data{path}")


def test_a_relative_place_is_never_looked_for_below_the_current_folder():
    with pytest.raises(RequestError, match="the state keeps a table at 'tables/x'"):
        located("tables/x", None)
