"""The search index, written in the transaction of the messages it covers.

It covers titles, the text of prompts and answers of every branch, attached texts and the names of
files. Thinking, tool inputs and tool results are left out: they are many times larger than the
conversation and collapsed on the page; `recall` finds them. A text that is too long for one row is
split between words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.db import connection, transaction

from conversations.context.tokens.media import TEXT
from conversations.context.view import attachment_refs, wire
from conversations.context.view.stored_blocks import read_blocks
from conversations.log import search_terms
from conversations.log.prepared_rows import shape_of
from conversations.models import Attachment, Conversation, Message, SearchText

INDEXED_KINDS = ("prompt", "answer")
_TABLE = SearchText._meta.db_table
_FTS = f"{_TABLE}_fts"
#: The index itself: SQLite's full-text table, PostgreSQL's index of words.
INDEX_TABLE, WORDS_INDEX = _FTS, f"{_TABLE}_words"
# S608: only names from this module are inserted.
_SQLITE = f"""
CREATE VIRTUAL TABLE IF NOT EXISTS "{_FTS}" USING fts5(
  words, content='{_TABLE}', content_rowid='id', columnsize=0, prefix='2 3',
  tokenize="unicode61 remove_diacritics 0 categories 'L* N* Co M*'");
DROP TRIGGER IF EXISTS "{_TABLE}_put";
CREATE TRIGGER "{_TABLE}_put" AFTER INSERT ON "{_TABLE}" BEGIN
  INSERT INTO "{_FTS}"(rowid, words) VALUES (new.id, new.words);
END;
DROP TRIGGER IF EXISTS "{_TABLE}_drop";
CREATE TRIGGER "{_TABLE}_drop" AFTER DELETE ON "{_TABLE}" BEGIN
  INSERT INTO "{_FTS}"("{_FTS}", rowid, words) VALUES ('delete', old.id, old.words);
END;
DROP TRIGGER IF EXISTS "{_TABLE}_change";
CREATE TRIGGER "{_TABLE}_change" AFTER UPDATE OF words ON "{_TABLE}" BEGIN
  INSERT INTO "{_FTS}"("{_FTS}", rowid, words) VALUES ('delete', old.id, old.words);
  INSERT INTO "{_FTS}"(rowid, words) VALUES (new.id, new.words);
END;
"""  # noqa: S608
_POSTGRESQL = f'CREATE INDEX IF NOT EXISTS "{WORDS_INDEX}" ON "{_TABLE}" USING gin (words)'


def install_index(using: str = "default", **_: Any) -> None:
    """Create the index on its table, and fill it if it was never filled. An existing index stays,
    because even `IF NOT EXISTS` would lock the table against writers.

    SQLite drops a table's triggers when a migration rebuilds it, so this runs after every
    migration.
    """
    if connection.alias != using or _TABLE not in connection.introspection.table_names():
        return
    with transaction.atomic(), connection.cursor() as cursor:
        if not _is_installed(cursor):
            for statement in _split_statements():
                cursor.execute(statement)
    if Message.objects.exists() and not SearchText.objects.exists():
        reindex_conversations()


def _is_installed(cursor: Any) -> bool:
    if connection.vendor == "postgresql":
        cursor.execute("SELECT to_regclass(%s)", [f'"{WORDS_INDEX}"'])
        return cursor.fetchone()[0] is not None
    cursor.execute("SELECT sql || ';' FROM sqlite_master WHERE sql IS NOT NULL")
    present = {sql.strip() for (sql,) in cursor.fetchall()}
    created = (one.strip() for one in _split_statements() if one.startswith("CREATE"))
    return {one.replace(" IF NOT EXISTS", "") for one in created} <= present


def _split_statements() -> Iterator[str]:
    if connection.vendor == "postgresql":
        yield _POSTGRESQL
        return
    found = ""
    for line in _SQLITE.strip().splitlines():
        found += line + "\n"
        is_inside = "BEGIN" in found and "END;" not in found
        if line.endswith(";") and not is_inside:
            yield found
            found = ""


def index_messages(*, conversation: Conversation, rows: Iterable[Message]) -> None:
    """Index messages, in the caller's transaction."""
    found = [
        SearchText(
            owner_id=conversation.owner_id,
            conversation=conversation,
            message=row,
            seq=row.seq,
            kind=row.kind,
            part=number,
            text=part.text,
            words=part.terms,
            at=row.created_at,
        )
        for row in rows
        if row.kind in INDEXED_KINDS
        for number, part in enumerate(search_terms.split_parts(_collect_text(conversation, row)))
    ]
    _insert_texts(found)


def copy_index(*, origin: Conversation, copy: Conversation) -> None:
    """Index the messages of a copy, in the caller's transaction, as those of its origin are."""
    others = shape_of(SearchText, "id", "conversation_id", "message_id")
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{_TABLE}" (conversation_id, message_id, {others.columns()})'  # noqa: S608
            f" SELECT m.conversation_id, m.id, {others.columns('s')}"
            f' FROM "{_TABLE}" s JOIN "{Message._meta.db_table}" m ON m.seq = s.seq'
            " WHERE s.conversation_id = %s AND s.seq > 0 AND m.conversation_id = %s"
            " ORDER BY s.seq, s.part",
            [origin.pk, copy.pk],
        )


def index_title(*, conversation: Conversation) -> None:
    """Index the present title and remove the previous one."""
    with connection.cursor() as cursor:
        cursor.execute(
            f'DELETE FROM "{_TABLE}" WHERE conversation_id = %s AND seq = 0',  # noqa: S608
            [conversation.pk],
        )
    _insert_texts(
        [
            SearchText(
                owner_id=conversation.owner_id,
                conversation=conversation,
                kind="title",
                text=conversation.title,
                words=part.terms,
                at=conversation.created_at,
            )
            for part in search_terms.split_parts(conversation.title)
        ]
    )


def _insert_texts(rows: list[SearchText]) -> None:
    if len(rows) == 1:
        # Nearly always: the ORM takes several times as long to write the statement.
        shape_of(SearchText).insert(rows[0])
    else:
        SearchText.objects.bulk_create(rows, batch_size=100)


def reindex_conversations() -> int:
    """Index all conversations again, one at a time; return their number."""
    keys = list(Conversation.objects.order_by("pk").values_list("pk", flat=True))
    for key in keys:
        with transaction.atomic():
            conversation = Conversation.objects.select_for_update().filter(pk=key).first()
            if conversation is None:
                continue
            SearchText.objects.filter(conversation=conversation).delete()
            index_title(conversation=conversation)
            rows = Message.objects.filter(conversation=conversation, kind__in=INDEXED_KINDS)
            index_messages(conversation=conversation, rows=rows.order_by("seq").iterator(200))
    return len(keys)


def _collect_text(conversation: Conversation, row: Message) -> str:
    """Return the searchable text of a message, the names and texts of its files included."""
    digests = (
        [one.digest for one in attachment_refs.list_references(row.content)]
        if row.kind == "prompt"
        else []
    )
    visible = extract_visible_text(row.content)
    if not digests:
        return visible
    files = Attachment.objects.filter(conversation=conversation, data__in=digests).order_by("pk")
    texts = files.filter(media_type=TEXT).values_list("data__text", flat=True)
    return "\n\n".join(filter(None, [visible, *files.values_list("name", flat=True), *texts]))


def extract_visible_text(content: str) -> str:
    """Return the visible text of a message's blocks, without characters that a column refuses."""
    blocks = read_blocks(content)
    texts = (str(block["text"]) for block in blocks if block.get("type") == "text")
    return wire.clean("\n\n".join(texts)).replace("\0", "\ufffd")
