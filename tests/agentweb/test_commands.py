"""The commands of the record: what they print and how they end."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import threading
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from agentweb.management.commands import serve
from conversations import tasks
from conversations.log.triggers import list_guarded_tables
from conversations.models import Conversation, Turn, User
from conversations.runtime.process import process
from tests.support.stored_turns import played

pytestmark = pytest.mark.django_db


def run(*words: str) -> tuple[int, str, str]:
    """Run a command; give its exit code and what it printed."""
    out, err = StringIO(), StringIO()
    try:
        call_command(*words, stdout=out, stderr=err)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue(), err.getvalue()
    except CommandError as error:
        return error.returncode, out.getvalue(), str(error)
    return 0, out.getvalue(), err.getvalue()


def spoil() -> None:
    """Change one byte of one stored message."""
    with connection.cursor() as cursor:
        for table in list_guarded_tables():
            where = f' ON "{table}"' if connection.vendor == "postgresql" else ""
            cursor.execute(f'DROP TRIGGER "{table}_keep_update"{where}')
        sql = "UPDATE conversations_message SET content = REPLACE(content, 'Read', 'Rend')"
        cursor.execute(sql)


def record(name: str, prompt: str = "Hello") -> str:
    messages = [{"role": "user", "content": prompt}, {"role": "assistant", "content": "Hi"}]
    return json.dumps({"id": name, "messages": messages})


@pytest.fixture
def ada() -> User:
    return User.objects.create(username="ada")


def test_verify_says_that_everything_is_as_it_was() -> None:
    played()
    words = "1 conversation, 3 calls verified, 0 mismatches, chain intact\n"
    assert run("verify") == (0, words, "")
    assert run("verify", str(Conversation.objects.get().public_id)) == (0, words, "")


def test_verify_names_what_is_wrong_and_fails() -> None:
    played()
    spoil()
    for words in (("verify",), ("verify", str(Conversation.objects.get().public_id))):
        code, out, _ = run(*words)
        *problems, summary = out.splitlines()
        assert code == 1
        assert any(": message " in line and "changed" in line for line in problems)
        assert summary == (
            "1 conversation, 1 call verified, 2 mismatches, chain broken in 1, 3 problems"
        )


def test_verify_takes_a_database_of_before_an_upgrade_for_none_that_is_damaged() -> None:
    MigrationRecorder.Migration.objects.filter(app="conversations").latest("name").delete()
    code, told, error = run("verify")
    assert (code, told) == (2, "")
    assert error.startswith("the database is not of this version")


def test_a_start_names_a_model_that_nobody_can_use(settings: Any) -> None:
    err = StringIO()
    settings.AGENTWEB_MODEL, settings.AGENTWEB_TITLE_MODEL = "claude-0", "off"
    serve.Command(stderr=err).prepare()
    assert err.getvalue() == "AGENTWEB_MODEL: claude-0 is not an enabled model of the catalogue\n"


def test_verify_prints_one_json_object() -> None:
    played()
    code, out, _ = run("verify", "--json")
    assert code == 0
    assert json.loads(out) == {
        "conversations": 1, "verified": 3, "mismatches": 0, "broken_chains": 0, "problems": 0,
        "unnamed": 0, "found": [],
    }  # fmt: skip
    spoil()
    code, out, _ = run("verify", "--json")
    assert code == 1
    assert {problem["table"] for problem in json.loads(out)["found"]} == {"message", "apicall"}


@pytest.mark.parametrize("name", ["nonsense", "", str(UUID(int=1))])
def test_verify_of_an_unknown_conversation_is_bad_usage(name: str) -> None:
    assert run("verify", name)[0] == 2


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_import_reads_plain_and_packed_lines(pack: Any, ada: User, tmp_path: Path) -> None:
    file = tmp_path / "talks.jsonl"
    file.write_bytes(pack(f"{record('one')}\n\n{record('two')}\n".encode()))
    code, out, err = run("import_conversation", str(file), "--user", "ada")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].endswith("  one · Hello  (1 turns, 2 messages)")
    assert out.splitlines()[-1] == "2 imported, 0 refused"
    assert Conversation.objects.filter(owner=ada).count() == 2


def test_a_bad_line_is_named_and_the_others_are_imported(ada: User, tmp_path: Path) -> None:
    file = tmp_path / "talks.jsonl"
    file.write_text("\n".join([record("one"), "{", record("one"), record("two")]))
    code, out, err = run("import_conversation", str(file), "--user", "ada")
    assert code == 1
    assert f"{file}:2: not JSON" in err
    assert f"{file}:3: one was imported before" in err
    assert out.splitlines()[-1] == "2 imported, 2 refused"


def test_a_file_that_cannot_be_read_is_named(ada: User, tmp_path: Path) -> None:
    good, cut = tmp_path / "good.jsonl", tmp_path / "cut.jsonl.gz"
    good.write_text(record("one"))
    cut.write_bytes(gzip.compress(record("two").encode() * 50)[:-20])
    names = [str(tmp_path / "missing"), str(tmp_path), str(cut), str(good)]
    code, out, err = run("import_conversation", *names, "--user", "ada")
    assert code == 1
    assert err.count("cannot be read") == 3
    assert out.splitlines()[-1] == "1 imported, 3 refused"


def test_import_takes_a_model_and_a_limit(ada: User, tmp_path: Path) -> None:
    file = tmp_path / "talks.jsonl"
    file.write_text("\n".join(record(f"nr {number}") for number in range(5)))
    words = ("--user", "ada", "--model", "claude-haiku-4-5", "--limit", "3")
    assert run("import_conversation", str(file), str(file), *words)[0] == 0
    assert set(Conversation.objects.values_list("model", flat=True)) == {"claude-haiku-4-5"}
    assert Conversation.objects.count() == 3


@pytest.mark.parametrize(
    "words",
    [
        ("--user", "nobody"), ("--user", "ada", "--model", "gpt"),
        ("--user", "ada", "--limit", "0"), (),
    ],
)  # fmt: skip
def test_import_with_bad_words_is_bad_usage(words: tuple[str, ...], ada: User) -> None:
    assert run("import_conversation", "x", *words)[0] in (1, 2)
    assert not Conversation.objects.exists()


@pytest.fixture
def _of_a_worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give this process the loop that a worker has."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    monkeypatch.setattr(process, "_loop", loop)
    yield
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.mark.usefixtures("_of_a_worker")
@pytest.mark.django_db(transaction=True)
def test_the_task_sweeps_turns_whose_worker_is_gone() -> None:
    place = played()
    turn = Turn.objects.create(
        conversation=place.conversation, number=9, payload_digest="d", state="running",
        lease_until=timezone.now() - timezone.timedelta(minutes=5),
    )  # fmt: skip
    tasks.sweep()
    turn.refresh_from_db()
    assert turn.state == "interrupted"


def test_the_task_logs_what_is_wrong(caplog: pytest.LogCaptureFixture) -> None:
    played()
    with caplog.at_level(logging.ERROR, "agentweb.audit"):
        tasks.verify()
        assert caplog.records == []
        spoil()
        tasks.verify()
    assert {record.name for record in caplog.records} == {"agentweb.audit"}
    assert {record.levelname for record in caplog.records} == {"ERROR"}
    assert any("message" in record.getMessage() for record in caplog.records)


LOCAL = "http://127.0.0.1:8000/"


@pytest.mark.parametrize(
    ("https", "hosts", "origins", "url"),
    [
        (False, ["chat.example.org"], ["https://chat.example.org"], LOCAL),
        (True, ["chat.example.org"], ["https://chat.example.org:8443"], "https://chat.example.org:8443/"),
        (True, [".example.org", "chat.example.org"], ["https://*.example.org"], "https://chat.example.org/"),
        (True, [], [], LOCAL),
    ],
)  # fmt: skip
def test_the_first_link_is_where_browsers_reach_the_site(
    https: bool, hosts: list[str], origins: list[str], url: str, settings: Any
) -> None:
    settings.HTTPS, settings.CSRF_TRUSTED_ORIGINS = https, origins
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", *hosts]
    out = StringIO()
    serve.Command(stdout=out).greet(LOCAL, "token", opens=False)
    assert out.getvalue().endswith(f"here, once: {url}setup/token/\n")
