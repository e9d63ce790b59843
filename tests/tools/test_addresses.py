"""Which addresses are public."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.http.addresses import is_own, is_private, is_public, parse_address

PUBLIC = ["8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::1"]
NOT_PUBLIC = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.1.2.3"),
    *("169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1"),
    *("192.168.1.1", "198.18.0.1", "198.51.100.7", "203.0.113.7", "224.0.0.1", "240.0.0.1"),
    *("255.255.255.255", "168.63.129.16", "::", "::1", "::127.0.0.1", "::8.8.8.8", "fe80::1"),
    *("fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1", "2001::1", "2001:db8::1", "2002:7f00:1::"),
    *("2002:808:808::", "3fff::1", "4000::1", "100::1", "64:ff9b:1::7f00:1", "5f00::1"),
]
WRAPPED = [
    ("::ffff:127.0.0.1", "127.0.0.1"),
    ("::ffff:7f00:1", "127.0.0.1"),
    ("64:ff9b::7f00:1", "127.0.0.1"),
    ("64:ff9b::8.8.8.8", "8.8.8.8"),
    ("::ffff:169.254.169.254", "169.254.169.254"),
]


@pytest.mark.parametrize("text", PUBLIC)
def test_global_unicast_is_public(text: str) -> None:
    address = parse_address(text)
    assert address is not None
    assert is_public(address)


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_what_is_not_global_unicast_is_not_public(text: str) -> None:
    address = parse_address(text)
    assert address is not None
    assert not is_public(address)


@pytest.mark.parametrize(("text", "inside"), WRAPPED)
def test_an_ipv4_address_inside_an_ipv6_one_is_judged_as_itself(text: str, inside: str) -> None:
    assert parse_address(text) == IPv4Address(inside)


@pytest.mark.parametrize("text", ["", "x", "1.2.3", "fe80::1%eth0", "2606:4700::1%1", "1.2.3.4:80"])
def test_what_is_no_plain_address_is_none(text: str) -> None:
    assert parse_address(text) is None


@given(st.ip_addresses())
def test_no_address_is_both_public_and_private(address: object) -> None:
    parsed = parse_address(str(address))
    assert parsed is None or not (is_public(parsed) and is_private(parsed))


@given(st.ip_addresses(v=4))
def test_whatever_python_calls_private_is_not_public(address: IPv4Address) -> None:
    assert not (is_public(address) and (address.is_private or address.is_multicast))


@pytest.mark.parametrize("text", ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "fe80::1"])
def test_link_local_and_metadata_are_never_opened_as_private(text: str) -> None:
    address = parse_address(text)
    assert address is not None
    assert not is_private(address)


@pytest.mark.parametrize("text", ["127.0.0.1", "10.1.2.3", "192.168.0.5", "::1", "fd12::1"])
def test_private_ranges_can_be_opened(text: str) -> None:
    address = parse_address(text)
    assert address is not None
    assert is_private(address)


def test_an_address_of_this_machine_is_its_own() -> None:
    assert is_own("127.0.0.1")
    assert not is_own("192.0.2.7")
    assert not is_own("2001:db8::7")
