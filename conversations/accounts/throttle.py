"""The throttle of log-ins: an attempt is counted before its password or code is checked.

So a thousand parallel attempts cannot exceed the limit, whichever processes they reach; one that
proves right is subtracted again. Failures are forgotten by a whole log-in alone: who knows a
password would otherwise guess at the second factor without end. During a wait the right password is
refused too, and refused attempts do not prolong the wait. An unknown name costs the same queries
and hashes as a known one.

Counted are the address, the name at the address, the name at all addresses, and the whole site. A
browser in which the person logged in before has a count of its own in place of the last three, so
that strangers who guess do not lock the person out. The two counts over all addresses drain
steadily, so that no hour, wherever it begins, has more attempts than the setting says.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address, ip_network
from math import ceil

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.crypto import salted_hmac

from conversations.accounts.account_events import Kind, record_event
from conversations.conf import conf
from conversations.models import FailedLogIns, User

logger = logging.getLogger("agentweb.log_ins")

FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=30), timedelta(minutes=15)
OF_A_NAME, OF_A_PEER = timedelta(minutes=5), timedelta(minutes=10)
AN_HOUR = timedelta(hours=1)
#: The address of the counts over all addresses.
EVERYWHERE = ""
#: The name of the count of links to chats; no person has it.
LINKS = "\0links"
#: After this time without a wait, the next wait is as short as the first.
FORGOTTEN_AFTER = timedelta(hours=1)


class LogInThrottled(Exception):
    code = "log_in_throttled"

    def __init__(self, seconds: int) -> None:
        super().__init__(f"log-ins are refused for {seconds} s")
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class _Limit:
    most: int
    window: timedelta
    #: Attempts are forgotten one by one instead of all at the end of the window.
    is_steady: bool = False


def admit_log_in(
    *, peer: str, name: str = "", device: str = "", now: datetime | None = None
) -> None:
    """Count an attempt for this name, peer and known device; raises LogInThrottled."""
    now = now or timezone.now()
    with transaction.atomic():
        rows = _lock_rows(peer, name, device, now)
        waits = [row.until - now for row, _ in rows if row.until and row.until > now]
        if waits:
            raise LogInThrottled(ceil(max(waits).total_seconds()))
        for row, limit in rows:
            was_full = bool(row.waits)
            _count(row, limit, now)
            if limit.is_steady and row.waits and not was_full and row.user:
                record_event(user=row.user, kind=Kind.GUESSED, peer=peer)


def count_unknown_link(*, peer: str, now: datetime | None = None) -> None:
    """Count a stranger's link to a chat that does not work; raises LogInThrottled.

    A count of its own: a link that many of one network open after its end keeps nobody from
    logging in.
    """
    now = now or timezone.now()
    with transaction.atomic():
        row = _lock_row(_normalize_peer(peer), LINKS, now)
        if row.until and row.until > now:
            raise LogInThrottled(ceil((row.until - now).total_seconds()))
        _count(row, _Limit(conf.log_in_attempts_of_address, OF_A_PEER), now)


def refund_attempt(*, peer: str, name: str = "", device: str = "") -> None:
    """Subtract an attempt that proved right, with the wait that it began."""
    with transaction.atomic():
        for row, _ in _lock_rows(peer, name, device, timezone.now()):
            row.count = max(row.count - 1, 0)
            if row.until:
                row.until, row.waits = None, max(row.waits - 1, 0)
            row.save()


def forgive_log_in(*, peer: str, name: str, device: str = "") -> None:
    """Forget the failures of a name at the place where its person has logged in."""
    place = device or _normalize_peer(peer)
    FailedLogIns.objects.filter(peer=place, name_digest=_digest_name(name)).delete()


def forget_guesses(*, name: str) -> None:
    """Forget all failures of a name: what was guessed at is no longer its password."""
    FailedLogIns.objects.filter(name_digest=_digest_name(name)).delete()


def sweep_log_ins(*, now: datetime | None = None) -> int:
    """Delete counts that no longer matter; return how many."""
    old = (now or timezone.now()) - FORGOTTEN_AFTER
    rows = FailedLogIns.objects.filter(Q(until=None) | Q(until__lt=old), began_at__lt=old)
    return rows.delete()[0]


def _lock_rows(
    peer: str, name: str, device: str, now: datetime
) -> list[tuple[FailedLogIns, _Limit]]:
    """Lock the counts of an attempt, always in this order, so that two never deadlock."""
    place = _normalize_peer(peer)
    at_place = _Limit(conf.log_in_attempts, OF_A_NAME)
    rows = [(_lock_row(place, "", now), _Limit(conf.log_in_attempts_of_address, OF_A_PEER))]
    if name:
        # Queried for every name, so that an unknown one takes the same path.
        user = User.objects.filter(username=name).first()
        rows.append((_lock_row(device or place, name, now, user), at_place))
        if not device:
            of_account = _Limit(conf.log_in_attempts_of_account, AN_HOUR, is_steady=True)
            rows.append((_lock_row(EVERYWHERE, name, now, user), of_account))
    if not device:
        of_site = _Limit(conf.log_in_attempts_of_site, AN_HOUR, is_steady=True)
        rows.append((_lock_row(EVERYWHERE, "", now), of_site))
    return rows


def _lock_row(peer: str, name: str, now: datetime, user: User | None = None) -> FailedLogIns:
    row, _ = FailedLogIns.objects.select_for_update().get_or_create(
        peer=peer,
        name_digest=_digest_name(name) if name else "",
        defaults={"began_at": now, "user": user},
    )
    if row.began_at > now + LONGEST_WAIT:
        # Counted by a clock that was ahead: people would wait until its time has come.
        row.began_at, row.count, row.until, row.waits = now, 0, None, 0
    return row


def _count(row: FailedLogIns, limit: _Limit, now: datetime) -> None:
    if now >= max(row.began_at, row.until or row.began_at) + FORGOTTEN_AFTER:
        row.waits = 0
    if limit.is_steady:
        _drain(row, limit, now)
    elif now >= row.began_at + limit.window:
        row.began_at, row.count = now, 0
    row.count += 1
    row.until = None
    if _is_full(row, limit):
        wait = min(FIRST_WAIT * 2 ** min(row.waits, 10), LONGEST_WAIT)
        row.until = row.began_at + _step(limit) if limit.is_steady else now + wait
        row.waits += 1
        _log_wait(row, row.until - now)
    row.save()


def _is_full(row: FailedLogIns, limit: _Limit) -> bool:
    most = _half(limit) if limit.is_steady else limit.most
    return bool(limit.most) and row.count >= most


def _half(limit: _Limit) -> int:
    """Attempts at once; as many again drain within the window, which makes the whole limit."""
    return max(limit.most // 2, 1)


def _step(limit: _Limit) -> timedelta:
    return limit.window / _half(limit)


def _drain(row: FailedLogIns, limit: _Limit, now: datetime) -> None:
    drained = max((now - row.began_at) // _step(limit), 0)
    row.count = max(row.count - drained, 0)
    row.began_at = row.began_at + drained * _step(limit) if row.count else now
    row.waits = row.waits if row.count else 0


def _log_wait(row: FailedLogIns, wait: timedelta) -> None:
    who = row.user.public_id if row.user else "an unknown name" if row.name_digest else "all"
    what = "links to chats" if is_of_links(row) else f"log-ins of {who}"
    logger.warning(
        "%s from %s are refused for %d s after %d attempts",
        what, row.peer or "all addresses", wait.total_seconds(), row.count,
    )  # fmt: skip


def is_of_links(row: FailedLogIns) -> bool:
    """Return whether a count is one of links to chats that do not work."""
    return row.name_digest == _digest_name(LINKS)


def _normalize_peer(peer: str) -> str:
    """Return the unit of one client: an IPv4 address, or the /64 network of an IPv6 address."""
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return "unknown"
    if address.version == 4:
        return str(address)
    mapped = address.ipv4_mapped
    return str(mapped or ip_network((address, 64), strict=False))


def _digest_name(name: str) -> str:
    return salted_hmac("agentweb.log_ins", name.casefold(), algorithm="sha256").hexdigest()
