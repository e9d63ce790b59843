"""An invitation by a command, for operators."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandParser
from django.core.validators import validate_email
from django.urls import reverse

from conversations.invitations.invitations import (
    MOST_DAYS,
    USUAL_DAYS,
    has_account,
    make_invitation,
)
from conversations.management.arguments import make_usage_error


class Command(BaseCommand):
    help = "Print a link with which one person makes an account; it is shown this once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--email", default="", help="the address that the account gets")
        parser.add_argument("--group", action="append", default=[], help="a group of the account")
        parser.add_argument("--days", type=int, default=USUAL_DAYS, help="days that the link works")
        parser.add_argument("--site", default="", help="the site's address, to begin the link with")

    def handle(self, *_args: Any, **options: Any) -> None:
        names, email, days = set(options["group"]), options["email"], options["days"]
        groups = list(Group.objects.filter(name__in=names))
        missing = names - {group.name for group in groups}
        if missing:
            raise make_usage_error(f"there is no group {min(missing)!r}")
        if not 1 <= days <= MOST_DAYS:
            raise make_usage_error(f"a link works for 1 to {MOST_DAYS} days")
        try:
            if email:
                validate_email(email)
        except ValidationError:
            raise make_usage_error(f"{email!r} is no e-mail address") from None
        site = options["site"]
        if site and not re.fullmatch(r"https?://[^/\s]+/?", site):
            raise make_usage_error(f"{site!r} is no address such as https://chat.example.org")
        if has_account(email):
            raise make_usage_error(f"an account has the address {email} already")
        _, token = make_invitation(made_by=None, email=email, groups=groups, days=days)
        path = reverse("invitation", args=[token])
        self.stdout.write(f"{site.rstrip('/')}{path}")
