"""The application's own role on PostgreSQL: it answers and erases, and can change no record."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tests.support import servers
from tests.support.forked_commands import execute_forked, run_forked

pytestmark = pytest.mark.only_database("postgres", "SQLite has no roles")

#: What the application does: a turn with a tool, a grant, and the erasing of all of it.
WORK = """
from django.core.management import call_command
from django.db import connection
from conversations.models import Erasure, Message
from conversations.audit import anchors
from conversations.budgets import grants
from conversations.audit.verify import Tally, verify_everything
from conversations.library.conversations import delete_everything
from conversations.library.erase import erase_due_conversations
from conversations.log.triggers import find_missing_guards
from tests.support import people_and_turns, stored_turns
call_command("roles")
call_command("roles", apply=True)
call_command("migrate", verbosity=0)
place, other = stored_turns.played(), stored_turns.played("bea")
grants.grant_more(budget=place.user.budgets.get(), amount=5, reason="a trial")
assert anchors.anchor_heads() == 3
assert find_missing_guards() == []
assert list(verify_everything(Tally())) == []
delete_everything(owner_id=place.user.pk)
assert erase_due_conversations(owner_id=place.user.pk) == 1
assert Erasure.objects.count() == 1
assert not Message.objects.filter(conversation__owner=place.user).exists()
assert list(verify_everything(Tally())) == []
with connection.cursor() as cursor:
    cursor.execute("SELECT current_user")
    print(cursor.fetchone()[0])
"""
DENIED = (errors.InsufficientPrivilege, errors.RestrictViolation)


def execute(lines: str, env: dict[str, str]) -> str:
    return execute_forked({**os.environ, **env}, lines)


@pytest.fixture(scope="module")
def urls(postgres: servers.Server, tmp_path_factory: Any) -> dict[str, str]:
    """Give the environment of an application whose role is not the owner, migrated and used."""
    owner = servers.make_database(postgres, "rights")
    env = {
        "DATABASE_URL": owner.replace("agentweb@", "agentweb_app@"),
        "AGENTWEB_MIGRATE_DATABASE_URL": owner,
        "AGENTWEB_ANCHOR_FILE": str(tmp_path_factory.mktemp("anchors") / "anchors.jsonl"),
    }
    said = execute(WORK, env)
    assert 'CREATE ROLE "agentweb_app" LOGIN NOSUPERUSER' in said
    assert "The role agentweb_app may add to the record" in said
    assert said.splitlines()[-1] == "agentweb_app"
    return env


@pytest.fixture
def app(urls: dict[str, str]) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(urls["DATABASE_URL"]) as link:
        yield link
        link.rollback()


def tables() -> list[str]:
    from conversations.log.triggers import list_guarded_tables

    return list_guarded_tables()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {t} SET {k} = {k}", "DELETE FROM {t}", "TRUNCATE {t} CASCADE", "DROP TABLE {t}",
        "ALTER TABLE {t} DISABLE TRIGGER ALL", "ALTER TABLE {t} DISABLE TRIGGER {t}_keep_update",
        "DROP TRIGGER {t}_keep_update ON {t}", "ALTER TABLE {t} ADD COLUMN more int",
        "ALTER TABLE {t} OWNER TO agentweb_app",
        "GRANT ALL ON {t} TO agentweb_app; UPDATE {t} SET {k} = {k}",
        "CREATE TRIGGER m BEFORE INSERT ON {t} EXECUTE FUNCTION agentweb_erasing_refuse()",
        "CREATE RULE mine AS ON INSERT TO {t} DO INSTEAD NOTHING",
        "SELECT * FROM {t} FOR UPDATE",
        "INSERT INTO {t} SELECT * FROM {t} ON CONFLICT ({k}) DO UPDATE SET {k} = EXCLUDED.{k}",
    ],
)  # fmt: skip
def test_the_role_is_refused_on_every_append_only_table(
    app: psycopg.Connection[Any], statement: str
) -> None:
    for table in tables():
        key = "digest" if table.endswith(("blob", "envelope")) else "id"
        for opening in ("", "SET agentweb.erasing = 'on'; "):
            if statement.startswith("INSERT"):
                # The chained tables refuse the place, those of texts the change.
                expected: Any = DENIED
            else:
                expected = errors.InsufficientPrivilege
            with pytest.raises(expected):
                app.execute((opening + statement.format(t=table, k=key)).encode())
            app.rollback()


@pytest.mark.parametrize(
    "statement",
    [
        "SET session_replication_role = replica", "CREATE TABLE mine (id int)",
        "CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS 'SELECT 1'", "SET ROLE agentweb",
        "CREATE OR REPLACE FUNCTION agentweb_erasing_refuse() RETURNS int LANGUAGE sql AS ''",
        "ALTER ROLE agentweb_app SUPERUSER", "DROP FUNCTION agentweb_erase_log(bigint)",
        "UPDATE django_migrations SET name = ''", "DELETE FROM django_migrations",
        "SELECT agentweb_erase_log(id) FROM conversations_conversation",
    ],
)  # fmt: skip
def test_the_role_has_no_other_way(app: psycopg.Connection[Any], statement: str) -> None:
    with pytest.raises(DENIED):
        app.execute(statement.encode())


def test_only_the_owner_cleans_what_was_erased(urls: dict[str, str]) -> None:
    clean = """
