"""Retention rules: after how many days chats go, by rule and not by their owner.

A rule is of a group or of everybody. Every rule that covers a person is in force at once, so the
strictest decides: whatever is due by one of them goes, because each is a promise that nothing is
kept for longer, and only the shortest time keeps all of them. A rule that erases also covers what
is in the trash, since another rule or the owner may have put it there earlier, and temporary
chats. A rule that moves to the trash leaves these alone: there they would stay longer than their
time, and could be brought back for good.

What a rule removes is a whole chat. The record does not let parts go: a sent file is named by the
requests that carried it, and the originals of what was shortened or summarised are what the later
requests are rebuilt and verified from, so erasing them alone would leave a record that cannot be
proven any more. A rule for attached files therefore takes the chats that carry one, and there is no
rule for the originals of transformations: they go with their chat, by the same erasure (erase.py),
with its record and its proof.

A chat goes N days after its last message, to the second, but not before it has been here for N days
since its owner brought it back from the trash or imported it with old dates. While it answers, or
under a legal hold (log/legal_holds.py), it stays.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.conf import conf
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.log.chain import lock_conversation
from conversations.log.legal_holds import is_held
from conversations.models import IS_LIVE, Attachment, Conversation, RetentionRule, Turn, User

logger = logging.getLogger("agentweb.erase")

#: Chats that one sweep moves at most.
MOST = 500
ERASE = RetentionRule.Then.ERASE
_IDLE = mark_recorded(gettext_noop("no message for %(count)s days (%(members)s)"))
_WITH_FILE = mark_recorded(gettext_noop("a file older than %(count)s days (%(members)s)"))
_EITHER = mark_recorded(
    gettext_noop("no message for %(count)s days or a file older than %(number)s days (%(members)s)")
)


@dataclass(frozen=True, slots=True)
class DueChat:
    """A chat that a rule would take now. Its title is content, so it is named by its id."""

    person: str
    chat: str
    rule: str
    last_message: datetime
    is_erased: bool


@dataclass(frozen=True, slots=True)
class Preview:
    """What rules would take now: some of the chats, and how many of how many people."""

    chats: tuple[DueChat, ...]
    trashed: int
    erased: int
    people: int
    #: Chats that stay because of a legal hold alone.
    held: int


@dataclass(frozen=True, slots=True)
class Limit:
    """The strictest that a person's rules say of their chats, or of those with files, in days."""

    of_files: bool
    #: None: not before it is erased.
    trash_after: int | None
    erase_after: int

    def __str__(self) -> str:
        """Return the sentence for the person."""
        if self.of_files and self.trash_after is None:
            text = _("Chats with a file are erased %(erase)d days after it was attached.")
        elif self.of_files:
            text = _(
                "Chats with a file go to the trash %(trash)d days after it was attached,"
                " and are erased after %(erase)d days."
            )
        elif self.trash_after is None:
            text = _("Chats are erased %(erase)d days after their last message.")
        else:
            text = _(
                "Chats go to the trash %(trash)d days after their last message,"
                " and are erased after %(erase)d days."
            )
        return text % {"trash": self.trash_after, "erase": self.erase_after}


def list_due(rule: RetentionRule, now: datetime, *, held: bool = False) -> QuerySet[Conversation]:
    """Return the chats that a rule takes now; with `held`, those that a hold keeps from it."""
    live = Turn.objects.filter(IS_LIVE, conversation=OuterRef("pk"))
    rows = Conversation.objects.exclude(Exists(live)).filter(is_held() if held else ~is_held())
    if rule.group_id is not None:
        rows = rows.filter(owner__groups=rule.group_id)
    lasting = Q(erase_at=None)
    rows = rows.filter(lasting | Q(erase_at__gt=now) if rule.then == ERASE else lasting)
    old = Q(pk__in=[])
    if rule.idle_days is not None:
        before = now - timedelta(rule.idle_days)
        not_restored = Q(restored_at=None) | Q(restored_at__lte=before)
        old = Q(not_restored, updated_at__lte=before)
    if rule.file_days is not None:
        files = Attachment.objects.filter(
            conversation=OuterRef("pk"), created_at__lte=now - timedelta(rule.file_days)
        )
        old = old | Q(Exists(files))
    return rows.filter(old)


