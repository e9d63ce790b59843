"""What a title is made from: how the conversation began, and the model that names it."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils import timezone

from conversations.conf import conf
from conversations.models import ApiModel, Message, Turn
from conversations.queries.prices import price_list
from conversations.services.search import spoken

OFF = ("", "off")


@dataclass(frozen=True, slots=True)
class Opening:
    """The first prompt and its answer; `thinks` says that the model cannot answer without."""

    prompt: str
    answer: str
    model: str
    thinks: bool


def opening(turn_id: int) -> Opening | None:
    """Give how a conversation began, if this turn ended its beginning and nobody has named it."""
    if conf.title_model in OFF:
        return None
    unnamed = Turn.objects.filter(conversation__titled_by="words", conversation__deleted_at=None)
    turn = unnamed.select_related("conversation").filter(pk=turn_id).first()
    if turn is None or not _is_first(turn):
        return None
    conversation = turn.conversation
    prompt, answer = _said(turn, "prompt"), _said(turn, "answer")
    model = _usable(conf.title_model) or _usable(conversation.model)
    if model is None or not prompt.strip():
        return None
    return Opening(prompt, answer, model.pk, model.thinking == ApiModel.Thinking.ALWAYS)


def _is_first(turn: Turn) -> bool:
    """Say whether it is the first one that was answered; a refused one is none."""
    answered = Turn.objects.filter(conversation=turn.conversation_id, state="done")
    others = answered.exclude(pk=turn.pk).exclude(finish_reason="refusal")
    is_answered = turn.state == "done" and turn.finish_reason != "refusal"
    return is_answered and not others.exists()


def _said(turn: Turn, kind: str) -> str:
    rows = Message.objects.filter(turn=turn, kind=kind).order_by("seq")
    return "\n\n".join(text for row in rows if (text := spoken(row.content).strip()))


def _usable(model: str) -> ApiModel | None:
    """Give a model that is enabled and has its prices."""
    row = ApiModel.objects.filter(pk=model, is_enabled=True).first()
    return row if row is not None and price_list(model, timezone.now()).rates else None
