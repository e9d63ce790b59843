"""Table S65 on a real disk: what another hand puts where an object belongs is never followed."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from django.core.files.base import ContentFile

from conversations.files.workspace.disk import GuardedStorage
from tools.framework.errors import FileRefusedError, ToolError
from tools.workspace.directories import (
    is_ordinary_file,
    open_folder,
    replace_file,
    translate_errors,
)

SECRET = "outside"


@pytest.fixture
def store(tmp_path: Path) -> GuardedStorage:
    store = GuardedStorage(tmp_path / "files", most=5_000)
    store.save("7/made", ContentFile(b"made"))
    return store


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text(SECRET)
    return folder


def read(store: GuardedStorage, name: str) -> bytes:
    with store.open(name) as file:
        data: bytes = file.read()
    return data


def names_below(folder: Path) -> set[str]:
    return {str(each.relative_to(folder)) for each in folder.rglob("*")}


def test_an_object_is_kept_and_removed(store: GuardedStorage) -> None:
    assert store.save("7/x", ContentFile(b"x" * 3)) == "7/x"
    assert (read(store, "7/x"), store.size("7/x"), store.exists("7/x")) == (b"xxx", 3, True)
    assert names_below(store.location) == {"7", "7/made", "7/x"}
    store.delete("7/x")
    store.delete("7/x")
    store.delete("8/x")
    assert not store.exists("7/x")
    assert not store.exists("8/x")
    with pytest.raises(FileNotFoundError):
        read(store, "7/x")
    assert (store.location / "7" / "made").stat().st_mode & 0o777 == 0o600


def test_what_a_crash_left_of_an_object_goes_with_it(store: GuardedStorage) -> None:
    (store.location / "7" / ".agentweb-x").write_text("half")
    store.delete("7/x")
    assert names_below(store.location) == {"7", "7/made"}


@pytest.mark.parametrize("name", ["../x", "7/../../x", "/etc/passwd", "7//x", ".", "7/a\0b"])
def test_an_object_has_a_plain_name(name: str, store: GuardedStorage) -> None:
    for attempt in (store.exists, store.delete, store._open, store.size):
        with pytest.raises((ValueError, OSError)):
            attempt(name)


def link_file(folder: Path, outside: Path) -> None:
    (folder / "x").symlink_to(outside / "secret")


def link_inside(folder: Path, _outside: Path) -> None:
    (folder / "x").symlink_to("made")


def link_to_environment(folder: Path, _outside: Path) -> None:
    (folder / "x").symlink_to("/proc/self/environ")


def hard_link(folder: Path, outside: Path) -> None:
    (folder / "x").hardlink_to(outside / "secret")


def pipe(folder: Path, _outside: Path) -> None:
    os.mkfifo(folder / "x")


def door(folder: Path, _outside: Path) -> None:
    here = Path.cwd()
    os.chdir(folder)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("x")
    finally:
        os.chdir(here)


def sparse(folder: Path, _outside: Path) -> None:
    with (folder / "x").open("wb") as file:
        file.truncate(10**12)


def a_folder(folder: Path, _outside: Path) -> None:
    (folder / "x").mkdir()


PLANTED = [link_file, link_inside, link_to_environment, hard_link, pipe, door, sparse, a_folder]


@pytest.mark.parametrize("plant", PLANTED)
def test_what_is_no_ordinary_object_is_not_read(
    plant: Callable[[Path, Path], None], store: GuardedStorage, outside: Path
) -> None:
    plant(store.location / "7", outside)
    with pytest.raises(FileRefusedError):
        read(store, "7/x")
    with suppress(FileRefusedError):
        store.delete("7/x")
    assert (outside / "secret").read_text() == SECRET


def test_a_device_is_not_read(store: GuardedStorage) -> None:
    if os.geteuid() != 0:
        pytest.skip("making a device takes root")
    os.mknod(store.location / "7" / "x", 0o600 | 0o020000, os.makedev(1, 5))
    with pytest.raises(FileRefusedError):
        read(store, "7/x")


def test_a_file_of_another_file_system_is_not_plain(store: GuardedStorage) -> None:
    device = store.location.stat().st_dev
    assert is_ordinary_file((store.location / "7" / "made").stat(), device)
    assert not is_ordinary_file(Path("/proc/self/environ").stat(), device)


def test_a_linked_folder_is_not_entered(store: GuardedStorage, outside: Path) -> None:
    (store.location / "8").symlink_to(outside, target_is_directory=True)
    for attempt in (
        lambda: read(store, "8/secret"),
        lambda: store.save("8/new", ContentFile(b"x")),
        lambda: store.delete("8/secret"),
    ):
        with pytest.raises(FileRefusedError):
            attempt()
    assert names_below(outside) == {"secret"}


def test_the_folder_of_all_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "files").symlink_to("real", target_is_directory=True)
    with pytest.raises(OSError, match=r"directory|symbolic"):
        GuardedStorage(tmp_path / "files").exists("7/x")


@contextmanager
def swapping(root: Path, outside: Path) -> Iterator[None]:
    """Keep exchanging the folder 7 for a link that leads outside."""
    folder, aside, trap = (root / each for each in ("7", "aside", "trap"))
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
    store: GuardedStorage, outside: Path
) -> None:
    store.save("7/secret", ContentFile(b"inside"))
    seen: set[bytes | str] = set()
    root = os.open(store.location, os.O_RDONLY)
    with swapping(store.location, outside):
        for turn in range(10_000):
            try:
                seen.add(read(store, "7/secret"))
                if turn % 20 == 0:
                    # Without making the folder: the swap needs its name while it is away.
                    with open_folder(root, ("7",)) as folder:
                        replace_file(folder, ("7", "new"), b"new")
                    store.delete("7/new")
            except ToolError as error:
                seen.add(error.code)
            except FileNotFoundError:
                seen.add("file_missing")
    os.close(root)
    assert seen <= {b"inside", "file_missing", "file_refused"}
    assert names_below(outside) == {"secret"}


def test_a_fault_of_the_disk_is_not_taken_for_a_refusal() -> None:
    with pytest.raises(OSError, match="No space"), translate_errors(("x",), "file"):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_failed_placing_leaves_nothing_behind(store: GuardedStorage) -> None:
    (store.location / "7" / "x").mkdir()
    with pytest.raises(FileRefusedError):
        store._save("7/x", ContentFile(b"new"))
    assert names_below(store.location) == {"7", "7/made", "7/x"}
