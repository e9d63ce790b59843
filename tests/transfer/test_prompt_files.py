"""Prompts from files, ours and Open WebUI's: added once, kept apart, or refused with a reason."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from conversations.models import SavedPrompt, User
from conversations.saved_prompts.saved_prompts import (
    MOST_PROMPTS,
    MOST_TEXT,
    Wording,
    add_prompt,
    export_prompts,
)
from conversations.transfer.prompt_files import MOST_BYTES, MOST_READ, import_prompt_file
from conversations.transfer.unpacking import UploadError
from tests.support import people_and_turns
from tests.web.pages import client_of
from tests.web.test_own_data import archive_of

pytestmark = pytest.mark.django_db
URL = "/settings/prompts/import/"
#: As Open WebUI writes them: older versions with `title` and a slash, newer ones with `name`.
OPEN_WEBUI: list[dict[str, Any]] = [
    {
        "command": "/summarize", "user_id": "5f1c", "title": "Summarize", "timestamp": 1735689600,
        "content": "Summarize {{CLIPBOARD}}", "access_control": None,
    },
    {
        "id": "7c3e", "command": "help_me", "user_id": "5f1c", "name": "Help me",
        "content": "Help me with {{topic}}.", "is_active": True, "tags": [],
    },
]  # fmt: skip


@pytest.fixture
def ada() -> User:
    return people_and_turns.person("ada")


def take(user: User, rows: Any) -> tuple[int, int, int]:
    data = rows if isinstance(rows, bytes) else json.dumps(rows).encode()
    report = import_prompt_file(user=user, file=io.BytesIO(data))
    return report.added, report.again, report.refused


def send(client: Client, data: bytes) -> Any:
    return client.post(URL, {"file": SimpleUploadedFile("prompts.json", data)})


def test_the_prompts_of_an_archive_are_those_that_were_exported(ada: User) -> None:
    for title, text in (("Plan", "Ü {{b}}"), ("Plan", "Other"), ("Note", "\\{{")):
        add_prompt(owner_id=ada.pk, wording=Wording(title, "", text))
    eve, stored = people_and_turns.person("eve"), io.BytesIO()
    archive = archive_of(ada)
    with zipfile.ZipFile(stored, "w") as copy:
        copy.writestr("prompts.json", archive.read("prompts.json"))
    stored.seek(0)
    report = import_prompt_file(user=eve, file=stored)
    assert (report.added, report.again, report.refused) == (3, 0, 0)
    assert export_prompts(eve.pk) == export_prompts(ada.pk)
    assert take(eve, archive.read("prompts.json")) == (0, 3, 0)


def test_the_prompts_of_open_webui_have_their_titles_and_commands(ada: User) -> None:
    assert take(ada, OPEN_WEBUI) == (2, 0, 0)
    assert export_prompts(ada.pk) == [
        {"title": "Help me", "command": "help-me", "text": "Help me with {{topic}}."},
        {"title": "Summarize", "command": "summarize", "text": "Summarize {{CLIPBOARD}}"},
    ]


def test_prompts_of_one_command_are_kept_apart(ada: User) -> None:
    add_prompt(owner_id=ada.pk, wording=Wording("Plan", "plan", "Mine"))
    rows = [{"title": f"Plan {n}", "command": "/plan", "text": f"Text {n}"} for n in range(2)]
    assert take(ada, rows) == (2, 0, 0)
    found = SavedPrompt.objects.order_by("command").values_list("command", "text")
    assert list(found) == [("plan", "Mine"), ("plan-2", "Text 0"), ("plan-3", "Text 1")]


def test_what_cannot_be_kept_is_named_with_its_reason_and_the_rest_is_added(ada: User) -> None:
    client = client_of(ada)
    rows = [
        {"title": "Good", "command": "good", "text": "A\0\ud800 <b>"},
        {"title": "Empty", "command": "empty", "text": " "},
        {"title": "Open", "command": "open", "text": "{{a"},
        {"title": "Long", "command": "long", "text": "x" * (MOST_TEXT + 1)},
        {"title": "<i>Number</i>", "command": "n", "content": 7},
        "text",
    ]
    answer = send(client, json.dumps(rows).encode())
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "1 added, 0 already here, 5 refused" in page
    assert "<bdi>Empty</bdi>: it has no text." in page
    assert "nothing closes it in this line" in page
    assert "its text is longer than 20,000 characters." in page
    assert "&lt;i&gt;Number&lt;/i&gt;" in page
    assert "<bdi>6</bdi>: this is no prompt." in page
    assert [row.title for row in SavedPrompt.objects.all()] == ["Good"]


def test_no_more_prompts_are_added_than_fit(ada: User) -> None:
    rows = [{"title": f"T{n}", "command": f"c{n}", "text": f"{n}"} for n in range(MOST_PROMPTS + 1)]
    client = client_of(ada)
    page = send(client, json.dumps(rows).encode()).content.decode()
    assert "200 added, 0 already here, 1 refused" in page
    assert "<bdi>T200</bdi>: more than 200 prompts do not fit." in page
    assert SavedPrompt.objects.count() == MOST_PROMPTS


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "no_json"),
        (b"\xff\xfe", "no_json"),
        (b"[" * 100_000, "no_json"),
        (b"[]", "none"),
        (b'{"conversations": []}', "none"),
        (b"7", "none"),
        (json.dumps([{"text": "x"}] * (MOST_READ + 1)).encode(), "too_many"),
        (b" " * (MOST_BYTES + 1), "too_big"),
        (b"PK\x03\x04broken", "broken"),
    ],
    ids=["empty", "binary", "deep", "no rows", "other", "number", "many", "big", "zip"],
)
def test_a_file_without_prompts_is_refused_and_changes_nothing(
    ada: User, data: bytes, code: str
) -> None:
    add_prompt(owner_id=ada.pk, wording=Wording("Plan", "plan", "Mine"))
    with pytest.raises(UploadError) as caught:
        take(ada, data)
    assert caught.value.code == code
    assert SavedPrompt.objects.count() == 1


def test_an_archive_that_unpacks_to_too_much_or_has_no_prompts_is_refused(ada: User) -> None:
    for name, code in (("prompts.json", "too_big"), ("other.json", "none")):
        stored = io.BytesIO()
        with zipfile.ZipFile(stored, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(name, b" " * (MOST_BYTES + 1))
        stored.seek(0)
        with pytest.raises(UploadError) as caught:
            import_prompt_file(user=ada, file=stored)
        assert caught.value.code == code


def test_the_page_says_what_is_wrong_with_a_file(ada: User) -> None:
    client = client_of(ada)
    assert client.post(URL).status_code == 400
    answer = send(client, b"no")
    assert answer.status_code == 400
    assert "The file is not JSON." in answer.content.decode()
