"""The target of a URL: its host name and the checked addresses it may be requested from.

There is one parser and one lookup. The connection goes to an address of this lookup and to nothing
else, so a name that resolves differently between check and connect changes nothing. If any address
of a name is refused, the name is: an answer that mixes public and private addresses is an attack or
a mistake.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_network

import httpx2

from tools.framework.clean_text import quote
from tools.framework.errors import AddressRefusedError
from tools.framework.outside_access import WebAccess
from tools.http.addresses import is_own, is_private, is_public, is_within, parse_address

LONGEST_URL = 4_096
MOST_ADDRESSES = 4
DEFAULT_PORTS = {"http": 80, "https": 443}
NAME = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
#: A last label by which other parsers read the whole host as an IPv4 address.
_NUMBER = re.compile(r"(?:\d+|0x[0-9a-f]*)", re.ASCII)
#: A letter in a host that has another small form in other parsers.
_CAPITAL_SIGMA = re.compile("//[^/?#]*\u03a3")
#: Names that mean this machine, its network or its cloud, whatever they resolve to.
INSIDE = ("localhost", "local", "internal", "home.arpa", "lan", "intranet", "onion")


@dataclass(frozen=True, slots=True)
class Target:
    url: httpx2.URL
    #: the name for TLS, None when the URL holds an address
    name: str | None
    addresses: tuple[str, ...]


async def resolve_target(url: httpx2.URL, access: WebAccess) -> Target:
    """Check a URL and resolve it to the addresses it may be requested from."""
    if url.scheme not in DEFAULT_PORTS:
        raise _refusal(url, "only http and https can be fetched")
    if url.userinfo:
        raise _refusal(url, "it carries a user name or password")
    host = url.raw_host.decode("ascii").lower().removesuffix(".")
    port = _port(url)
    literal = ":" in host
    if not literal and (len(host) > 253 or not NAME.fullmatch(host) or _is_odd_number(host)):
        raise _refusal(url, "it has no valid host name")
    is_opened = format_host_port(url) in access.allowed_private
    if not is_opened:
        _check_name(url, host, port, access)
    found = [host] if literal else await access.resolve(host, port)
    if not found:
        raise _refusal(url, "the host name cannot be resolved")
    for address in found:
        _check_address(url, address, access, is_opened=is_opened)
    name = None if parse_address(host) else host
    return Target(url.copy_with(fragment=None), name, tuple(found[:MOST_ADDRESSES]))


def parse_url(text: str, base: httpx2.URL | None = None) -> httpx2.URL:
    """Parse a URL; refuse one that other parsers might read differently."""
    if len(text) > LONGEST_URL:
        raise AddressRefusedError(f"The URL is longer than {LONGEST_URL:,} characters.")
    if "\\" in text:
        raise AddressRefusedError(f"{quote(text)} is refused: a URL has no backslashes.")
    if _CAPITAL_SIGMA.search(text):
        raise AddressRefusedError(f"{quote(text)} is refused: write its host in small letters.")
    try:
        url = httpx2.URL(text.strip())
        return url if base is None else base.join(url)
    except (httpx2.InvalidURL, ValueError) as error:
        raise AddressRefusedError(f"{quote(text)} is not a valid URL.") from error


def _check_name(url: httpx2.URL, host: str, port: int, access: WebAccess) -> None:
    if port not in access.ports:
        raise _refusal(url, f"port {port} is not open to tools")
    if host in access.denied_hosts or any(f".{host}".endswith(f".{each}") for each in INSIDE):
        raise _refusal(url, "the host is not on the public internet")


def _is_odd_number(host: str) -> bool:
    """Return whether a host ends like an IPv4 address and is none in its usual spelling."""
    return bool(_NUMBER.fullmatch(host.rpartition(".")[2])) and parse_address(host) is None


def _check_address(url: httpx2.URL, text: str, access: WebAccess, *, is_opened: bool) -> None:
    address = parse_address(text)
    if address is None:
        raise _refusal(url, "the host has no usable address")
    if is_within(address, tuple(ip_network(each) for each in access.denied_networks)):
        raise _refusal(url, "the host is in a network that is closed to tools")
    if is_opened and is_private(address):
        return
    if not is_public(address) or is_own(str(address)):
        raise _refusal(url, "the host is not on the public internet")


def format_host_port(url: httpx2.URL) -> str:
    """Return the "host:port" of a URL in one spelling."""
    host = url.raw_host.decode("ascii").lower().removesuffix(".")
    return f"[{host}]:{_port(url)}" if ":" in host else f"{host}:{_port(url)}"


def _port(url: httpx2.URL) -> int:
    return DEFAULT_PORTS.get(url.scheme, 0) if url.port is None else url.port


def _refusal(url: httpx2.URL, reason: str) -> AddressRefusedError:
    shown = quote(str(url.copy_with(userinfo=b"", fragment=None)), 200)
    return AddressRefusedError(f"{shown} is refused: {reason}.")
