"""OpenID providers: who may log in by one, as whom, and in which groups.

An account belongs to the provider's own number of a person (`sub`), never to a name or an address
that the provider tells: whoever takes the name of a local account gets another name here. An
existing account is taken over by its e-mail address only where the setting of the provider says so,
the provider says that the address is verified, exactly one active account has it, and that account
is not staff.

The groups that the setting maps are the provider's: at each log-in the person is put into those
that the claim names and taken out of the others; all other groups stay. A provider that maps a role
of the admin also says who is staff. Who no longer has one of
the required values loses all sessions and the account, until the claim comes back.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth.models import Group

from conversations.accounts.roles import ROLES
from conversations.accounts.sessions import end_sessions
from conversations.db import transact
from conversations.models import User

logger = logging.getLogger("agentweb.log_ins")


@dataclass(frozen=True, slots=True)
class OpenIdProvider:
    """One entry of `AGENTWEB_LOG_IN_PROVIDERS`."""

    id: str
    name: str
    server: str
    client_id: str
    client_secret: str = field(repr=False, default="")
    #: Whether people without an account get one at their first log-in.
    new_accounts: bool = False
    #: The claim with the names of groups.
    groups_claim: str = "groups"
    #: Value of the claim -> name of the group here.
    groups: Mapping[str, str] = field(default_factory=dict)
    #: Values of the claim of which a person must have one; empty: everybody may log in.
    required: tuple[str, ...] = ()
    links_verified_email: bool = False
    scopes: tuple[str, ...] = ("openid", "profile", "email")


class LogInRefused(Exception):
    """The provider knows the person, and this site does not let them in; the text says why."""


def list_openid_providers() -> tuple[OpenIdProvider, ...]:
    return tuple(OpenIdProvider(**each) for each in settings.LOG_IN_PROVIDERS)


def find_openid_provider(id: str) -> OpenIdProvider | None:
    return next((each for each in list_openid_providers() if each.id == id), None)


def read_claim_values(provider: OpenIdProvider, claims: Mapping[str, Any]) -> frozenset[str]:
    """Return the values of the claim of groups, whether it is one text or a list."""
    found = claims.get(provider.groups_claim)
    values = found if isinstance(found, list) else [found]
    return frozenset(value for value in values if isinstance(value, str))


def may_log_in(provider: OpenIdProvider, claims: Mapping[str, Any]) -> bool:
    return not provider.required or bool(
        read_claim_values(provider, claims).intersection(provider.required)
    )


def find_linked_user(provider: OpenIdProvider, claims: Mapping[str, Any]) -> User | None:
    """Return the account that has the verified address; LogInRefused if it may not be linked."""
    address = claims.get("email")
    if not address or not isinstance(address, str):
        return None
    users = list(User.objects.filter(email__iexact=address)[:2])
    if not users:
        return None
    user = users[0]
    # PostgreSQL ignores more than case: to it "ı" is "i", in an address of somebody else.
    is_verified = claims.get("email_verified") is True and user.email.lower() == address.lower()
    is_own = not user.is_staff and not user.is_superuser and user.is_active
    if provider.links_verified_email and is_verified and len(users) == 1 and is_own:
        return user
    raise LogInRefused("taken")


@transact
def sync_groups(provider: OpenIdProvider, user: User, claims: Mapping[str, Any]) -> None:
    """Put the person into the mapped groups that the claim names, and out of the others."""
    user = User.objects.select_for_update().get(pk=user.pk)
    values = read_claim_values(provider, claims)
    wanted = {name for value, name in provider.groups.items() if value in values}
    managed = set(provider.groups.values())
    present = set(user.groups.filter(name__in=managed).values_list("name", flat=True))
    # Added first: with both, one of the allowances of before and after applies; with neither, a
    # smaller one might, and people would be told that it is used up.
    user.groups.add(*_groups(wanted - present))
    user.groups.remove(*_groups(present - wanted))
    _sync_staff(user, managed, wanted)
    if present != wanted:
        logger.info("groups of %s were changed by the provider %s", user.public_id, provider.id)


def _sync_staff(user: User, managed: set[str], wanted: set[str]) -> None:
    """Let the provider say who is staff, if it maps a role that works in the admin."""
    roles = {role.name for role in ROLES if role.rights} & managed
    if roles and not user.is_superuser and user.is_staff != bool(roles & wanted):
        User.objects.filter(pk=user.pk).update(is_staff=not user.is_staff)


def _groups(names: Iterable[str]) -> list[Group]:
    return [Group.objects.get_or_create(name=name)[0] for name in sorted(names)]


def read_account_facts(account: SocialAccount) -> dict[str, Any]:
    """Return what is stored of the account: that its provider closed it, and nothing else."""
    stored = SocialAccount.objects.filter(provider=account.provider, uid=account.uid).first()
    return dict(stored.extra_data) if stored is not None else {}


@transact
def close_account(account: SocialAccount) -> None:
    """End the sessions and the account of a person whom the provider no longer sends."""
    user = User.objects.select_for_update().get(pk=account.user_id)
    if not user.is_active:
        return
    end_sessions(user_id=user.pk)
    User.objects.filter(pk=user.pk).update(is_active=False)
    SocialAccount.objects.filter(pk=account.pk).update(extra_data={"is_closed": True})
    logger.warning("the account %s was closed by its provider", user.public_id)


@transact
def open_account(account: SocialAccount) -> bool:
    """Open an account again that its provider closed; False if an administrator closed it."""
    row = SocialAccount.objects.select_for_update().get(pk=account.pk)
    if not row.extra_data.get("is_closed"):
        return False
    User.objects.filter(pk=row.user_id).update(is_active=True)
    SocialAccount.objects.filter(pk=row.pk).update(extra_data={})
    return True


def forget_closing(user_id: int) -> None:
    """Forget that a provider closed the account: an administrator has decided since."""
    SocialAccount.objects.filter(user=user_id).update(extra_data={})
