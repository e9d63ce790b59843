"""What may be stored where, whoever keeps the index: paths of S64, the quota of S68."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.framework.errors import FileRefusedError, PathRefusedError, QuotaError, ToolError
from tools.workspace.workspace import Quota, check_placement, normalize_path, plan_move

QUOTA = Quota(max_bytes=100, max_files=3, max_file_bytes=60)


@pytest.mark.parametrize("path", ["", ".", "a/", "a/.", "/a", "../a", "a/../../x", "a\0", "CON"])
def test_a_file_needs_a_file_path(path: str) -> None:
    with pytest.raises(PathRefusedError):
        normalize_path(path)


def test_two_spellings_are_one_path() -> None:
    assert normalize_path("./a//cafe\u0301") == normalize_path("a/caf\u00e9") == "a/caf\u00e9"


def test_a_file_is_no_folder_and_a_folder_no_file() -> None:
    held = {"a/b": 1, "c": 1}
    for path in ("a", "c/d", "a/b/c/d"):
        with pytest.raises(FileRefusedError):
            check_placement(held, path, 1, QUOTA)
    check_placement(held, "a/c", 1, QUOTA)
    check_placement(held, "a/b", 1, QUOTA)


def test_the_quota_counts_bytes_and_gives_back_what_is_replaced() -> None:
    held = {"a": 60, "b": 30}
    check_placement(held, "c", 10, QUOTA)
    check_placement(held, "b", 40, QUOTA)
    for path, size in (("c", 11), ("b", 41), ("a", 61)):
        with pytest.raises(QuotaError):
            check_placement(held, path, size, QUOTA)


def test_the_quota_counts_files_empty_ones_too() -> None:
    held = dict.fromkeys("abc", 0)
    check_placement(held, "a", 1, QUOTA)
    with pytest.raises(QuotaError, match="3 files"):
        check_placement(held, "d", 0, QUOTA)


NAMES = st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map("/".join)


@given(st.lists(NAMES), NAMES, NAMES)
def test_what_is_moved_stands_as_well_as_before(written: list[str], path: str, to: str) -> None:
    held: dict[str, int] = {}
    for each in written:
        try:
            check_placement(held, each, 1, Quota())
        except ToolError:
            continue
        held[each] = 1
    try:
        new = plan_move(held, path, to)
    except ToolError:
        return
    after = [new.get(each, each) for each in held]
    assert len(set(after)) == len(held)
    for each in after:
        assert not any(other.startswith(f"{each}/") for other in after)
