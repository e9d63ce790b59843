"""Index and storage together, over every kind of storage: files stay, and the quota holds."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.storage import storages
from django.db import connections
from django.utils import timezone

from conversations.files import workspace as services
from conversations.files.workspace import UserWorkspace, arrange, objects, sweep
from conversations.files.workspace.browse import list_deleted_files
from conversations.models import FileState, User, WorkspaceFile
from tests.support import people_and_turns, s3_server
from tests.support.object_stores import BUCKETS, Bucket, Unreachable
from tools.framework.errors import (
    FileChangedError,
    FileMissingError,
    FileRefusedError,
    PathRefusedError,
    QuotaError,
    ToolError,
)
from tools.workspace.workspace import compute_digest

pytestmark = pytest.mark.django_db
BACKENDS = {
    "guarded": "conversations.files.workspace.disk.GuardedStorage",
    "disk": "django.core.files.storage.FileSystemStorage",
    "memory": "django.core.files.storage.InMemoryStorage",
    "bucket": "tests.support.object_stores.Bucket",
    "s3": "storages.backends.s3.S3Storage",
}


def use(settings: Any, kind: str, folder: Path) -> None:
    match kind:
        case "bucket":
            options = {"bucket": uuid4().hex}
        case "s3":
            options = s3_server.make_options()
        case _:
            options = {"location": str(folder / "files")}
    settings.STORAGES = settings.STORAGES | {
        "workspace": {"BACKEND": BACKENDS[kind], "OPTIONS": options}
    }
    settings.AGENTWEB_WORKSPACE_BYTES = 10_000
    settings.AGENTWEB_WORKSPACE_FILES = 20
    settings.AGENTWEB_WORKSPACE_FILE_BYTES = 5_000


@pytest.fixture(params=BACKENDS)
def user(request: pytest.FixtureRequest, settings: Any, tmp_path: Path) -> User:
    use(settings, request.param, tmp_path)
    return people_and_turns.person()


@pytest.fixture
def workspace(user: User) -> UserWorkspace:
    return UserWorkspace(user.pk)


@pytest.fixture
def bucket(settings: Any, tmp_path: Path) -> Bucket:
    use(settings, "bucket", tmp_path)
    found = storages["workspace"]
    assert isinstance(found, Bucket)
    return found


def paths(workspace: UserWorkspace) -> list[str]:
    return [entry.path for entry in workspace.entries()]


def kept() -> set[str]:
    """Name the rows whose object must be there."""
    return set(WorkspaceFile.objects.values_list("object", flat=True))


def test_what_was_written_is_read_and_listed(workspace: UserWorkspace) -> None:
    assert workspace.entries() == []
    assert workspace.write("b/c.txt", b"one")
    assert not workspace.write("b/c.txt", b"second")
    assert workspace.write("a.txt", b"")
    assert workspace.read("b/c.txt") == b"second"
    assert workspace.read("./b//c.txt") == b"second"
    assert [(entry.path, entry.bytes) for entry in workspace.entries()] == [
        ("a.txt", 0),
        ("b/c.txt", 6),
    ]
    assert [entry.path for entry in workspace.entries("b")] == ["b/c.txt"]
    assert [entry.path for entry in workspace.entries("a.txt")] == ["a.txt"]
    assert WorkspaceFile.objects.count() == 2
    assert all(storages["workspace"].exists(name) for name in kept())


def test_missing_files_folders_and_paths_are_said_so(workspace: UserWorkspace) -> None:
    workspace.write("a/b", b"x")
    for attempt, error in [
        (lambda: workspace.read("x"), FileMissingError),
        (lambda: workspace.read("a"), FileRefusedError),
        (lambda: workspace.entries("nowhere"), FileMissingError),
        (lambda: workspace.write("a", b""), FileRefusedError),
        (lambda: workspace.write("a/b/c", b""), FileRefusedError),
        (lambda: workspace.delete("a"), FileRefusedError),
        (lambda: workspace.delete("x"), FileMissingError),
        (lambda: workspace.write("../x", b""), PathRefusedError),
        (lambda: workspace.read("/etc/passwd"), PathRefusedError),
    ]:
        with pytest.raises(error):
            attempt()


def test_upper_and_lower_case_and_signs_of_patterns_are_letters(workspace: UserWorkspace) -> None:
    for path in ("a%/x", "A%/y", "ab/z", "a_/w"):
        workspace.write(path, path.encode())
    assert [entry.path for entry in workspace.entries("a%")] == ["a%/x"]
    assert workspace.move("a_", "c") == 1
    assert paths(workspace) == ["A%/y", "a%/x", "ab/z", "c/w"]


def test_a_file_of_one_person_is_no_file_of_another(workspace: UserWorkspace) -> None:
    workspace.write("a", b"mine")
    other = UserWorkspace(people_and_turns.person("other").pk)
    assert other.entries() == []
    with pytest.raises(FileMissingError):
        other.read("a")
    other.write("a", b"theirs")
    assert workspace.read("a") == b"mine"


def test_an_edit_is_written_only_over_what_was_read(workspace: UserWorkspace) -> None:
    workspace.write("a", b"one")
    workspace.write("a", b"two", over=compute_digest(b"one"))
    with pytest.raises(FileChangedError):
        workspace.write("a", b"three", over=compute_digest(b"one"))
    with pytest.raises(FileChangedError):
        workspace.write("b", b"three", over=compute_digest(b"one"))
    assert workspace.read("a") == b"two"
    assert WorkspaceFile.objects.count() == 1


def test_a_call_knows_its_own_work(workspace: UserWorkspace) -> None:
    workspace.write("a", b"one", key="k1")
    assert workspace.is_done("a", "k1")
    workspace.write("a", b"one", key="k2")
    assert workspace.is_done("a", "k2")
    for _ in range(2):
        assert workspace.move("a", "d/a", key="k3") == 1
    for _ in range(2):
        workspace.delete("d/a", key="k4")
    assert paths(workspace) == []
    assert len(list_deleted_files(User.objects.get(pk=workspace.owner_id))) == 1


def test_what_is_deleted_together_comes_back_together(user: User, workspace: UserWorkspace) -> None:
    for path in ("d/a.txt", "d/e/b.txt", "c"):
        workspace.write(path, path.encode())
    batch = services.delete_files(owner_id=user.pk, path="d", is_folder=True)
    assert paths(workspace) == ["c"]
    workspace.write("d/a.txt", b"new")
    workspace.write("d/e", b"a file now")
    assert services.restore_files(owner_id=user.pk, batch=batch) == ["d/a (2).txt", "d/e (2)/b.txt"]
    assert workspace.read("d/a (2).txt") == b"d/a.txt"
    assert workspace.read("d/a.txt") == b"new"
    assert services.restore_files(owner_id=user.pk, batch=batch) == []
    assert services.restore_files(owner_id=people_and_turns.person("other").pk, batch=batch) == []


def test_the_trash_holds_room_only_while_nobody_needs_it(
    user: User, workspace: UserWorkspace
) -> None:
    for number in range(5):
        workspace.write(f"{number}", b"x" * 2_000)
    for number in range(3):
        workspace.delete(f"{number}")
    workspace.write("new", b"x" * 3_000)
    assert [each.path for each in list_deleted_files(user)] == ["2"]
    assert sum(row.bytes for row in WorkspaceFile.objects.all()) == 9_000
    assert services.empty_file_trash(owner_id=user.pk) == 1
    assert list_deleted_files(user) == ()


def test_a_name_that_is_taken_gets_a_number(user: User, workspace: UserWorkspace) -> None:
    for _ in range(3):
        services.write_file(owner_id=user.pk, path="d/a.txt", data=b"x", is_numbered=True)
    services.write_file(owner_id=user.pk, path="d", data=b"x", is_numbered=True)
    services.write_file(owner_id=user.pk, path=".env", data=b"x", is_numbered=True)
    services.write_file(owner_id=user.pk, path=".env", data=b"y", is_numbered=True)
    assert paths(workspace) == [
        ".env", ".env (2)", "d (2)", "d/a (2).txt", "d/a (3).txt", "d/a.txt",
    ]  # fmt: skip


def test_a_cleared_workspace_is_empty_and_goes_on(user: User, workspace: UserWorkspace) -> None:
    workspace.write("d/x", b"old")
    workspace.write("y", b"old")
    workspace.delete("y")
    names = kept()
    workspace.clear()
    assert workspace.entries() == []
    assert not WorkspaceFile.objects.exists()
    assert not any(storages["workspace"].exists(name) for name in names)
    workspace.write("d/x", b"new")
    assert workspace.read("d/x") == b"new"


def test_a_million_empty_files_are_refused_early(workspace: UserWorkspace) -> None:
    for number in range(20):
        workspace.write(f"{number}", b"")
    for number in range(20, 60):
        with pytest.raises(QuotaError):
            workspace.write(f"{number}", b"")
    assert WorkspaceFile.objects.count() == 20


def test_a_store_that_fails_leaves_the_old_file_and_no_room_taken(
    bucket: Bucket,
) -> None:
    workspace = UserWorkspace(people_and_turns.person().pk)
    workspace.write("a", b"old")
    bucket.is_down = True
    with pytest.raises(Unreachable):
        workspace.write("a", b"x" * 5_000)
    bucket.is_down = False
    assert workspace.read("a") == b"old"
    workspace.write("a", b"x" * 5_000)
    workspace.write("b", b"x" * 5_000)
    assert set(bucket.objects) == kept()


def test_an_object_that_cannot_be_deleted_is_deleted_later(
    bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    workspace = UserWorkspace(people_and_turns.person().pk)
    workspace.write("a", b"old")
    WorkspaceFile.objects.update(state=FileState.GONE)
    bucket.is_down = True
    assert services.sweep_workspaces() == 0
    assert "could not be deleted" in caplog.text
    bucket.is_down = False
    assert services.sweep_workspaces() == 1
    assert (bucket.objects, kept()) == ({}, set())


def test_what_a_crash_left_is_swept_with_its_object(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = UserWorkspace(people_and_turns.person().pk)

    class Crash(BaseException):
        pass

    def crash(*_: object, **__: object) -> None:
        raise Crash

    from conversations.files.workspace import write

    with monkeypatch.context() as patched:
        for name in ("_publish_file", "discard_file", "sweep_gone"):
            patched.setattr(write, name, crash)
        with pytest.raises(Crash):
            workspace.write("a", b"half")
    assert workspace.entries() == []
    assert len(bucket.objects) == 1
    assert services.sweep_workspaces() == 0
    assert services.sweep_workspaces(now=timezone.now() + timedelta(hours=2)) == 1
    assert (bucket.objects, kept()) == ({}, set())


def test_the_trash_is_swept_when_its_time_is_over(bucket: Bucket, settings: Any) -> None:
    settings.AGENTWEB_TRASH_DAYS = 7
    workspace = UserWorkspace(people_and_turns.person().pk)
    workspace.write("a", b"x")
    workspace.delete("a")
    assert services.sweep_workspaces(now=timezone.now() + timedelta(days=6)) == 0
    assert services.sweep_workspaces(now=timezone.now() + timedelta(days=8)) == 1
    assert bucket.objects == {}


def test_bytes_changed_from_outside_are_not_read(bucket: Bucket) -> None:
    workspace = UserWorkspace(people_and_turns.person().pk)
    workspace.write("a", b"mine")
    (name,) = bucket.objects
    for other in (b"them", b"mine and more", b""):
        bucket.objects[name] = other
        with pytest.raises(FileRefusedError, match="from outside"):
            workspace.read("a")
    del bucket.objects[name]
    with pytest.raises(FileMissingError, match="is lost"):
        workspace.read("a")


def test_a_clearing_wins_over_a_write_that_is_on_its_way(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = UserWorkspace(people_and_turns.person().pk)
    put = objects.put_object

    def slow(name: str, data: bytes) -> None:
        workspace.clear()
        put(name, data)

    monkeypatch.setattr("conversations.files.workspace.write.put_object", slow)
    with pytest.raises(FileChangedError):
        workspace.write("a", b"x")
    assert (bucket.objects, kept()) == ({}, set())


def test_a_sweep_takes_only_so_many(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "MOST_SWEPT", 2)
    workspace = UserWorkspace(people_and_turns.person().pk)
    for number in range(3):
        workspace.write(f"{number}", b"x")
    WorkspaceFile.objects.update(state=FileState.GONE)
    assert [services.sweep_workspaces() for _ in range(3)] == [2, 1, 0]


@pytest.fixture(params=["guarded", "bucket"])
def shared(
    request: pytest.FixtureRequest, settings: Any, tmp_path: Path, transactional_db: None
) -> Iterator[UserWorkspace]:
    """A workspace that many threads write to."""
    use(settings, request.param, tmp_path)
    settings.AGENTWEB_WORKSPACE_FILES = 10
    yield UserWorkspace(people_and_turns.person(uuid4().hex).pk)
    BUCKETS.clear()


def at_once(call: Any, count: int = 50) -> list[Any]:
    def one(number: int) -> Any:
        try:
            return call(number)
        except ToolError as error:
            return error.code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_fifty_writers_at_the_limit_of_files_never_pass_it(shared: UserWorkspace) -> None:
    done = at_once(lambda number: shared.write(f"{number}", b"x" * 500))
    assert sorted(map(str, set(done))) == ["True", "quota"]
    assert done.count(True) == len(shared.entries()) == WorkspaceFile.objects.count() == 10
    assert all(shared.read(entry.path) == b"x" * 500 for entry in shared.entries())


def test_fifty_writers_at_the_limit_of_bytes_never_pass_it(shared: UserWorkspace) -> None:
    done = at_once(lambda number: shared.write(f"{number}", b"x" * 1_900))
    assert done.count(True) == len(shared.entries()) == 5
    assert set(done) == {True, "quota"}


def test_fifty_writers_of_one_file_leave_one_of_theirs(shared: UserWorkspace) -> None:
    done = at_once(lambda number: shared.write("a", b"%02d" % number * 30), 30)
    assert done.count(True) == 1
    data = shared.read("a")
    assert data == data[:2] * 30
    assert WorkspaceFile.objects.count() == 1


def test_a_reader_sees_the_old_or_the_new_file_whole(shared: UserWorkspace, settings: Any) -> None:
    settings.AGENTWEB_WORKSPACE_BYTES = 1_000_000
    shared.write("a", b"a" * 4_000)

    def one(number: int) -> object:
        if number % 2:
            return shared.write("a", (b"b", b"c")[number % 4 // 2] * 4_000)
        return shared.read("a")

    for found in at_once(one, 20):
        assert found is False or (len(found) == 4_000 and len(set(found)) == 1)


def test_what_comes_back_is_not_swept_meanwhile(shared: UserWorkspace, monkeypatch: Any) -> None:
    shared.write("a", b"x")
    batch = services.delete_files(owner_id=shared.owner_id, path="a")
    find, late = arrange._find_restore_path, timezone.now() + timedelta(days=99)
    with ThreadPoolExecutor(1) as pool:

        def find_late(*given: Any) -> str:
            wait([pool.submit(at_once, lambda _: services.sweep_workspaces(now=late), 1)], 0.5)
            return find(*given)

        monkeypatch.setattr(arrange, "_find_restore_path", find_late)
        services.restore_files(owner_id=shared.owner_id, batch=batch)
    assert shared.read("a") == b"x"
