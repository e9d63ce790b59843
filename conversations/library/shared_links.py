"""Links with which others read a chat: made, changed and revoked by its owner, revoked by staff.

A chat has one link at a time. Its token has 192 bits and is computed from the link's id and the
site's `SECRET_KEY`, so that its owner can copy it again at any time, and neither the database nor a
backup has anything to open it with; it is found by its digest, which a change of the key does not
change. Whom a link lets in is decided in `access.py`, at each request.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Q
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from conversations.accounts.account_events import Kind, record_event
from conversations.accounts.api_tokens import digest_secret
from conversations.conf import conf
from conversations.db import transact
from conversations.library.conversations import LibraryError
from conversations.log.chain import lock_conversation
from conversations.log.tree import filter_path_turns
from conversations.models import LIVE, Conversation, SharedLink, User

Audience = SharedLink.Audience
#: What its owner changes of a link.
_CHANGED = ("leaf", "audience", "with_tools", "expires_at")
#: Within which of several openings one is counted.
COUNTED = timedelta(minutes=1)
#: Bytes of a token.
TOKEN_BYTES = 24


@dataclass(frozen=True, slots=True)
class LinkTerms:
    """Who may open a link, what it shows, until when; None: until it is revoked."""

    audience: str
    with_tools: bool
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class OwnLink:
    """A link as its owner sees it; `token` is "" where the key that made it is gone."""

    chat: str
    title: str
    token: str
    audience: str
    audience_label: str
    with_tools: bool
    created_at: datetime
    expires_at: datetime | None
    opened: int
    opened_at: datetime | None
    has_expired: bool
    leaf: int


def list_audiences() -> list[str]:
    """Return for whom links can be made on this site; none where there are no links."""
    offered: dict[str, list[str]] = {
        "people": [Audience.PEOPLE],
        "public": [Audience.PEOPLE, Audience.PUBLIC],
    }
    return offered.get(conf.sharing, [])


@transact
def share_conversation(
    *, conversation: Conversation, terms: LinkTerms, is_renewed: bool, peer: str
) -> SharedLink:
    """Make the link of a conversation, or change the one that works; raises LibraryError.

    A new one shows what has been answered up to now; so does a present one that is renewed.
    """
    row = lock_conversation(conversation.pk)
    _demand_shareable(row, terms)
    now = timezone.now()
    link = row.shared_links.filter(revoked_at=None).first()
    if link is not None and link.has_expired(now):
        # What was known before its time was over must not work again.
        SharedLink.objects.filter(pk=link.pk).update(revoked_at=now)
        link = None
    was_public = link is not None and link.audience == Audience.PUBLIC
    is_public, is_new = terms.audience == Audience.PUBLIC, link is None
    if link is None:
        link = _begin_link(row)
    if is_public and not was_public:
        record_event(user=_owner_of(row), kind=Kind.LINK_PUBLIC, peer=peer)
    elif is_new:
        record_event(user=_owner_of(row), kind=Kind.LINK_MADE, peer=peer)
    if is_renewed:
        link.leaf = _find_later_turn(row, link.leaf) or link.leaf
    link.audience, link.with_tools = terms.audience, terms.with_tools
    link.expires_at = terms.expires_at
    # Not the whole row: whoever revokes it meanwhile has the last word.
    link.save(update_fields=None if is_new else _CHANGED)
    return link


def _demand_shareable(row: Conversation, terms: LinkTerms) -> None:
    if terms.audience not in list_audiences():
        raise LibraryError("off", _("This site has no such links."))
    if row.is_temporary:
        raise LibraryError("temporary", _("A temporary chat cannot be shared."))
    if row.deleted_at is not None:
        raise LibraryError("deleted", _("This chat is in the trash."))


def _begin_link(row: Conversation) -> SharedLink:
    """Return a link that is not stored yet; raises LibraryError."""
    link = SharedLink(conversation=row, leaf=_find_last_turn(row))
    if not link.leaf:
        raise LibraryError("empty", _("There is no answer to share yet."))
    link.digest = digest_secret(compute_token(link))
    return link


def _find_last_turn(row: Conversation) -> int:
    """Return the last turn of the shown path that has ended; 0: none has."""
    ended = filter_path_turns(row).exclude(state__in=LIVE).order_by("-number")
    return ended.values_list("number", flat=True).first() or 0


def _owner_of(row: Conversation) -> User:
    return User.objects.get(pk=row.owner_id)


@transact
def revoke_link(*, conversation: Conversation, actor: User | None, peer: str) -> bool:
    """Revoke the link of a conversation; False where it has none. Its owner is told of others.

    No actor: a command's operator.
    """
    rows = SharedLink.objects.filter(conversation=conversation, revoked_at=None)
    if not rows.update(revoked_at=timezone.now(), revoked_by=actor):
        return False
    is_own = actor is not None and actor.pk == conversation.owner_id
    kind = Kind.LINK_REVOKED if is_own else Kind.LINK_STOPPED
    # The address of staff is nobody else's business.
    record_event(user=_owner_of(conversation), kind=kind, peer=peer if is_own else "")
    return True


@transact
def revoke_links(*, owner: User, peer: str) -> int:
    """Revoke all links of a person, those to what is in the trash too; return how many."""
    rows = SharedLink.objects.filter(conversation__owner=owner, revoked_at=None)
    count = rows.update(revoked_at=timezone.now(), revoked_by=owner)
    if count:
        record_event(user=owner, kind=Kind.LINK_REVOKED, peer=peer)
    return count


def list_unrevoked_links() -> list[SharedLink]:
    """Return the links of the site that may let somebody in, those to what is in the trash too."""
    rows = SharedLink.objects.filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()))
    return list(rows.filter(revoked_at=None).select_related("conversation"))


def find_link(conversation: Conversation) -> OwnLink | None:
    """Return the link of a conversation that works now."""
    now = timezone.now()
    rows = conversation.shared_links.filter(Q(expires_at=None) | Q(expires_at__gt=now))
    link = rows.filter(revoked_at=None).first() if list_audiences() else None
    return None if link is None else _show(link, conversation, now)


def is_shared(conversation: Conversation) -> bool:
    """Return whether others can read it by a link now."""
    return find_link(conversation) is not None


def has_later_turns(conversation: Conversation, leaf: int) -> bool:
    """Return whether the shown path has ended turns that a link up to `leaf` does not show."""
    return _find_later_turn(conversation, leaf) != 0


def _find_later_turn(row: Conversation, leaf: int) -> int:
    """Return the last ended turn of the shown path; 0 where a link up to `leaf` shows it.

    Not by order: another version that is shown has a lower number, and while the last answer is
    written again the last ended turn is one before it.
    """
    last = _find_last_turn(row)
    return 0 if filter_path_turns(row, end=leaf).filter(number=last).exists() else last


def list_own_links(user: User) -> list[OwnLink]:
    """Return the person's links that were not revoked, the newest first; none to the trash."""
    rows = SharedLink.objects.filter(
        conversation__owner=user, conversation__deleted_at=None, revoked_at=None
    )
    now = timezone.now()
    return [_show(row, row.conversation, now) for row in rows.select_related("conversation")]


