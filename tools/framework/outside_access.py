"""The network access of the tools, as one value.

Public addresses on web ports are allowed; any other must be named as host:port. The resolver and
the trust store are fields, so a test, or a site with its own, changes data and not code.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass

from tools.http.page_cache import PageCache
from tools.http.resolve import Resolve, resolve_by_system

WEB_PORTS = frozenset({80, 443, *range(8000, 9000)})


@dataclass(frozen=True, slots=True)
class WebAccess:
    #: "host:port" exactly as in the URL, which may resolve to loopback or private addresses
    allowed_private: frozenset[str] = frozenset()
    ports: frozenset[int] = WEB_PORTS
    #: host names that are always refused, such as the site's own
    denied_hosts: frozenset[str] = frozenset()
    #: networks that are always refused, besides all that are not public
    denied_networks: tuple[str, ...] = ()
    #: bytes of a body, counted as received and as decoded
    max_bytes: int = 5_000_000
    max_redirects: int = 5
    #: seconds for everything: names, redirects, body
    deadline: float = 20.0
    connect_timeout: float = 5.0
    #: refuse redirects to another host, because something private was read before
    is_held_to_host: bool = False
    resolve: Resolve = resolve_by_system
    #: returns the person's cache of pages; None for no cache
    find_pages: Callable[[], PageCache] | None = None
    #: None for the trust store of the machine
    tls: ssl.SSLContext | None = None
