"""Budgets on the command line: show a person's, set, grant, exempt."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group
from django.core.management import CommandError
from django.core.management.base import BaseCommand, CommandParser

from conversations.budgets.caps import resolve_turn_caps
from conversations.budgets.effective import BudgetStatus
from conversations.budgets.grants import BudgetError, grant_more, set_exempt, set_limit
from conversations.budgets.status import list_statuses
from conversations.budgets.units import show_amount
from conversations.management.arguments import (
    find_person,
    find_person_or_none,
    make_usage_error,
    read_amount,
    read_moment,
)
from conversations.models import Budget, User
from conversations.models.periods import load_zone
from conversations.rendering.numbers import dollars

_UNITS, _PERIODS = Budget.Unit.values, Budget.Period.values


class Command(BaseCommand):
    help = (
        "`budgets show USER` says which budgets count, where each comes from and how it stands;"
        " `budgets set` sets one for a user, a group or the site; `budgets grant USER AMOUNT` adds"
        " to one until a day; `budgets exempt USER on|off`. Amounts of money are in dollars."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser(
            "show", help="which budgets count for a person, where each comes from and how it stands"
        ).add_argument("user")
        set_limit = actions.add_parser(
            "set",
            help="set a budget, change its limit, or with `off` switch it off; money in dollars",
        )
        subject = set_limit.add_mutually_exclusive_group(required=True)
        subject.add_argument("--user", metavar="NAME")
        subject.add_argument("--group", metavar="NAME")
        subject.add_argument("--site", action="store_true")
        set_limit.add_argument("limit", help="how much, or off")
        set_limit.add_argument(
            "--pool", action="store_true", help="shared by all, not for each member"
        )
        set_limit.add_argument("--zone", metavar="NAME", help="time zone of a new one's windows")
        set_limit.add_argument("--note")
        grant = actions.add_parser(
            "grant", help="add to what a person's budget allows, until a day"
        )
        grant.add_argument("user")
        grant.add_argument("amount")
        grant.add_argument("--until", metavar="DAY", help="when it expires, in the budget's zone")
        for action in (set_limit, grant):
            action.add_argument("--unit", choices=_UNITS, default=Budget.Unit.MONEY.value)
            action.add_argument("--model", default="", help="only calls of this model or family")
        set_limit.add_argument("--period", choices=_PERIODS, default="month")
        grant.add_argument("--period", choices=_PERIODS, help="where the person has several")
        exempt = actions.add_parser("exempt", help="free a person of budgets, or no longer")
        exempt.add_argument("user")
        exempt.add_argument("value", choices=("on", "off"))
        exempt.add_argument("--by", required=True, metavar="NAME", help="whose decision it is")
        grant.add_argument("--by", metavar="NAME", help="whose decision it is")
        for action in (grant, exempt):
            action.add_argument("--reason", required=True, metavar="TEXT")

    def handle(self, *args: Any, **options: Any) -> None:
        actions = {
            "show": self._show, "set": self._set, "grant": self._grant, "exempt": self._exempt
        }  # fmt: skip
        try:
            actions[options["action"]](options)
        except BudgetError as error:
            raise CommandError(str(error)) from error

    def _show(self, options: dict[str, Any]) -> None:
        user = find_person(options["user"])
        if user.is_exempt:
            self.stdout.write(f"{user.username} is exempt from budgets")
        found = list_statuses(user.pk)
        for one in found:
            self.stdout.write(_describe_status(one))
        if not found and not user.is_exempt:
            self.stdout.write(f"no budget limits {user.username}")
        caps = resolve_turn_caps(user.pk)
        money = dollars(caps.micros) if caps.micros else "no cap"
        self.stdout.write(
            f"a turn: money {money}, {caps.rounds} model calls, {caps.tool_calls} tool calls,"
            f" {caps.seconds} seconds"
        )

    def _set(self, options: dict[str, Any]) -> None:
        limit, unit = options["limit"], options["unit"]
        budget = set_limit(
            **_find_subject(options),
            kind="pool" if options["pool"] else "per_member",
            unit=unit,
            period=options["period"],
            limit=None if limit == "off" else read_amount(limit, unit),
            zone=options["zone"],
            note=options["note"],
            model=options["model"],
        )
        words = "on" if budget.is_active else "off"
        self.stdout.write(f"budget {budget.pk}: {budget}, {words}")

    def _grant(self, options: dict[str, Any]) -> None:
        user = find_person(options["user"])
        one = _find_allowance(user, options["unit"], options["period"], options["model"].lower())
        until = options["until"]
        grant = grant_more(
            budget=Budget.objects.get(pk=one.rule.id),
            user=user,
            amount=read_amount(options["amount"], options["unit"]),
            until=read_moment(until, load_zone(one.rule.zone)) if until else None,
            reason=options["reason"],
            actor=find_person_or_none(options["by"]),
        )
        self.stdout.write(f"grant {grant.pk}: {show_amount(grant.amount, one.rule.unit)} more")
        self._show(options)

    def _exempt(self, options: dict[str, Any]) -> None:
        user, actor = find_person(options["user"]), find_person(options["by"])
        is_exempt = options["value"] == "on"
        is_new = set_exempt(user=user, is_exempt=is_exempt, reason=options["reason"], actor=actor)
        words = "is exempt from budgets" if is_exempt else "is not exempt from budgets"
        self.stdout.write(f"{user.username} {words}{'' if is_new else ' (as before)'}")


def _find_subject(options: dict[str, Any]) -> dict[str, Any]:
    if options["user"]:
        return {"user": find_person(options["user"])}
    if options["group"]:
        group = Group.objects.filter(name=options["group"]).first()
        if group is None:
            raise make_usage_error(f"there is no group {options['group']!r}")
        return {"group": group}
    return {}


def _find_allowance(user: User, unit: str, period: str | None, model: str) -> BudgetStatus:
    """Return the allowance that a grant adds to."""
    own = [
        one
        for one in list_statuses(user.pk)
        if one.rule.kind == Budget.Kind.PER_MEMBER
        and (one.rule.unit, one.rule.model) == (unit, model)
    ]
    found = [one for one in own if period in (None, one.rule.period)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise make_usage_error(
            f"no allowance in {unit} limits {user.username}: there is nothing to add to"
        )
    periods = ", ".join(one.rule.period for one in found)
    raise make_usage_error(f"{user.username} has several, say --period: {periods}")


def _describe_status(one: BudgetStatus) -> str:
    rule = one.rule
    spent, limit = show_amount(one.spent, rule.unit), show_amount(one.limit, rule.unit)
    held = f", {show_amount(one.held, rule.unit)} held" if one.held else ""
    ends = "without end"
    if one.ends_at is not None:
        ends = f"until {one.ends_at.astimezone(load_zone(rule.zone)):%Y-%m-%d %H:%M} ({rule.zone})"
    what = f"{rule.period}, {rule.model}" if rule.model else rule.period
    return f"budget {rule.id}, {what}, {rule.source}: {spent} spent{held} of {limit}, {ends}"
