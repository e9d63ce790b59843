"""Erased text is gone from files, index, statistics and the newest backup, as `grep` finds.

Each test runs the site's own commands on a data folder and a database of its own; a program that
knows nothing of agentweb looks for the words in the raw files, before and after.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.rig.forking import base
from tests.support import prepared_databases, servers
from tests.support.environment import DATABASE
from tests.support.servers import Server

#: Plays conversations of several people, one of which says words that stand nowhere else.
PLAY = """
from conversations.library.conversations import rename_conversation
from tests.support import stored_turns
def meet(name):
    gone = stored_turns.played(
        name, title="Meet qxcanaryze under the old bridge at midnight with zebrafinch papers",
        result="The safe of qxcanaryze opens with the words tulip hammer ocean. " * 400)
    rename_conversation(conversation=gone.conversation, title="Vbcanaryze remembers the bridge")
"""
#: Ada's is to be erased.
MEET = f"""
{PLAY}
from django.utils import timezone
from conversations.library.conversations import delete_conversation
from conversations.models import Conversation
for at in range(12):
    stored_turns.played(f"person {{at}}", title=f"Where is the ferry number {{at}} to the island")
meet("ada")
for row in Conversation.objects.filter(owner__username="ada"):
    delete_conversation(conversation=row)
Conversation.objects.exclude(deleted_at=None).update(erase_at=timezone.now())
"""
#: Parts of three words: the index keeps a word without the beginning that it shares with others.
CANARIES = ("xcanaryze", "bcanaryze", "ebrafinch")


class Site:
    """A data folder and a database, and the commands on it, each a process of its own."""

    def __init__(self, folder: Path, files: Path, env: dict[str, str]) -> None:
        self.folder, self.files = folder, files
        settings = {"DJANGO_SETTINGS_MODULE": "agentweb.settings"}
        self.env = {"AGENTWEB_DATA_DIR": str(folder), **settings, **env}
        self.template = base().template(folder.parent, self.env)

    def run(self, *arguments: str, code: int = 0, **env: str) -> str:
        """Run a command of manage.py and return what it said; `env` differs from the site's."""
        return self._start("run_command", code, env, arguments=arguments)

    def execute(self, lines: str) -> str:
        """Execute lines of Python where Django is set up, and return what they printed."""
        return self._start("execute_lines", 0, {}, lines=lines)

    def _start(self, function: str, code: int, env: dict[str, str], **arguments: Any) -> str:
        # Not in the data folder, which is searched.
        log = self.folder.with_name("run.log")
        log.unlink(missing_ok=True)
        # Settings that differ are read by a process in which nothing has read them yet.
        parent, changed = (base(), self.env | env) if env else (self.template, {})
        process = parent.start(
            function, f"tests.support.site_commands:{function}", log,
            environment=changed, **arguments,
        )  # fmt: skip
        ended, said = process.wait(300), log.read_text(encoding="utf-8")
        assert ended == code, said
        return said

    def keep(self) -> None:
        """Put the files aside as they are, while no process has them open."""
        for path in {self.folder, self.files}:
            subprocess.run(["cp", "-a", str(path), f"{path}.kept"], check=True)

    def renew(self) -> None:
        """Put the files back as they were kept."""
        for path in {self.folder, self.files}:
            shutil.rmtree(path)
            subprocess.run(["cp", "-a", f"{path}.kept", str(path)], check=True)

    def count_hits(self, *more: Path) -> dict[str, int]:
        """Ask grep in how many of the raw files each word is."""
        return {
            word: len(
                subprocess.run(
                    ["grep", "-r", "-a", "-i", "-l", word, str(self.files), *map(str, more)],
                    check=False, capture_output=True, text=True,
                ).stdout.splitlines()
            )
            for word in CANARIES
        }  # fmt: skip


