"""Ways to write an inner address that a resolver or a parser may take for one.

Families rather than examples: each part of a dotted form in decimal, octal and hexadecimal, parts
left out, other digits and dots, and every IPv6 form that carries an IPv4 address.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address
from itertools import product

LOOPBACK_IN_EVERY_SPELLING = [
    *("127.0.0.1", "localhost", "LOCALHOST", "localhost.", "127.0.0.1.", "0", "0.0.0.0", "0x7f.1"),
    *("2130706433", "017700000001", "127.1", "0177.0.0.1", "0x7f000001", "127.0.1", "0x7f.0x0.1"),
    *(
        "１２７.0.0.1",
        "①②⑦.0.0.1",
        "127。0。0。1",
        "%31%32%37.0.0.1",
        "127.0.0.1%00",
        "127.0.0.1%2f",
    ),
    *("[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
    *(
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
        "[::1%25lo]",
    ),
    *("[::1%lo]", "a.localhost", "app.local", "db.internal", "nas.lan", "x.home.arpa"),
]
INSIDE = [
    *("169.254.169.254", "192.0.0.192", "100.100.100.200", "[fd00:ec2::254]", "10.0.0.1"),
    *("metadata.google.internal", "metadata", "172.16.0.1", "172.31.255.255", "192.168.0.1"),
    *("100.64.0.1", "100.127.255.255", "224.0.0.1", "239.255.255.255", "255.255.255.255"),
    *("[ff02::1]", "[fe80::1]", "168.63.129.16", "198.18.0.1", "2852039166", "0xa9fea9fe"),
]
#: One of each range nobody outside has business with.
INNER_ADDRESSES = [
    *("127.0.0.1", "127.255.255.254", "0.0.0.0", "10.0.0.1", "172.16.5.4", "192.168.0.1"),
    *("169.254.169.254", "100.64.1.1", "192.0.0.192", "100.100.100.200", "224.0.0.251"),
]
DOTS = ("\u3002", "\uff0e", "\uff61")
DIGITS = ("\uff10", "\U0001d7ce", "\U0001d7d8", "\U0001d7ec")  # the zeros of other alphabets


def spellings(address: str) -> Iterator[str]:
    """Yield hosts that mean this IPv4 address to somebody."""
    yield from (form for count in (1, 2, 3, 4) for form in _numbers(address, count))
    yield from (f"{address}.", address.replace(".", "%2e"), f"%3{address[0]}{address[1:]}")
    yield from (address.replace(".", dot) for dot in DOTS)
    for zero in DIGITS:
        table = {ord("0") + n: chr(ord(zero) + n) for n in range(10)}
        yield address.translate(table)
        yield address.translate(table).replace(".", DOTS[0])
    yield from _in_ipv6(address)


def _numbers(address: str, count: int) -> Iterator[str]:
    """Yield inet_aton's forms: the last of `count` numbers takes what is left of the address."""
    value = int(IPv4Address(address))
    rest = 8 * (5 - count)
    parts = [value >> shift & 0xFF for shift in range(24, rest - 8, -8)][: count - 1]
    parts.append(value & (1 << rest) - 1)
    for forms in product(("{}", "00{:o}", "0x{:x}", "0X{:08X}"), repeat=count):
        yield ".".join(form.format(part) for form, part in zip(forms, parts, strict=True))


def _in_ipv6(address: str) -> Iterator[str]:
    value = int(IPv4Address(address))
    high, low = f"{value >> 16:x}", f"{value & 0xFFFF:x}"
    for tail in (address, f"{high}:{low}", f"{high:0>4}:{low:0>4}".upper()):
        yield from (f"[::ffff:{tail}]", f"[0:0:0:0:0:FFFF:{tail}]", f"[::{tail}]")
        yield from (f"[64:ff9b::{tail}]", f"[64:ff9b:1::{tail}]", f"[::ffff:0:{tail}]")
        yield from (f"[fe80::5efe:{tail}]", f"[::ffff:{tail}%25lo]", f"[::ffff:{tail}%lo]")
    yield from (f"[2002:{high}:{low}::]", f"[2002:{high}:{low}::1]", f"[2001:0:{high}:{low}::]")
