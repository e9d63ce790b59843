"""Erased text is gone from files, index, statistics and the newest backup; `grep` is the witness.

Each test runs the site's own commands on a data folder and a database of its own; a program that
knows nothing of agentweb looks for the words in the raw files, before and after.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.served import PROJECT
from tests.support import prepared_databases, servers
from tests.support.environment import DATABASE

#: Plays conversations of two people, one of which says words that stand nowhere else.
PLAY = """
import django
django.setup()
from datetime import timedelta
from django.utils import timezone
from conversations.library.conversations import delete_conversation, rename_conversation
from conversations.models import Conversation
from tests.support import stored_turns
for at in range(12):
    stored_turns.played(f"person {at}", title=f"Where is the ferry number {at} to the island")
gone = stored_turns.played(
    "ada", title="Meet qxcanaryze under the old bridge at midnight with zebrafinch papers",
    result="The safe of qxcanaryze opens with the words tulip hammer ocean. " * 400)
rename_conversation(conversation=gone.conversation, title="Vbcanaryze remembers the bridge")
"""
ERASE = """
import django
django.setup()
from django.utils import timezone
from conversations.library.conversations import delete_conversation
from conversations.models import Conversation
for row in Conversation.objects.filter(owner__username="ada"):
    delete_conversation(conversation=row)
Conversation.objects.exclude(deleted_at=None).update(erase_at=timezone.now())
"""
#: Parts of three words: the index keeps a word without the beginning that it shares with others.
WITNESSES = ("xcanaryze", "bcanaryze", "ebrafinch")


class Site:
    """A data folder and a database, and the commands on it."""

    def __init__(self, folder: Path, files: Path, env: dict[str, str]) -> None:
        self.folder, self.files = folder, files
        self.env = {**os.environ, "AGENTWEB_DATA_DIR": str(folder), **env}

    def run(self, *arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], check=False, cwd=PROJECT, env=self.env,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def count_hits(self, *more: Path) -> dict[str, int]:
        """Ask grep in how many of the raw files each word is."""
        return {
            word: len(
                subprocess.run(
                    ["grep", "-r", "-a", "-i", "-l", word, str(self.files), *map(str, more)],
                    check=False, capture_output=True, text=True,
                ).stdout.splitlines()
            )
            for word in WITNESSES
        }  # fmt: skip


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    folder = tmp_path / "data"
    folder.mkdir()
    if DATABASE == "sqlite":
        shutil.copy(prepared_databases.sqlite(), folder)
        yield Site(folder, folder, {})
        return
    # A server of its own, whose files are searched; old parts of its log are deleted, not reused.
    server = servers.start_postgres("wal_recycle=off", "min_wal_size=32MB", "autovacuum=off")
    try:
        binaries = Path(server.command[0]).parent
        yield Site(folder, server.folder / "data", {
            "DATABASE_URL": prepared_databases.postgres(server),
            "PATH": f"{binaries}:{os.environ['PATH']}",
        })  # fmt: skip
    finally:
        server.discard()


def test_what_is_erased_is_found_before_and_nowhere_afterwards(site: Site, tmp_path: Path) -> None:
    site.run("-c", PLAY)
    site.run("-c", ERASE)
    old, new = tmp_path / "old.tar", tmp_path / "backups" / "new.tar"
    new.parent.mkdir()
    site.run("manage.py", "backup", str(old))
    assert min(site.count_hits().values()) > 0
    # The proof of an erasure that is not whole fails: the backup was made before it.
    said = site.run("manage.py", "erase", "--prove", "--rewrite", "--backup", str(old), code=1)
    assert said.startswith("1 erased\n")
    hits = [line for line in said.splitlines() if line.startswith("backup: ")]
    assert any(" 0 found" not in line for line in hits), said
    assert site.count_hits() == dict.fromkeys(WITNESSES, 0), said
    site.run("manage.py", "backup", str(new))
    said = site.run("manage.py", "erase", "--prove", "--backup", str(new.parent))
    last = said.splitlines()[-1]
    assert last.startswith("0 of "), said
    phrases, words = int(last.split()[2]), int(last.split()[5])
    assert phrases > 10
    assert words > 10
    assert "not readable" not in said
    searched = {line.split(":")[0] for line in said.splitlines() if " 0 found in 0 " not in line}
    assert {"rows", "database", "backup"} <= searched
    # Proven, so there is nothing left to look for; the record stays and the chain holds.
    assert site.run("manage.py", "erase", "--prove").splitlines()[-1].endswith("0 erasures found")
    assert "chain intact" in site.run("manage.py", "verify")


@pytest.mark.only_database("sqlite", "PostgreSQL overwrites nothing until its files are rewritten")
def test_the_running_site_leaves_nothing_behind(site: Site) -> None:
    site.run("-c", PLAY)
    site.run("-c", ERASE)
    assert min(site.count_hits().values()) > 0
    sweep = "import django; django.setup(); from conversations.library import erase, erase_proof;"
    site.run("-c", f"{sweep} erase.erase_due_conversations(); erase_proof.purge_if_due()")
    assert site.count_hits() == dict.fromkeys(WITNESSES, 0)
    assert "0 of " in site.run("manage.py", "erase", "--prove").splitlines()[-1]


def test_words_that_were_left_in_the_index_are_found(site: Site) -> None:
    site.run("-c", PLAY)
    site.run("-c", ERASE)
    # Erased, and nothing cleaned: rows are gone, the index still has the words.
    site.run("-c", "import django; django.setup(); from conversations.library import erase;"
             " print(erase.erase_due_conversations())")  # fmt: skip
    prove = """
import django
django.setup()
from conversations.library.erase_proof import prove_erasures
for place in prove_erasures().places:
    print(place.name, len(place.found or ()))
"""
    found = dict(line.rsplit(" ", 1) for line in site.run("-c", prove).splitlines())
    assert int(found["database: index"]) > 0, found
    assert site.count_hits()["ebrafinch"] > 0


def test_a_phrase_in_a_row_that_is_kept_is_no_leftover(site: Site) -> None:
    site.run("-c", PLAY)
    site.run("-c", PLAY.replace('"ada"', '"bob"'))
    site.run("-c", ERASE)
    said = site.run("manage.py", "erase", "--prove", "--rewrite")
    first = next(line for line in said.splitlines() if line.startswith("rows"))
    assert " 0 phrases stand" not in first, said
    assert "0 of " in said.splitlines()[-1]
    assert min(site.count_hits().values()) > 0


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
