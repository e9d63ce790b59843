"""What the tools may reach outside, as one value.

Public addresses on web ports, and nothing else unless it is named here as host:port. The resolver
and the trust store are parts of it, so a test, or a site with its own, changes a value and not the
code.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from tools.http.page_cache import PageCache
from tools.http.resolve import Resolve, resolve_by_system

WEB_PORTS = frozenset({80, 443, *range(8000, 9000)})


@dataclass(frozen=True, slots=True)
class WebAccess:
    #: "host:port" exactly as in the URL, which may be loopback or private
    allowed_private: frozenset[str] = frozenset()
    ports: frozenset[int] = WEB_PORTS
    #: names never fetched, such as the site's own
    denied_hosts: frozenset[str] = frozenset()
    #: networks never fetched, besides all that are not public
    denied_networks: tuple[str, ...] = ()
    #: bytes of a body, counted as received and as decoded
    max_bytes: int = 5_000_000
    max_redirects: int = 5
    #: seconds for everything: names, redirects, body
    deadline: float = 20.0
    connect_timeout: float = 5.0
    #: a redirect to another host is refused: something private was read before
    is_held_to_host: bool = False
    resolve: Resolve = resolve_by_system
    #: the person's own kept pages; None: none are kept
    pages: PageCache | None = None
    #: None for the machine's own trust store
    tls: ssl.SSLContext | None = None
