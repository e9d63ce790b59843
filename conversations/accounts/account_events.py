"""Events of an account: recorded for its page, and told by mail when they may be an attack."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from conversations.accounts.account_mail import send_account_mail
from conversations.accounts.preferences import read_preferences
from conversations.db import transact
from conversations.models import AccountEvent, User

Kind = AccountEvent.Kind
#: Events are shown and kept for so long.
KEPT_FOR = timedelta(days=90)
#: Shown on the account's page.
MOST_SHOWN = 12
#: Links of one kind that one account is sent within an hour.
MOST_LINKS = 5
#: Told by the mail with the link itself, and what lets nobody in who is not logged in.
_UNTOLD = (
    Kind.RESET_ASKED, Kind.RESET_MADE, Kind.EMAIL_ASKED,
    Kind.LINK_MADE, Kind.LINK_REVOKED, Kind.LINK_STOPPED,
)  # fmt: skip


@transact
def record_event(*, user: User, kind: Kind, peer: str = "") -> AccountEvent:
    """Record an event; after the transaction the person is told by mail, where there is one."""
    event = AccountEvent.objects.create(user=user, kind=kind, peer=peer[:64], at=timezone.now())
    if kind not in _UNTOLD:
        transaction.on_commit(lambda: _tell(user, event))
    return event


def log_change(*, user: User, actor: User, words: str) -> None:
    """Record in the admin's log what an administrator did to an account."""
    LogEntry.objects.create(
        user=actor,
        content_type=ContentType.objects.get_for_model(User),
        object_id=str(user.pk),
        object_repr=user.get_username(),
        action_flag=CHANGE,
        change_message=words,
    )


def list_account_events(user_id: int) -> list[AccountEvent]:
    """Return the newest events."""
    since = timezone.now() - KEPT_FOR
    return list(AccountEvent.objects.filter(user=user_id, at__gt=since)[:MOST_SHOWN])


def take_unseen_guessing(user_id: int) -> datetime | None:
    """Return when the person's password was last guessed at, once; None: not since the last one."""
    rows = AccountEvent.objects.filter(user=user_id, kind=Kind.GUESSED, is_shown=False)
    newest = rows.first()
    if newest is not None:
        rows.update(is_shown=True)
    return newest.at if newest is not None else None


@transact
def admit_link(*, user: User, kind: Kind, peer: str) -> bool:
    """Record that a link is asked for; False where the account has had its share of this hour."""
    User.objects.select_for_update().get(pk=user.pk)
    since = timezone.now() - timedelta(hours=1)
    if AccountEvent.objects.filter(user=user, kind=kind, at__gt=since).count() >= MOST_LINKS:
        return False
    record_event(user=user, kind=kind, peer=peer)
    return True


def sweep_account_events() -> int:
    """Delete events that are no longer shown; return how many."""
    return AccountEvent.objects.filter(at__lt=timezone.now() - KEPT_FOR).delete()[0]


def _tell(user: User, event: AccountEvent) -> None:
    with translation.override(read_preferences(user.preferences).language or None):
        text = _(
            "%(what)s.\n\nAccount: %(name)s\nTime: %(time)s\nAddress: %(peer)s\n\n"
            "If this was you, there is nothing to do. If not, set a new password: it ends all"
            " other sessions."
        ) % {
            "what": event.get_kind_display(),
            "name": user.get_username(),
            "time": event.at.strftime("%Y-%m-%d %H:%M UTC"),
            "peer": event.peer or _("unknown"),
        }
        send_account_mail(to=user.email, subject=str(event.get_kind_display()), text=text)
