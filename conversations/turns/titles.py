"""Titles: the opening they are made from, the call that requests one, and storing it."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection
from django.utils import timezone

from conversations.agent.ports import Refused, Sending, Sent
from conversations.budgets.prices import find_enabled_model, load_price_list
from conversations.conf import conf
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.db import transact
from conversations.log.chain import lock_conversation, save_columns
from conversations.log.leases import Lease
from conversations.log.page_version import raise_locked
from conversations.log.search_index import extract_visible_text, index_title
from conversations.log.settings_version import VERSION, note_settings_version, reading_settings
from conversations.log.texts import make_storable
from conversations.models import ApiCall, ApiModel, Conversation
from conversations.turns import calls
from conversations.turns.side_calls import lock_for_side_call

OFF = ("", "off")
#: Raw SQL: for so few columns the ORM takes several times as long as the database.
_UNNAMED = f"""
SELECT c.model, {VERSION}
FROM conversations_turn t JOIN conversations_conversation c ON c.id = t.conversation_id
WHERE t.id = %(turn)s AND t.state = 'done' AND t.finish_reason <> 'refusal'
AND c.titled_by = 'words' AND c.deleted_at IS NULL
AND NOT EXISTS (
  SELECT 1 FROM conversations_turn o WHERE o.conversation_id = t.conversation_id
  AND o.id <> t.id AND o.state = 'done' AND o.finish_reason <> 'refusal')
"""  # noqa: S608 - our own words
_IS_ASKED = """
SELECT EXISTS (SELECT 1 FROM conversations_apicall WHERE conversation_id = %s AND purpose = %s)"""
_TEXTS = """
SELECT kind, content FROM conversations_message
WHERE turn_id = %s AND kind IN ('prompt', 'answer') ORDER BY seq"""
_TITLE = ApiCall.Purpose.TITLE
_ASKED = mark_recorded(gettext_noop("Its title was asked for before."))


@dataclass(frozen=True, slots=True)
class Opening:
    """The first prompt and its answer, and the model that writes the title."""

    prompt: str
    answer: str
    model: str


def has_titles() -> bool:
    """Return whether the site has a model write titles."""
    return conf.title_model not in OFF


@reading_settings()
def find_opening(turn_id: int) -> Opening | None:
    """Return the opening of a conversation that this turn completes, if it has no title yet."""
    if not has_titles():
        return None
    with connection.cursor() as cursor:
        # Only the first answered turn is read; refused turns do not count.
        cursor.execute(_UNNAMED, {"turn": turn_id})
        found = cursor.fetchone()
    if found is None:
        return None
    own_model, version = found
    note_settings_version(version)
    prompt, answer = _read_texts(turn_id)
    model = _find_usable_model(conf.title_model) or _find_usable_model(own_model)
    if model is None or not prompt.strip():
        return None
    return Opening(prompt, answer, model.pk)


@reading_settings()
@transact
def open_title_call(*, lease: Lease, sending: Sending) -> Sent:
    """Record the call for the title and hold what it can cost; raises Refused."""
    row = lock_for_side_call(lease.conversation_id)
    with connection.cursor() as cursor:
        cursor.execute(_IS_ASKED, [row.pk, _TITLE])
        if cursor.fetchone()[0]:
            raise Refused("titled", _ASKED)
    return calls.record_call(conversation=row, lease=lease, sending=sending)


@transact
def name_conversation(*, conversation_id: int, title: str) -> bool:
    """Store the model's title in place of the first words; a title typed by a person stays."""
    try:
        row = lock_conversation(conversation_id)
    except Conversation.DoesNotExist:
        return False
    if row.titled_by != "words":
        return False
    row.title, row.titled_by = make_storable(title), "model"
    raise_locked(row)
    # Not `updated_at`, the time of the last message.
    save_columns(row, ("title", "titled_by", "version"))
    index_title(conversation=row)
    return True


def _read_texts(turn_id: int) -> tuple[str, str]:
    """Return the visible text of a turn's prompt and of its answers."""
    texts: dict[str, list[str]] = {"prompt": [], "answer": []}
    with connection.cursor() as cursor:
        cursor.execute(_TEXTS, [turn_id])
        rows = cursor.fetchall()
    for kind, content in rows:
        if text := extract_visible_text(content).strip():
            texts[kind].append(text)
    return "\n\n".join(texts["prompt"]), "\n\n".join(texts["answer"])


def _find_usable_model(model: str) -> ApiModel | None:
    """Return the model if it is enabled and has all prices, else None."""
    row = find_enabled_model(model)
    return row if row is not None and load_price_list(model, timezone.now()).rates else None
