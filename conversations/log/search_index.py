"""The search index, written in the transaction of what it says.

Indexed is what people wrote or attached as text, the names of their files and what was answered, of
every branch, and titles. Left out are thinking, tool inputs and tool results: they are the agent's
working papers, many times larger than the talk, and folded away on the page; `recall` finds them.
Texts too long for one row are cut into parts between words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.db import connection, transaction

from conversations.context.tokens.media import TEXT
from conversations.context.view import attachment_refs, wire
from conversations.log import search_terms
from conversations.models import Attachment, Conversation, Message, SearchText

SPOKEN = ("prompt", "answer")
_TABLE = SearchText._meta.db_table
_FTS = f"{_TABLE}_fts"
# Names of our own; nothing of a person is in these.
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
_POSTGRESQL = f'CREATE INDEX IF NOT EXISTS "{_TABLE}_words" ON "{_TABLE}" USING gin (words)'


def install_index(using: str = "default", **_: Any) -> None:
    """Put the index on its table and fill it where it was never filled; repeating changes nothing.

    SQLite drops a table's triggers when a migration rebuilds it, so this follows every migration.
    """
    if connection.alias != using or _TABLE not in connection.introspection.table_names():
        return
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in _statements():
            cursor.execute(statement)
    if Message.objects.exists() and not SearchText.objects.exists():
        rebuild_index()


def _statements() -> Iterator[str]:
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
    """Index what was said; the caller's transaction is that of the messages."""
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
        if row.kind in SPOKEN
        for number, part in enumerate(search_terms.parts(_said(conversation, row)))
    ]
    SearchText.objects.bulk_create(found, batch_size=100)


def index_title(*, conversation: Conversation) -> None:
    """Index the present title in the place of the one before."""
    SearchText.objects.filter(conversation=conversation, seq=0).delete()
    SearchText.objects.bulk_create(
        SearchText(
            owner_id=conversation.owner_id,
            conversation=conversation,
            kind="title",
            text=conversation.title,
            words=part.terms,
            at=conversation.created_at,
        )
        for part in search_terms.parts(conversation.title)
    )


def rebuild_index() -> int:
    """Index everything anew, one conversation at a time; give how many."""
    keys = list(Conversation.objects.order_by("pk").values_list("pk", flat=True))
    for key in keys:
        with transaction.atomic():
            conversation = Conversation.objects.select_for_update().filter(pk=key).first()
            if conversation is None:
                continue
            SearchText.objects.filter(conversation=conversation).delete()
            index_title(conversation=conversation)
            rows = Message.objects.filter(conversation=conversation, kind__in=SPOKEN)
            index_messages(conversation=conversation, rows=rows.order_by("seq").iterator(200))
    return len(keys)


def _said(conversation: Conversation, row: Message) -> str:
    """Give what a message says, the names of its files and the texts among them included."""
    digests = (
        [one.digest for one in attachment_refs.list_references(row.content)]
        if row.kind == "prompt"
        else []
    )
    said = spoken(row.content)
    if not digests:
        return said
    files = Attachment.objects.filter(conversation=conversation, data__in=digests).order_by("pk")
    texts = files.filter(media_type=TEXT).values_list("data__text", flat=True)
    return "\n\n".join(filter(None, [said, *files.values_list("name", flat=True), *texts]))


def spoken(content: str) -> str:
    """Give the visible text of a message's blocks, as a column takes it."""
    blocks = wire.decode(content)
    texts = (str(block["text"]) for block in blocks if block.get("type") == "text")
    return wire.clean("\n\n".join(texts)).replace("\0", "\ufffd")
