"""Forwarding headers, accepted only from trusted proxies.

`X-Forwarded-For` is accepted from `AGENTWEB_TRUSTED_PROXIES` alone: the visitor is the last address
in it that is not a trusted proxy. `X-Forwarded-Proto` is also accepted from this machine and, where
no proxies are configured, from private networks: a false value affects only the sender's own
request. All other forwarding headers are removed.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from django.core.exceptions import ImproperlyConfigured

logger = logging.getLogger("agentweb.edge")

Headers = list[tuple[bytes, bytes]]
Networks = tuple[IPv4Network | IPv6Network, ...]
_FOR, _PROTO = b"x-forwarded-for", b"x-forwarded-proto"
#: Headers that only a proxy may set, and Daphne's own, which changes our links.
_SAID = {
    _FOR, _PROTO, b"x-forwarded-host", b"x-forwarded-port", b"x-forwarded-server",
    b"x-forwarded-prefix", b"x-real-ip", b"forwarded", b"daphne-root-path",
}  # fmt: skip

#: The proxy that was said to be none of ours, once for a process.
_told: set[str] = set()


@lru_cache(maxsize=8)
def read_networks(words: tuple[str, ...]) -> Networks:
    """Parse addresses and networks; raises ImproperlyConfigured, which stops the start."""
    try:
        return tuple(ip_network(word, strict=False) for word in words)
    except ValueError as error:
        raise ImproperlyConfigured(
            f"AGENTWEB_TRUSTED_PROXIES: {error}; use addresses or networks like 10.0.0.0/8"
        ) from error


def apply_forwarded(scope: Any, trusted: Networks) -> Any:
    """Return the scope with client and scheme as our own proxies report them."""
    peer = _address((scope.get("client") or ("",))[0])
    headers: Headers = scope["headers"]
    forwarded = [(name.lower(), value) for name, value in headers if name.lower() in _SAID]
    kept = [pair for pair in headers if pair[0].lower() not in _SAID] if forwarded else headers
    # `is_forwarded` stays when the forwarding headers are dropped.
    found = {**scope, "headers": kept, "root_path": "", "is_forwarded": bool(forwarded)}
    if peer is None or not forwarded:
        return found
    if not trusted and any(name == _FOR for name, _ in forwarded):
        _tell_unset(str(peer))
    schemes = [value for name, value in forwarded if name == _PROTO]
    if schemes and _may_set_scheme(peer, trusted):
        found["headers"] = [*kept, (_PROTO, schemes[-1].rpartition(b",")[2].strip())]
    if _is_of(peer, trusted):
        hops = b",".join(value for name, value in forwarded if name == _FOR).decode("latin1")
        found["client"] = [_visitor(peer, hops, trusted), 0]
    return found


def _tell_unset(peer: str) -> None:
    """Say once that visitors cannot be told apart."""
    if not _told:
        _told.add(peer)
        logger.warning(
            "AGENTWEB_TRUSTED_PROXIES IS NOT SET, and requests come through a proxy at %s: all"
            " visitors count as that address and share its limit of log-ins. Set it to the address"
            " of the proxy.",
            peer,
        )


def _visitor(peer: Any, hops: str, trusted: Networks) -> str:
    last = peer
    for hop in reversed(hops.split(",")):
        address = _address(hop.strip())
        if address is None:
            break
        last = address
        if not _is_of(address, trusted):
            break
    return str(last)


def _may_set_scheme(peer: Any, trusted: Networks) -> bool:
    return peer.is_loopback or _is_of(peer, trusted) or (not trusted and peer.is_private)


def _is_of(address: Any, trusted: Networks) -> bool:
    return any(address in network for network in trusted)


def _address(text: str) -> Any:
    """Parse an address, with or without a port; None if it is not one."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return found.ipv4_mapped or found if isinstance(found, IPv6Address) else found
