"""The texts of a conversation that is about to be erased, as digests to search for afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import CharField, Field, JSONField, Model, QuerySet, TextField

from conversations.audit.content_checks import list_text_digests
from conversations.context.view import wire
from conversations.log.chain import OWNED
from conversations.log.findings import split_chunks
from conversations.log.search_terms import split_terms
from conversations.models import Blob, Conversation, Envelope, ErasedDigests, SearchText
from conversations.operations.leftovers import phrases

#: Texts in memory at a time.
_CHUNK = 50


def digest_texts(*, conversation: Conversation, beside: Iterable[QuerySet[Any]]) -> ErasedDigests:
    """Return the digests of what erasing the conversation deletes, not saved.

    `beside` are its rows outside the log.
    """
    key = phrases.read_key()
    found: set[bytes] = set()
    for rows in (*beside, *_list_chained_rows(conversation)):
        for text in _read_texts(rows):
            found |= phrases.choose_phrases(text.encode("utf-8", "replace"), key)
    texts = SearchText.objects.filter(conversation=conversation).values_list("text", flat=True)
    words = {term.text for text in texts.iterator(_CHUNK) for term in split_terms(text)}
    return ErasedDigests(
        phrases=phrases.pack_digests(found),
        key=phrases.fingerprint_key(key),
        words=phrases.pack_digests({phrases.digest_word(word.encode(), key) for word in words}),
    )


def _list_chained_rows(conversation: Conversation) -> Iterator[QuerySet[Any]]:
    """Yield the rows of the log, and the texts that they reference."""
    for kind, lookup in OWNED.items():
        yield kind._base_manager.filter(**{lookup: conversation})
    texts: tuple[type[Model], ...] = (Envelope, Blob)
    for text, digests in zip(texts, list_text_digests(conversation.pk), strict=True):
        for some in split_chunks(digests):
            yield text._base_manager.filter(pk__in=some)


def _read_texts(rows: QuerySet[Any]) -> Iterator[str]:
    names = [field.name for field in _list_text_fields(rows.model)]
    if not names:
        return
    for row in rows.order_by().values_list(*names).iterator(_CHUNK):
        for value in row:
            if isinstance(value, str):
                yield value
            elif value:
                yield wire.encode(value)


def _list_text_fields(kind: type[Model]) -> list[Field[Any, Any]]:
    return [
        field
        for field in kind._meta.concrete_fields
        if isinstance(field, CharField | TextField | JSONField) and not field.choices
    ]