from conversations.library import erase_proof
from conversations.models import ErasedDigests
erase_proof.purge_if_due()
row = ErasedDigests.objects.get()
print(row.tried_at is not None, row.purged_at is not None)
"""
    told = "it where AGENTWEB_MIGRATE_DATABASE_URL is set"
    worker = {**urls, "AGENTWEB_MIGRATE_DATABASE_URL": ""}
    assert execute(clean, worker).split() == ["False", "False"]
    code, said = run_forked({**os.environ, **worker}, "erase", "--prove")
    assert code == 1
    assert told in said
    assert execute(clean, urls).split() == ["True", "True"]


def test_an_erasure_that_is_not_recorded_erases_nothing(app: psycopg.Connection[Any]) -> None:
    app.execute("UPDATE conversations_conversation SET deleted_at = now(), erase_at = now()")
    with pytest.raises(errors.RestrictViolation, match="its erasure is not recorded"):
        app.execute("SELECT agentweb_erase_log(id) FROM conversations_conversation")


def test_a_text_that_is_named_is_not_erased(app: psycopg.Connection[Any]) -> None:
    for table in ("conversations_blob", "conversations_envelope"):
        count = f"SELECT count(*) FROM {table}".encode()
        before = app.execute(count).fetchone()
        digests = f"SELECT array_agg(digest::text) FROM {table}"
        app.execute(f"SELECT agentweb_erase_texts(({digests}))".encode())
        assert app.execute(count).fetchone() == before
        assert before is not None
        assert before[0] > 0


def test_a_row_is_not_put_where_the_chain_has_passed(app: psycopg.Connection[Any]) -> None:
    columns = "conversation_id, seq + 1000, parent, kind, content, estimate, created_at, chain"
    with pytest.raises(errors.RestrictViolation, match="its chain has passed link"):
        app.execute(
            "INSERT INTO conversations_message (conversation_id, seq, parent, kind, content,"
            f" estimate, created_at, chain, link) SELECT {columns}, link"
            " FROM conversations_message LIMIT 1"
        )


def test_a_new_table_has_rights_after_the_next_migrate(urls: dict[str, str]) -> None:
    owner = urls["AGENTWEB_MIGRATE_DATABASE_URL"]
    with psycopg.connect(owner, autocommit=True) as link:
        link.execute("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM agentweb_app")
        link.execute("CREATE TABLE later (id int)")
    assert run_forked({**os.environ, **urls}, "migrate", "--verbosity=0") == (0, "")
    with psycopg.connect(urls["DATABASE_URL"]) as link:
        link.execute("INSERT INTO later VALUES (1)")
        with pytest.raises(errors.InsufficientPrivilege):
            link.execute("DELETE FROM conversations_message")
