"""Titles: the opening they are made from, the call that requests one, and storing it."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from conversations.agent.ports import Refused, Sending, Sent
from conversations.budgets.prices import find_enabled_model, load_price_list
from conversations.conf import conf
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.db import transact
from conversations.log.leases import Lease
from conversations.log.page_version import raise_version
from conversations.log.search_index import extract_visible_text, index_title
from conversations.log.settings_version import reading_settings
from conversations.log.texts import make_storable
from conversations.models import ApiCall, ApiModel, Conversation, Message, Turn
from conversations.turns import calls
from conversations.turns.side_calls import lock_for_side_call

OFF = ("", "off")
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
    answered = Turn.objects.filter(state="done").exclude(finish_reason="refusal")
    unnamed = answered.filter(conversation__titled_by="words", conversation__deleted_at=None)
    found = unnamed.filter(pk=turn_id).values_list("conversation_id", "conversation__model").first()
    if found is None:
        return None
    conversation_id, own_model = found
    # Only the first answered turn is read; refused turns do not count.
    if answered.filter(conversation=conversation_id).exclude(pk=turn_id).exists():
        return None
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
    if ApiCall.objects.filter(conversation=row, purpose=_TITLE).exists():
        raise Refused("titled", _ASKED)
    return calls.record_call(conversation=row, lease=lease, sending=sending)


@transact
def name_conversation(*, conversation_id: int, title: str) -> bool:
    """Store the model's title in place of the first words; a title typed by a person stays."""
    rows = Conversation.objects.select_for_update()
    row = rows.filter(pk=conversation_id, titled_by="words").first()
    if row is None:
        return False
    row.title = make_storable(title)
    # An update, because `save` would change `updated_at`, the time of the last message.
    Conversation.objects.filter(pk=row.pk).update(title=row.title, titled_by="model")
    raise_version(row.pk)
    index_title(conversation=row)
    return True


def _read_texts(turn_id: int) -> tuple[str, str]:
    """Return the visible text of a turn's prompt and of its answers."""
    texts: dict[str, list[str]] = {"prompt": [], "answer": []}
    rows = Message.objects.filter(turn=turn_id, kind__in=texts).order_by("seq")
    for kind, content in rows.values_list("kind", "content"):
        if text := extract_visible_text(content).strip():
            texts[kind].append(text)
    return "\n\n".join(texts["prompt"]), "\n\n".join(texts["answer"])


def _find_usable_model(model: str) -> ApiModel | None:
    """Return the model if it is enabled and has all prices, else None."""
    row = find_enabled_model(model)
    return row if row is not None and load_price_list(model, timezone.now()).rates else None
