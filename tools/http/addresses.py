"""Which addresses are public: an allow-list, because `is_private` is not enough.

`ipaddress` calls carrier NAT, cloud metadata, multicast and every way of writing an IPv4 address
inside an IPv6 one "not private". So an IPv4 address inside an IPv6 one is unwrapped; then IPv4 must
be outside IANA's special-purpose registry, and IPv6 inside 2000::/3 and outside the IPv6 registry.
Addresses of this machine are refused even when they are public.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def _parse_networks(text: str) -> tuple[Network, ...]:
    return tuple(ip_network(each) for each in text.split())


NOT_PUBLIC = _parse_networks(
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24"
    " 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24"
    " 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32"
    " 2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20"
)
GLOBAL_UNICAST = IPv6Network("2000::/3")
NAT64 = IPv6Network("64:ff9b::/96")

#: Networks that `allowed_private` can allow; never link-local or cloud metadata addresses.
PRIVATE = _parse_networks(
    "127.0.0.0/8 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 ::1/128 fc00::/7"
)
METADATA = _parse_networks("100.100.100.200/32 fd00:ec2::/32 fd20:ce::/32")
TEST_ADDRESS = "192.0.2.1"


def parse_address(text: str) -> Address | None:
    """Parse an address, unwrapping IPv4 in IPv6; None if it is not one or has a zone."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    if address.scope_id is not None:
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in NAT64 else address


def is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address not in GLOBAL_UNICAST:
        return False
    return not is_within(address, NOT_PUBLIC)


def is_private(address: Address) -> bool:
    return is_within(address, PRIVATE) and not is_within(address, METADATA)


def is_within(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(address in network for network in networks)


def is_own(text: str) -> bool:
    """Tell whether an address belongs to this machine, by binding a socket to it."""
    return _can_bind(text) and not _can_bind(TEST_ADDRESS)


def _can_bind(text: str) -> bool:
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((text, 0))
    except OSError:
        return False
    return True