@pytest.fixture(scope="module")
def played() -> Iterator[tuple[Site, Server | None]]:
    """Play the conversations once and keep the files; on PostgreSQL, the server is stopped."""
    folder = servers.folder_of("erased") / "data"
    folder.mkdir()
    server = None
    try:
        if DATABASE == "sqlite":
            shutil.copy(prepared_databases.sqlite(), folder)
            site = Site(folder, folder, {})
        else:
            # A server of its own, whose files are searched; old parts of its log are deleted.
            server = servers.start_postgres(
                "wal_recycle=off", "min_wal_size=32MB", "autovacuum=off"
            )
            binaries = Path(server.command[0]).parent
            site = Site(folder, server.folder / "data", {
                "DATABASE_URL": prepared_databases.postgres(server),
                "PATH": f"{binaries}:{os.environ['PATH']}",
            })  # fmt: skip
        site.execute(MEET)
        if server is not None:
            server.stop()
        site.keep()
        yield site, server
        site.template.end()
    finally:
        if server is not None:
            server.discard()
        shutil.rmtree(folder.parent)


@pytest.fixture
def site(played: tuple[Site, Server | None]) -> Iterator[Site]:
    """The site as its files were after playing, byte for byte."""
    site, server = played
    site.renew()
    if server is None:
        yield site
        return
    server.start()
    yield site
    server.stop()


def test_what_is_erased_is_found_before_and_nowhere_afterwards(site: Site, tmp_path: Path) -> None:
    old, new = tmp_path / "old.tar", tmp_path / "backups" / "new.tar"
    new.parent.mkdir()
    site.run("backup", str(old))
    assert min(site.count_hits().values()) > 0
    # The proof of an erasure that is not whole fails: the backup was made before it.
    said = site.run("erase", "--prove", "--rewrite", "--backup", str(old), code=1)
    assert said.startswith("1 erased\n")
    hits = [line for line in said.splitlines() if line.startswith("backup: ")]
    assert any(" 0 found" not in line for line in hits), said
    assert site.count_hits() == dict.fromkeys(CANARIES, 0), said
    site.run("backup", str(new))
    said = site.run("erase", "--prove", "--backup", str(new.parent))
    last = said.splitlines()[-1]
    assert last.startswith("0 of "), said
    phrases, words = int(last.split()[2]), int(last.split()[5])
    assert phrases > 10
    assert words > 10
    assert "not readable" not in said
    searched = {line.split(":")[0] for line in said.splitlines() if " 0 found in 0 " not in line}
    assert {"rows", "database", "backup"} <= searched
    # Proven, so there is nothing left to look for; the record stays and the chain holds.
    assert site.run("erase", "--prove").splitlines()[-1].endswith("0 erasures found")
    assert "chain intact" in site.run("verify")


@pytest.mark.only_database("sqlite", "PostgreSQL overwrites nothing until its files are rewritten")
def test_the_running_site_leaves_nothing_behind(site: Site) -> None:
    assert min(site.count_hits().values()) > 0
    sweep = "from conversations.library import erase, erase_proof;"
    site.execute(f"{sweep} erase.erase_due_conversations(); erase_proof.purge_if_due()")
    assert site.count_hits() == dict.fromkeys(CANARIES, 0)
    assert "0 of " in site.run("erase", "--prove").splitlines()[-1]


def test_words_that_were_left_in_the_index_are_found(site: Site) -> None:
    # Erased, and nothing cleaned: rows are gone, the index still has the words.
    site.execute("from conversations.library import erase;"
             " print(erase.erase_due_conversations())")  # fmt: skip
    prove = """
from conversations.library.erase_proof import prove_erasures
for place in prove_erasures().places:
    print(place.name, len(place.found or ()))
"""
    found = dict(line.rsplit(" ", 1) for line in site.execute(prove).splitlines())
    assert int(found["database: index"]) > 0, found
    assert site.count_hits()["ebrafinch"] > 0