def apply_retention(*, now: datetime | None = None) -> int:
    """Move what is due by a rule to the trash or have it erased; return how many chats.

    One that cannot be moved is logged and does not block the others; the next sweep tries again.
    """
    now = now or timezone.now()
    moved = 0
    for rule in _list_rules():
        keys = list(list_due(rule, now).order_by("pk").values_list("pk", flat=True)[: MOST - moved])
        moved += sum(_move_to_trash(rule, key, now) for key in keys)
    return moved


def _move_to_trash(rule: RetentionRule, key: int, now: datetime) -> bool:
    try:
        with transaction.atomic():
            row = lock_conversation(key)
            # A message, a hold or its owner may have come first.
            due = list_due(rule, now).filter(pk=row.pk)
            after = timedelta(0) if rule.then == ERASE else timedelta(max(0, conf.trash_days))
            return bool(
                Conversation.objects.filter(pk__in=due.values("pk")).update(
                    deleted_at=Coalesce("deleted_at", now),
                    erase_at=now + after,
                    removed_by_rule=describe_rule(rule),
                )
            )
    except Exception:
        logger.exception("a rule could not be applied to conversation %d", key)
        return False


def preview_rules(
    rules: Iterable[RetentionRule] | None = None, *, most: int = 50, now: datetime | None = None
) -> Preview:
    """Return what these rules, or all of the site's, would take now; nothing is changed."""
    now = now or timezone.now()
    chats: list[DueChat] = []
    taken, kept, people = set[int](), set[int](), set[int]()
    erased = 0
    for rule in _list_rules() if rules is None else rules:
        kept.update(list_due(rule, now, held=True).values_list("pk", flat=True))
        rows = list_due(rule, now).exclude(pk__in=taken) if taken else list_due(rule, now)
        found = rows.order_by("updated_at", "pk").values_list(
            "pk", "owner_id", "owner__username", "public_id", "updated_at"
        )
        for key, owner_id, name, public_id, at in found.iterator():
            if key in taken:
                continue
            taken.add(key)
            people.add(owner_id)
            erased += rule.then == ERASE
            if len(chats) < most:
                words = describe_rule(rule)
                chats.append(DueChat(name, str(public_id)[:8], words, at, rule.then == ERASE))
    return Preview(tuple(chats), len(taken) - erased, erased, len(people), len(kept))


def find_limits(user: User) -> list[Limit]:
    """Return what a person's rules say together: at most one limit for chats, and one for files."""
    covered = Q(group=None) | Q(group__in=user.groups.values("pk"))
    rules = list(RetentionRule.objects.filter(covered))
    limits = []
    for of_files in (False, True):
        days = [
            (rule.file_days if of_files else rule.idle_days, rule.then == ERASE) for rule in rules
        ]
        if limit := _combine(of_files, [(n, erases) for n, erases in days if n is not None]):
            limits.append(limit)
    return limits


def _combine(of_files: bool, days: list[tuple[int, bool]]) -> Limit | None:
    if not days:
        return None
    erase_after = min(n if erases else n + max(0, conf.trash_days) for n, erases in days)
    trashing = [n for n, erases in days if not erases and n < erase_after]
    return Limit(of_files, min(trashing, default=None), erase_after)


def find_rule_against(conversation: Conversation) -> str:
    """Return the rule, in words, that would take the chat again if it were brought back; or ""."""
    now = timezone.now()
    for rule in _list_rules():
        back = RetentionRule(group_id=rule.group_id, file_days=rule.file_days, then=ERASE)
        if rule.file_days and list_due(back, now).filter(pk=conversation.pk).exists():
            return describe_rule(rule)
    return ""


def describe_rule(rule: RetentionRule) -> str:
    """Return a rule in words that stand in a record, such as "no message for 30 days (Staff)"."""
    members = str(rule.group) if rule.group_id else "everybody"
    if rule.file_days is None:
        return _IDLE % {"count": rule.idle_days, "members": members}
    if rule.idle_days is None:
        return _WITH_FILE % {"count": rule.file_days, "members": members}
    return _EITHER % {"count": rule.idle_days, "number": rule.file_days, "members": members}


def _list_rules() -> Iterator[RetentionRule]:
    """Yield the rules of the site: those that erase first, as they leave nothing to the others."""
    rules = list(RetentionRule.objects.select_related("group"))
    yield from sorted(rules, key=lambda rule: (rule.then != ERASE, rule.pk))
