"""Numbers of paths that are taken, where names and paths are as long as they may be."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.files import workspace as services
from conversations.files.workspace import UserWorkspace
from conversations.models import User
from tests.support import people_and_turns
from tools.framework.errors import PathRefusedError

pytestmark = pytest.mark.django_db


@pytest.fixture
def user(settings: Any) -> User:
    settings.STORAGES = settings.STORAGES | {
        "workspace": {"BACKEND": "django.core.files.storage.InMemoryStorage"}
    }
    return people_and_turns.person()


@pytest.fixture
def workspace(user: User) -> UserWorkspace:
    return UserWorkspace(user.pk)


@pytest.mark.parametrize(
    ("path", "numbered"),
    [("r" * 251 + ".txt", "r" * 247 + " (2).txt"), ("r" * 249 + ".txt", "r" * 247 + " (2).txt"),
     # A character of three bytes is kept or left out as a whole.
     ("ab" + "\u5317" * 83 + ".txt", "ab" + "\u5317" * 81 + " (2).txt"),
     ("a." + "x" * 253, "a." + "x" * 249 + " (2)"),
     (("d" * 200 + "/") * 5 + "n" * 15 + ".md", ("d" * 200 + "/") * 5 + "n" * 12 + " (2).md")],
    ids=["longest name", "no room", "characters of bytes", "no ending", "longest path"],
)  # fmt: skip
def test_a_number_fits_into_the_longest_names_and_paths(
    path: str, numbered: str, user: User, workspace: UserWorkspace
) -> None:
    batches = []
    for number in (b"1", b"2"):
        workspace.write(path, number)
        batches.append(services.delete_files(owner_id=user.pk, path=path))
    workspace.write(path, b"3")
    assert services.restore_files(owner_id=user.pk, batch=batches[0]) == [numbered]
    third = numbered.replace("(2)", "(3)")
    assert services.restore_files(owner_id=user.pk, batch=batches[1]) == [third]
    assert [workspace.read(each) for each in (path, numbered, third)] == [b"3", b"1", b"2"]


def test_a_folder_of_the_longest_name_comes_back_beside_files(
    user: User, workspace: UserWorkspace
) -> None:
    folder = "\u00e9" * 127
    for name in ("a", "b/c"):
        workspace.write(f"{folder}/{name}", b"x")
    batch = services.delete_files(owner_id=user.pk, path=folder, is_folder=True)
    workspace.write(folder, b"a file now")
    workspace.write("\u00e9" * 125 + " (2)", b"and another")
    assert services.restore_files(owner_id=user.pk, batch=batch) == [
        "\u00e9" * 125 + " (3)/a", "\u00e9" * 125 + " (3)/b/c",
    ]  # fmt: skip


def test_what_has_no_room_for_a_number_stays_in_the_trash_as_a_whole(
    user: User, workspace: UserWorkspace
) -> None:
    folder = "/".join(["d" * 203] * 5)
    for name in ("a", "b.c"):
        workspace.write(f"{folder}/{name}", b"old")
    batch = services.delete_files(owner_id=user.pk, path=folder, is_folder=True)
    workspace.write(f"{folder}/b.c", b"new")
    with pytest.raises(PathRefusedError, match="longer than 1,024 bytes"):
        services.restore_files(owner_id=user.pk, batch=batch)
    assert [each.path for each in workspace.entries()] == [f"{folder}/b.c"]
    workspace.delete(f"{folder}/b.c")
    assert len(services.restore_files(owner_id=user.pk, batch=batch)) == 2
