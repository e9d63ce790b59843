"""The throttle of log-ins: an attempt is counted before its password is checked.

So a thousand parallel attempts cannot exceed the limit, whichever processes they reach; a
successful one is subtracted again. During a wait the right password is refused too, and refused
attempts do not prolong the wait. An unknown name takes the same time as a known one.
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

from conversations.conf import conf
from conversations.models import FailedLogIns, User

logger = logging.getLogger("agentweb.log_ins")

FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=30), timedelta(minutes=15)
OF_A_NAME, OF_A_PEER = timedelta(minutes=5), timedelta(minutes=10)
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


def admit_log_in(*, peer: str, name: str = "", now: datetime | None = None) -> None:
    """Count an attempt for this name and this peer; raises LogInThrottled."""
    now = now or timezone.now()
    with transaction.atomic():
        # The address is always locked first, so that two attempts never deadlock.
        rows = [(_lock_row(peer, "", now), _read_peer_limit())]
        if name:
            rows.append((_lock_row(peer, name, now), _read_name_limit()))
        waits = [row.until - now for row, _ in rows if row.until and row.until > now]
        if waits:
            raise LogInThrottled(ceil(max(waits).total_seconds()))
        for row, limit in rows:
            _count(row, limit, now)


def forgive_log_in(*, peer: str, name: str = "") -> None:
    """Subtract a successful attempt, and forget the name's failures."""
    with transaction.atomic():
        row = _lock_row(peer, "", timezone.now())
        row.count = max(row.count - 1, 0)
        if row.until and row.count < _read_peer_limit().most:
            row.until, row.waits = None, max(row.waits - 1, 0)
        row.save()
        if name:
            FailedLogIns.objects.filter(
                peer=_normalize_peer(peer), name_digest=_digest_name(name)
            ).delete()


def sweep_log_ins(*, now: datetime | None = None) -> int:
    """Delete counts that no longer matter; return how many."""
    old = (now or timezone.now()) - FORGOTTEN_AFTER
    rows = FailedLogIns.objects.filter(Q(until=None) | Q(until__lt=old), began_at__lt=old)
    return rows.delete()[0]


def _read_name_limit() -> _Limit:
    return _Limit(conf.log_in_attempts, OF_A_NAME)


def _read_peer_limit() -> _Limit:
    return _Limit(conf.log_in_attempts_of_address, OF_A_PEER)


def _lock_row(peer: str, name: str, now: datetime) -> FailedLogIns:
    # Queried for every name, so that an unknown one takes the same path.
    user = User.objects.filter(username=name).only("pk").first()
    row, _ = FailedLogIns.objects.select_for_update().get_or_create(
        peer=_normalize_peer(peer),
        name_digest=_digest_name(name) if name else "",
        defaults={"began_at": now, "user": user},
    )
    return row


def _count(row: FailedLogIns, limit: _Limit, now: datetime) -> None:
    if now >= max(row.began_at, row.until or row.began_at) + FORGOTTEN_AFTER:
        row.waits = 0
    if now >= row.began_at + limit.window:
        row.began_at, row.count = now, 0
    row.count += 1
    row.until = None
    if limit.most and row.count >= limit.most:
        wait = min(FIRST_WAIT * 2 ** min(row.waits, 10), LONGEST_WAIT)
        row.until, row.waits = now + wait, row.waits + 1
        who = row.user.public_id if row.user else "an unknown name" if row.name_digest else "all"
        logger.warning(
            "log-ins of %s from %s are refused for %d s after %d attempts",
            who, row.peer, wait.total_seconds(), row.count,
        )  # fmt: skip
    row.save()


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
