"""Tables S64, S65 and S68 on a real disk."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.errors import (
    FileMissingError,
    FileRefusedError,
    PathRefusedError,
    QuotaError,
    ToolError,
    WorkspaceBusyError,
)
from tools.folders import is_plain, open_folder, refusals, replace_file
from tools.workspace import Entry, Workspace

SECRET = "outside"


@pytest.fixture
def outside(workspace: Workspace) -> Path:
    """A folder beside the workspace that nothing may reach."""
    workspace.write("made.txt", b"made")
    folder = workspace.root.parent / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    return folder


def names_below(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*")}


def test_what_was_written_is_read_and_listed(workspace: Workspace) -> None:
    assert workspace.write("b/c.txt", b"one")
    assert not workspace.write("b/c.txt", b"second")
    assert workspace.write("a.txt", b"")
    assert workspace.read("b/c.txt") == b"second"
    assert workspace.entries() == [Entry("a.txt", 0), Entry("b/c.txt", 6)]
    assert workspace.entries("b") == [Entry("b/c.txt", 6)]
    assert names_below(workspace.root) == {"a.txt", "b", "b/c.txt"}


def test_an_untouched_workspace_is_empty(workspace: Workspace) -> None:
    assert workspace.entries() == []
    with pytest.raises(FileMissingError):
        workspace.read("x")


@pytest.mark.parametrize("path", ["", ".", "a/", "a/.", "/a", "../a"])
def test_a_file_needs_a_file_path(path: str, workspace: Workspace) -> None:
    with pytest.raises(PathRefusedError):
        workspace.write(path, b"x")
    with pytest.raises(PathRefusedError):
        workspace.read(path)


def test_missing_files_and_folders_are_said_so_without_the_root(workspace: Workspace) -> None:
    for attempt in (lambda: workspace.read("a/b"), lambda: workspace.entries("nowhere")):
        with pytest.raises(FileMissingError) as missing:
            attempt()
        assert str(workspace.root) not in str(missing.value)


def test_a_file_is_no_folder_and_a_folder_no_file(workspace: Workspace) -> None:
    workspace.write("a/b", b"x")
    for attempt in (
        lambda: workspace.read("a"),
        lambda: workspace.write("a", b"x"),
        lambda: workspace.read("a/b/c"),
        lambda: workspace.write("a/b/c", b"x"),
        lambda: workspace.entries("a/b"),
    ):
        with pytest.raises(FileRefusedError):
            attempt()


def link_file(root: Path, outside: Path) -> None:
    (root / "x").symlink_to(outside / "secret.txt")


def link_inside(root: Path, _outside: Path) -> None:
    (root / "x").symlink_to("made.txt")


def link_nowhere(root: Path, _outside: Path) -> None:
    (root / "x").symlink_to("/proc/self/environ")


def hard_link(root: Path, outside: Path) -> None:
    (root / "x").hardlink_to(outside / "secret.txt")


def pipe(root: Path, _outside: Path) -> None:
    os.mkfifo(root / "x")


def door(root: Path, _outside: Path) -> None:
    here = Path.cwd()
    os.chdir(root)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("x")
    finally:
        os.chdir(here)


@pytest.mark.parametrize("plant", [link_file, link_inside, link_nowhere, hard_link, pipe, door])
def test_what_is_no_ordinary_file_is_not_read_replaced_or_listed(
    plant: Callable[[Path, Path], None], workspace: Workspace, outside: Path
) -> None:
    plant(workspace.root, outside)
    with pytest.raises(FileRefusedError):
        workspace.read("x")
    with pytest.raises(FileRefusedError):
        workspace.write("x", b"mine now")
    assert [entry.path for entry in workspace.entries()] == ["made.txt"]
    assert (outside / "secret.txt").read_text() == SECRET


def test_a_device_is_not_read(workspace: Workspace) -> None:
    if os.geteuid() != 0:
        pytest.skip("making a device takes root")
    workspace.write("made.txt", b"")
    os.mknod(workspace.root / "x", 0o600 | 0o020000, os.makedev(1, 5))
    with pytest.raises(FileRefusedError):
        workspace.read("x")


def test_a_file_of_another_file_system_is_not_plain(workspace: Workspace) -> None:
    workspace.write("made.txt", b"")
    device = workspace.root.stat().st_dev
    assert is_plain((workspace.root / "made.txt").stat(), device)
    assert not is_plain(Path("/proc/self/environ").stat(), device)


def test_a_linked_folder_is_not_entered(workspace: Workspace, outside: Path) -> None:
    (workspace.root / "x").symlink_to(outside, target_is_directory=True)
    for attempt in (
        lambda: workspace.read("x/secret.txt"),
        lambda: workspace.write("x/new.txt", b"x"),
        lambda: workspace.write("x/new/deep.txt", b"x"),
        lambda: workspace.entries("x"),
    ):
        with pytest.raises(FileRefusedError):
            attempt()
    assert names_below(outside) == {"secret.txt"}
    assert [entry.path for entry in workspace.entries()] == ["made.txt"]


def test_the_workspace_itself_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "7").symlink_to("real", target_is_directory=True)
    with pytest.raises(OSError, match=r"directory|symbolic"):
        Workspace(tmp_path / "7").entries()


@contextmanager
def swapping(root: Path, outside: Path) -> Iterator[None]:
    """Keep exchanging the folder d for a link that leads outside."""
    folder, aside, trap = (root / each for each in ("d", "aside", "trap"))
    trap.symlink_to(outside, target_is_directory=True)
    stopped = threading.Event()

    def swap() -> None:
        while not stopped.is_set():
            folder.rename(aside)
            trap.rename(folder)
            folder.rename(trap)
            aside.rename(folder)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        yield
    finally:
        stopped.set()
        swapper.join()


def test_a_folder_swapped_for_a_link_in_mid_walk_never_leads_out(
    workspace: Workspace, outside: Path
) -> None:
    workspace.write("d/secret.txt", b"inside")
    seen: set[bytes | str] = set()
    root = os.open(workspace.root, os.O_RDONLY)
    with swapping(workspace.root, outside):
        for turn in range(10_000):
            try:
                seen.add(workspace.read("d/secret.txt"))
                if turn % 20 == 0:
                    with open_folder(root, ("d",)) as folder:
                        replace_file(folder, ("d", "new.txt"), b"new")
            except ToolError as error:
                seen.add(error.code)
    os.close(root)
    assert seen <= {b"inside", "file_missing", "file_refused"}
    assert names_below(outside) == {"secret.txt"}


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None
)
@given(st.lists(st.sampled_from(["..", ".", "/", "a", "b", "\\", "~", "%2e", "link"])).map("".join))
def test_no_write_lands_outside(workspace: Workspace, path: str) -> None:
    workspace.root.mkdir(parents=True, exist_ok=True)
    if not (workspace.root / "link").is_symlink():
        (workspace.root / "link").symlink_to("..")
    with suppress(ToolError):
        workspace.write(path, b"x")
    assert {each.name for each in workspace.root.parent.iterdir()} <= {"7", ".7.lock"}


def test_a_file_has_a_largest_size(workspace: Workspace) -> None:
    workspace.write("x", b"x" * 5_000)
    with pytest.raises(QuotaError, match="5,000"):
        workspace.write("y", b"x" * 5_001)
    os.truncate(workspace.root / "x", 10**12)  # sparse, put there by someone else
    with pytest.raises(FileRefusedError, match="larger"):
        workspace.read("x")
    with pytest.raises(QuotaError):
        workspace.write("z", b"")


def test_the_quota_counts_bytes_and_gives_back_what_is_replaced(workspace: Workspace) -> None:
    workspace.write("a", b"x" * 5_000)
    workspace.write("b", b"x" * 4_000)
    with pytest.raises(QuotaError, match="10,000 bytes"):
        workspace.write("c", b"x" * 1_500)
    workspace.write("a", b"x")
    workspace.write("c", b"x" * 1_500)


def test_the_quota_counts_files_and_folders(workspace: Workspace) -> None:
    for number in range(18):
        workspace.write(f"{number}", b"")
    with pytest.raises(QuotaError, match="20 files"):
        workspace.write("a/b/c", b"")
    assert not (workspace.root / "a").exists()
    workspace.write("a/b", b"")
    with pytest.raises(QuotaError):
        workspace.write("one", b"")
    workspace.write("a/b", b"replaced")


def test_fifty_writers_at_the_limit_never_pass_it(workspace: Workspace) -> None:
    small = replace(workspace, max_files=10)

    def write(number: int) -> bool:
        try:
            return small.write(f"{number}", b"x" * 500)
        except QuotaError:
            return False

    with ThreadPoolExecutor(50) as pool:
        done = list(pool.map(write, range(50)))
    assert sum(done) == 10
    assert len(small.entries()) == 10
    assert names_below(small.root) == {entry.path for entry in small.entries()}


def _write_many(workspace: Workspace, first: int) -> None:
    for number in range(first, first + 8):
        with suppress(QuotaError):
            workspace.write(f"{number}", b"x" * 900)


def test_writers_in_other_processes_share_the_quota(workspace: Workspace) -> None:
    start = multiprocessing.get_context("spawn")
    others = [start.Process(target=_write_many, args=(workspace, n)) for n in (0, 100)]
    for each in others:
        each.start()
    _write_many(workspace, 200)
    for each in others:
        each.join()
        assert each.exitcode == 0
    assert sum(entry.bytes for entry in workspace.entries()) == 9_900


def test_a_reader_sees_the_old_or_the_new_file_whole(workspace: Workspace) -> None:
    workspace.write("x", b"a" * 4_000)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(
            lambda: [workspace.write("x", each * 4_000) for each in (b"b", b"a") * 25]
        )
        while not writing.done():
            assert workspace.read("x") in (b"a" * 4_000, b"b" * 4_000)
            assert [entry.path for entry in workspace.entries()] in (["x"], [])


def test_a_busy_workspace_is_given_up_after_a_while(workspace: Workspace) -> None:
    workspace.write("x", b"")
    with (workspace.root.parent / ".7.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(WorkspaceBusyError):
            replace(workspace, patience=0.05).write("y", b"")
    workspace.write("y", b"")


def test_what_a_crash_left_unfinished_is_hidden_and_cleared(workspace: Workspace) -> None:
    workspace.write("d/x", b"")
    (workspace.root / "d" / ".agentweb-dead").write_text("half")
    (workspace.root / ".agentweb-folder").mkdir()
    assert [entry.path for entry in workspace.entries()] == ["d/x"]
    workspace.write("y", b"")
    assert names_below(workspace.root) == {".agentweb-folder", "d", "d/x", "y"}


def test_a_fault_of_the_disk_is_not_taken_for_a_refusal() -> None:
    with pytest.raises(OSError, match="No space"), refusals(("x",), "file"):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_failed_placing_leaves_nothing_behind(workspace: Workspace) -> None:
    workspace.write("d/x", b"old")
    root = os.open(workspace.root, os.O_RDONLY)
    with pytest.raises(FileRefusedError):
        replace_file(root, ("d",), b"new")
    os.close(root)
    assert names_below(workspace.root) == {"d", "d/x"}


def test_files_no_tool_could_name_are_counted_but_not_listed(workspace: Workspace) -> None:
    workspace.write("x", b"")
    (workspace.root / "cafe\u0301").write_text("x" * 9_999)
    os.close(os.open(os.fsencode(workspace.root) + b"/\xff", os.O_CREAT))
    assert [entry.path for entry in workspace.entries()] == ["x"]
    with pytest.raises(QuotaError):
        workspace.write("y", b"xx")


def test_folders_made_deeper_than_a_path_are_not_walked(workspace: Workspace) -> None:
    workspace.write("x", b"")
    workspace.root.joinpath(*["d"] * 30).mkdir(parents=True)
    assert [entry.path for entry in workspace.entries()] == ["x"]


def test_a_cleared_workspace_is_empty_and_goes_on(workspace: Workspace, outside: Path) -> None:
    workspace.write("d/x", b"old")
    (workspace.root / "link").symlink_to(outside)
    (workspace.root / "cafe\u0301").write_text("x")
    workspace.clear()
    assert workspace.entries() == []
    assert outside.is_dir()
    left = {path.name for path in workspace.root.parent.iterdir()}
    assert left <= {workspace.root.name, f".{workspace.root.name}.lock", "outside"}
    workspace.write("d/x", b"new")
    assert workspace.read("d/x") == b"new"
