"""Where erased text could still be, and the search for its digests there.

A place is searched by its bytes: the database's files, the raw segments of the index, the data
folder, Redis, a backup. What a row still holds is no leftover (the same words may stand in another
conversation), so the rows are read first. A place that cannot be read from here says so.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.storage import FileSystemStorage, storages
from django.db import connection

from conversations.files.workspace.disk import GuardedStorage
from conversations.log.search_index import INDEX_TABLE
from conversations.models import FileState, SearchText, WorkspaceFile
from conversations.operations.leftovers import phrases, sqlite_pages
from conversations.operations.leftovers.purge import connect_as_operator, list_tables
from conversations.operations.redis_address import connect_redis

logger = logging.getLogger("agentweb.erase")
_WORDS_OF = SearchText._meta.db_table


@dataclass(slots=True)
class Wanted:
    """Digests to search for, and those of them that rows hold."""

    key: bytes
    phrases: set[bytes]
    words: set[bytes]
    kept: set[bytes] = field(default_factory=set)
    kept_words: set[bytes] = field(default_factory=set)

    def find_phrases(self, pieces: Iterable[bytes]) -> tuple[set[bytes], int]:
        """Return the digests that are in the pieces and in no row, and the bytes read."""
        size = 0

        def count() -> Iterator[bytes]:
            nonlocal size
            for piece in pieces:
                size += len(piece)
                yield piece

        digests = phrases.digest_phrases(count(), self.key)
        found = {digest for digest in digests if digest in self.phrases}
        return found - self.kept, size

    def find_words(self, words: Iterable[bytes]) -> tuple[set[bytes], int]:
        """Return the digests of the words that are in no row, and the bytes of all words."""
        found, size = set(), 0
        for word in words:
            size += len(word)
            digest = phrases.digest_word(word, self.key)
            if digest in self.words:
                found.add(digest)
        return found - self.kept_words, size


@dataclass(slots=True)
class Place:
    """A place with the digests found there; None: it could not be read."""

    name: str
    found: set[bytes] | None
    bytes: int = 0
    note: str = ""
    #: Pages that hold old bytes, of whomever.
    dirty: int = 0


def note_rows(wanted: Wanted) -> Place:
    """Note what the rows of all tables hold; that is no leftover."""
    found, size = wanted.find_phrases(_read_rows())
    wanted.kept = found
    live = (phrases.digest_word(word, wanted.key) for word in _read_live_words())
    wanted.kept_words = {digest for digest in live if digest in wanted.words}
    return Place("rows", set(), size, f"{len(found)} phrases stand in rows that are kept")


def _read_rows() -> Iterator[bytes]:
    tables = [name for name in list_tables() if not name.startswith(INDEX_TABLE)]
    if connection.vendor == "postgresql":
        with connect_as_operator() as link:
            for table in tables:
                with link.cursor().copy(f'COPY "{table}" TO STDOUT (FORMAT csv)') as copy:
                    yield from map(bytes, copy)
        return
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - a table of ours
            for row in cursor:
                for value in row:
                    if isinstance(value, str | bytes):
                        yield (value.encode() if isinstance(value, str) else value) + b"\n"


def _read_live_words() -> Iterator[bytes]:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"SELECT word FROM ts_stat('SELECT words FROM {_WORDS_OF}')")  # noqa: S608
            yield from (word.encode() for (word,) in cursor)
            return
        cursor.execute(f"SELECT words FROM {_WORDS_OF}")  # noqa: S608
        for (words,) in cursor:
            yield from words.encode().split()


def search_sqlite(wanted: Wanted, path: Path, name: str) -> Iterator[Place]:
    """Search a SQLite database: its files, its index, its free pages."""
    files = [path, path.with_name(f"{path.name}-wal")]
    pieces = (piece for file in files if file.exists() for piece in sqlite_pages.read_file(file))
    yield Place(f"{name}: files", *wanted.find_phrases(pieces))
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        rows = database.execute(
            f'SELECT id, block FROM "{INDEX_TABLE}_data" WHERE id >= ?',  # noqa: S608
            [sqlite_pages.FIRST_LEAF],
        )
        leaves = (block for key, block in rows if not key & sqlite_pages.NO_LEAF)
        terms = (term for leaf in leaves for term in sqlite_pages.list_terms(leaf))
        yield Place(f"{name}: index", *wanted.find_words(terms))
    dirty = sqlite_pages.count_dirty_pages(path)
    note = f"{dirty} free pages hold old bytes: erase --rewrite overwrites them" if dirty else ""
    yield Place(f"{name}: free pages", set(), note=note, dirty=dirty)


def search_folder(wanted: Wanted) -> Iterator[Place]:
    """Search the other files of the site's folders; what people keep in workspaces is theirs."""
    roots = [Path(settings.DATA_DIR).resolve()]
    store = storages["workspace"]
    objects: set[Path] = set()
    if isinstance(store, GuardedStorage | FileSystemStorage):
        kept = WorkspaceFile.objects.filter(state__in=(FileState.LIVE, FileState.TRASH))
        folder = Path(store.location).resolve()
        objects = {folder / name for name in kept.values_list("object", flat=True)}
        roots += [] if folder.is_relative_to(roots[0]) else [folder]
    else:
        yield Place("workspace storage", None, note="its files are not on a disk of this machine")
    database = Path(str(connection.settings_dict["NAME"]))
    # A database's own files are searched as such.
    own = {database.resolve().with_name(database.name + end) for end in ("", "-wal", "-shm")}
    found: set[bytes] = set()
    size = 0
    for path in (path for root in roots for path in sorted(root.rglob("*"))):
        if path.is_file() and path not in objects | own:
            some, more = wanted.find_phrases(sqlite_pages.read_file(path))
            found, size = found | some, size + more
    yield Place("data folder", found, size)


def search_redis(wanted: Wanted) -> Iterator[Place]:
    """Search what Redis holds, where the site has one."""
    if not settings.REDIS_URL:
        return
    from redis import RedisError

    try:
        with closing(connect_redis(settings.REDIS_URL, 10)) as redis:
            # Not DUMP, which compresses.
            values = (
                value + b"\n"
                for key in redis.scan_iter(count=1_000)
                for value in _read_value(redis, key)
            )
            yield Place("Redis", *wanted.find_phrases(values))
    except (RedisError, ValueError) as error:
        yield Place("Redis", None, note=f"it cannot be read: {error}")


def _read_value(redis: Any, key: bytes) -> Iterator[bytes]:
    """Yield a key and all that is stored under it; raises ValueError for a module's type."""
    yield key
    match redis.type(key):
        case b"none":
            return
        case b"string":
            yield redis.get(key) or b""
        case b"list":
            yield from redis.lrange(key, 0, -1)
        case b"set":
            yield from redis.smembers(key)
        case b"zset":
            yield from redis.zrange(key, 0, -1)
        case b"hash":
            for pair in redis.hgetall(key).items():
                yield from pair
        case b"stream":
            for _, fields in redis.xrange(key):
                for pair in fields.items():
                    yield from pair
        case kind:
            raise ValueError(f"a key has the type {kind.decode()}")