def _show(link: SharedLink, conversation: Conversation, now: datetime) -> OwnLink:
    # A site that has come to let in people alone lets in people alone by older links, too.
    audience = link.audience if link.audience in list_audiences() else Audience.PEOPLE
    return OwnLink(
        chat=str(conversation.public_id),
        title=conversation.title or _("New chat"),
        token=find_token(link),
        audience=audience,
        audience_label=str(Audience(audience).label),
        with_tools=link.with_tools,
        created_at=link.created_at,
        expires_at=link.expires_at,
        opened=link.opened,
        opened_at=link.opened_at,
        has_expired=link.has_expired(now),
        leaf=link.leaf,
    )


def record_opening(link: SharedLink) -> None:
    """Count an opening, once within COUNTED: whoever loads a page over and over writes no more."""
    now = timezone.now()
    if link.opened_at is None or link.opened_at <= now - COUNTED:
        rows = SharedLink.objects.filter(Q(opened_at=None) | Q(opened_at__lte=now - COUNTED))
        rows.filter(pk=link.pk).update(opened=F("opened") + 1, opened_at=now)


def find_token(link: SharedLink) -> str:
    """Return the token of a link; "" where the key that it was computed with is known no more."""
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    tokens = (compute_token(link, key) for key in keys)
    return next((one for one in tokens if digest_secret(one) == link.digest), "")


def compute_token(link: SharedLink, key: str | None = None) -> str:
    mac = salted_hmac("agentweb.shared_links", str(link.public_id), key, algorithm="sha256")
    return urlsafe_b64encode(mac.digest()[:TOKEN_BYTES]).decode()


def export_links(user: User) -> list[dict[str, object]]:
    """Return all links of the person for their archive, without what opens them."""
    rows = SharedLink.objects.filter(conversation__owner=user).select_related("conversation")
    return [
        {
            "conversation": str(row.conversation.public_id),
            "audience": row.audience,
            "with_tools": row.with_tools,
            "created_at": row.created_at.isoformat(),
            "expires_at": row.expires_at and row.expires_at.isoformat(),
            "revoked_at": row.revoked_at and row.revoked_at.isoformat(),
            "opened": row.opened,
            "opened_at": row.opened_at and row.opened_at.isoformat(),
        }
        for row in rows.order_by("pk")
    ]
