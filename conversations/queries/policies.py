"""The context policy that counts for a user, number by number, with where each comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from conversations.conf import PREFIX, conf, site_overrides
from conversations.context.policy import POLICY_FIELDS, policy_from
from conversations.models import User


@dataclass(frozen=True, slots=True)
class Number:
    name: str
    value: Any
    source: str


def numbers(user: User) -> list[Number]:
    """Give every number; raises PolicyError where the user's do not fit the site's."""
    site = site_overrides()
    policy = policy_from(conf.policy, site, user.policy)
    return [
        Number(name, getattr(policy, name), _source(name, site, user.policy))
        for name in POLICY_FIELDS
    ]


def _source(name: str, site: dict[str, Any], own: dict[str, Any]) -> str:
    if name in own:
        return "this user"
    return f"site, {PREFIX}{name.upper()}" if name in site else f"preset {conf.policy}"
