"""Resolvers in the place of the system's: a name has the addresses that a test says."""

from __future__ import annotations

from tools.http.resolve import Resolve


def resolving(*addresses: str) -> Resolve:
    """Return a resolver to whom every name has these addresses."""

    async def resolve(_host: str, _port: int) -> list[str]:
        return list(addresses)

    return resolve