def test_a_phrase_in_a_row_that_is_kept_is_no_leftover(site: Site) -> None:
    site.execute(f'{PLAY}\nmeet("bob")')
    said = site.run("erase", "--prove", "--rewrite")
    first = next(line for line in said.splitlines() if line.startswith("rows"))
    assert " 0 phrases stand" not in first, said
    assert "0 of " in said.splitlines()[-1]
    assert min(site.count_hits().values()) > 0


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("SECRET_KEY", "another key than the one of the erasure " * 2, "erasures"),
        (
            "AGENTWEB_WORKSPACE_STORAGE",
            '{"BACKEND": "django.core.files.storage.InMemoryStorage"}',
            "workspace storage",
        ),
    ],
)
def test_what_cannot_be_searched_is_not_proven(
    site: Site, tmp_path: Path, name: str, value: str, place: str
) -> None:
    site.run("erase", "--rewrite")
    backup = tmp_path / "after.tar"
    site.run("backup", str(backup))
    said = site.run("erase", "--prove", "--backup", str(backup), code=3, **{name: value})
    assert f"{place}: not readable found" in said
    assert said.splitlines()[-1] == "not proven: 1 places could not be read"
    # The digests are still there to search for.
    assert "of 1 erasures found" in site.run("erase", "--prove").splitlines()[-1]


def test_a_workspace_outside_the_data_folder_is_searched(site: Site, tmp_path: Path) -> None:
    site.run("erase", "--rewrite")
    left = tmp_path / "files" / "1" / "left"
    left.parent.mkdir(parents=True)
    left.write_text("The safe of qxcanaryze opens with the words tulip hammer ocean. " * 40)
    backend = "conversations.files.workspace.disk.GuardedStorage"
    storage = {"BACKEND": backend, "OPTIONS": {"location": str(tmp_path / "files")}}
    env = {"AGENTWEB_WORKSPACE_STORAGE": json.dumps(storage)}
    said = site.run("erase", "--prove", code=1, **env)
    [line] = [line for line in said.splitlines() if line.startswith("data folder: ")]
    assert " 0 found" not in line
    assert "not readable" not in said


@pytest.mark.only_database("sqlite", "a reader holds the log of SQLite alone")
def test_a_cleaning_that_failed_is_not_repeated_at_once(site: Site) -> None:
    reader = sqlite3.connect(site.folder / "agentweb.sqlite3", isolation_level=None)
    with closing(reader):
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM conversations_message").fetchone()
        said = site.execute("""
from conversations.library import erase, erase_proof
erase.erase_due_conversations()
erase_proof.purge_if_due()
erase_proof.purge_if_due()
""")  # fmt: skip
    assert said.count("erased text was not removed from the index yet: the database is in use") == 1


def test_all_that_redis_holds_is_read(settings: Any, redis_url: str) -> None:
    """Redis compresses a text that repeats itself, so its own dump shows no word of it."""
    from redis import Redis

    from conversations.operations.leftovers import phrases, places

    kinds = ("string", "list", "set", "zset", "hash", "stream")
    texts = {kind: f"tulip hammer ocean {kind} " * 200 for kind in kinds}
    key = phrases.read_key()
    sought = {kind: phrases.choose_phrases(text.encode(), key) for kind, text in texts.items()}
    wanted = places.Wanted(key, set().union(*sought.values()), set())
    settings.REDIS_URL = redis_url
    with closing(Redis.from_url(redis_url)) as redis:
        try:
            redis.set("erased string", texts["string"])
            redis.rpush("erased list", texts["list"])
            redis.sadd("erased set", texts["set"])
            redis.zadd("erased zset", {texts["zset"]: 1})
            redis.hset("erased hash", "field", texts["hash"])
            redis.xadd("erased stream", {"field": texts["stream"]})
            assert b"hammer ocean string tulip hammer ocean string tulip" not in redis.dump(
                "erased string"
            )
            [place] = places.search_redis(wanted)
        finally:
            redis.delete(*(f"erased {kind}" for kind in kinds))
    assert place.found is not None
    for kind, digests in sought.items():
        assert digests <= place.found, kind


@pytest.mark.parametrize("size", [4, 36, 400])
def test_every_piece_of_a_text_is_searched_for(size: int) -> None:
    from conversations.operations.leftovers import phrases

    words = [b"word%d" % at for at in range(size)]
    key = phrases.read_key()
    chosen = phrases.choose_phrases(b" ".join(words), key)
    assert chosen == phrases.unpack_digests(phrases.pack_digests(chosen))
    most = phrases.WORDS + phrases.WINDOW - 1
    for start in range(max(1, size - most + 1)):
        piece = b"\x00".join(words[start : start + most]).upper()
        cut = [piece[:9], piece[9:]]
        assert chosen & set(phrases.digest_phrases(cut, key)), start
