"""Describes a session by its browser, its operating system and its shortened address."""

from __future__ import annotations

import re
from ipaddress import IPv6Address, ip_address, ip_network

#: In the order of the search: browsers name those that they are like.
_BROWSERS = (
    (r"\bEdgA?(iOS)?/", "Edge"),
    (r"\b(OPR|Opera|OPiOS)/", "Opera"),
    (r"\bSamsungBrowser/", "Samsung Internet"),
    (r"\bVivaldi/", "Vivaldi"),
    (r"\b(Firefox|FxiOS)/", "Firefox"),
    (r"\b(Headless)?(Chrome|Chromium|CriOS)/", "Chrome"),
    (r"\bVersion/\S+.*\bSafari/", "Safari"),
)
_SYSTEMS = (
    (r"\bWindows\b", "Windows"),
    (r"\biPhone\b", "iPhone"),
    (r"\biPad\b", "iPad"),
    (r"\bAndroid\b", "Android"),
    (r"\bCrOS\b", "ChromeOS"),
    (r"\bMac OS X\b|\bMacintosh\b", "macOS"),
    (r"\bLinux\b|\bX11\b", "Linux"),
)
#: Of a longer text the rest is not searched.
_MOST_CHARS = 400


def describe_device(user_agent: str) -> str:
    """Return browser and system in words of ours, or "" where neither is known."""
    text = user_agent[:_MOST_CHARS]
    found = (_find(_BROWSERS, text), _find(_SYSTEMS, text))
    return ", ".join(filter(None, found))


def _find(names: tuple[tuple[str, str], ...], text: str) -> str:
    return next((name for pattern, name in names if re.search(pattern, text)), "")


def shorten_address(peer: str) -> str:
    """Return the network that an address is in, such as "203.0.113.0/24"; "" for no address."""
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return str(ip_network((address, 24 if address.version == 4 else 48), strict=False))
