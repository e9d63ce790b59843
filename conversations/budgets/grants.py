"""Changes that staff make to budgets, each with a reason and an actor.

A grant adds to a limit until it expires. A correction is a new ledger entry; entries never change.
Exempting a person from budgets is recorded in Django's admin log.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.budgets.crossings import record_staff_crossings
from conversations.budgets.money_records import changed_by, record_rows
from conversations.budgets.reconciliation import compute_totals
from conversations.budgets.units import show_amount
from conversations.conf import conf
from conversations.context.translation import gettext_noop, mark_recorded
from conversations.db import transact
from conversations.log.chain import append_row, lock_site_chain
from conversations.models import Budget, BudgetWindow, Grant, LedgerEntry, User
from conversations.models.budgets import MOST, BudgetUnit

EXEMPT = mark_recorded(gettext_noop("Exempt from budgets: %(reason)s"))
COUNTED = mark_recorded(gettext_noop("No longer exempt from budgets: %(reason)s"))


class BudgetError(Exception):
    """A change that cannot be made; the message says why."""

    code = "budget_change"


class FormUsed(BudgetError):
    """A form that was performed once is submitted with other values, as after going back."""

    def __init__(self) -> None:
        super().__init__(_("This form was used already: open it anew."))


@transact
def set_limit(
    *,
    kind: str,
    unit: str,
    period: str,
    limit: int | None,
    user: User | None = None,
    group: Group | None = None,
    zone: str | None = None,
    note: str | None = None,
    percents: str | None = None,
    model: str = "",
) -> Budget:
    """Set a budget of a person, a group or the site.

    `limit` None switches it off; None for the other values leaves them as they are.
    """
    scope = "user" if user else "group" if group else "site"
    where: dict[str, Any] = {"scope": scope, "user": user, "group": group}
    where |= {"kind": kind, "unit": unit, "period": period, "model": model.strip().lower()}
    found = Budget.objects.select_for_update(of=("self",))
    budget = found.filter(is_active=True, **where).first()
    if limit is None:
        if budget is None:
            raise BudgetError(_("There is no such budget."))
        budget.is_active = False
    elif budget is None:
        budget = Budget(limit=limit, time_zone=zone or conf.budget_time_zone, **where)
    elif zone not in (None, budget.time_zone):
        raise BudgetError(
            _("Its windows are cut in %(zone)s: switch it off, then set it anew.")
            % {"zone": budget.time_zone}
        )
    else:
        budget.limit = limit
    budget.note = budget.note if note is None else note
    budget.soft_percents = budget.soft_percents if percents is None else percents
    return _save_budget(budget)


@transact
def grant_more(
    *,
    budget: Budget,
    amount: int,
    reason: str,
    user: User | None = None,
    until: datetime | None = None,
    actor: User | None = None,
    form: UUID | None = None,
) -> Grant:
    """Add to the limit of a budget, for everybody it applies to or for one person.

    `form` identifies the submitted form: a second submit returns the first grant, and raises
    FormUsed if it says something else.
    """
    reason = clean_reason(reason)
    # Serializes grants of one budget, so that the second of two submits of one form finds the
    # first grant.
    Budget.objects.select_for_update(of=("self",)).get(pk=budget.pk)
    if form is not None and (again := Grant.objects.filter(form=form).first()):
        said = again.budget_id, again.user, again.amount, again.expires_at
        _demand_same(said, (budget.pk, user, amount, until))
        return again
    if not 0 < amount <= MOST:
        raise BudgetError(_("A grant is more than nothing, and no more than a budget can hold."))
    now = timezone.now()
    if until is not None and until <= now:
        raise BudgetError(_("A grant ends later than now."))
    if budget.kind == Budget.Kind.OWN:
        raise BudgetError(_("Only the person changes a limit that they set for themselves."))
    if user is not None and budget.kind == Budget.Kind.POOL:
        raise BudgetError(_("A pool has no members: its grants are for all of them."))
    grant = Grant(
        budget=budget, user=user, amount=amount, starts_at=now, expires_at=until, reason=reason,
        actor=actor, form=form,
    )  # fmt: skip
    append_row(grant, lock_site_chain())
    return grant


@transact
def correct_window(
    *,
    window_id: int,
    amount: int,
    reason: str,
    actor: User | None = None,
    form: UUID | None = None,
) -> LedgerEntry:
    """Append a correction of what a window has spent; a negative amount reduces it.

    What is given back reduces the overrun first. `form` identifies the submitted form: a second
    submit returns the first entry, and raises FormUsed if it says something else.
    """
    reason = clean_reason(reason)
    window = _lock_window(window_id)
    if form is not None and (again := LedgerEntry.objects.filter(form=form).first()):
        _demand_same((again.window_id, again.amount), (window_id, amount))
        return again
    used, unit = window.spent + window.overrun, window.budget.unit
    if used + amount < 0 or amount == 0 or abs(amount) > MOST:
        raise BudgetError(
            _("The window has spent %(used)s: it cannot be corrected by %(amount)s.")
            % {"used": show_amount(used, unit), "amount": show_amount(amount, unit)}
        )
    return _adjust_window(window, amount, max(min(amount, 0), -window.overrun), reason, actor, form)


@transact
def correct_call(
    *, call_id: int, amount: int, reason: str, actor: User | None = None, form: UUID | None = None
) -> list[LedgerEntry]:
    """Correct the cost of a call, in micro-dollars, in every budget that it was booked to.

    Either all of them are corrected or, with BudgetError, none.
    """
    windows = [window.pk for window in list_booked_windows(call_id)]
    if not windows:
        raise BudgetError(_("The call was booked to no budget of money."))
    lock_windows(windows)
    return [
        correct_window(
            window_id=key, amount=amount, reason=reason, actor=actor,
            form=uuid5(form, str(key)) if form else None,
        )
        for key in windows
    ]  # fmt: skip


def lock_windows(keys: Collection[int]) -> None:
    """Lock windows that are corrected together, in the order in which every writer does."""
    rows = BudgetWindow.objects.select_for_update().filter(pk__in=keys).order_by("pk")
    list(rows.values_list("pk"))


def list_booked_windows(call_id: int) -> list[BudgetWindow]:
    """Return the windows of money in which a call was settled, in the order of their locks."""
    booked = {"call": call_id, "kind": LedgerEntry.Kind.SETTLE}
    entries = LedgerEntry.objects.filter(**booked, window__budget__unit=BudgetUnit.MONEY)
    rows = BudgetWindow.objects.filter(pk__in=entries.values("window"))
    return list(rows.select_related("budget__user", "budget__group", "user").order_by("pk"))


@transact
def recompute_window(*, window_id: int, reason: str, actor: User | None = None) -> bool:
    """Set a window to the sums of its entries, on record; False where it had them already."""
    reason = clean_reason(reason)
    window = _lock_window(window_id)
    found = compute_totals([window.pk])[window.pk]
    stored = {name: getattr(window, name) for name in found}
    if stored == found:
        return False
    was = ", ".join(f"{name} {stored[name]}" for name in found if stored[name] != found[name])
    for name, amount in found.items():
        setattr(window, name, amount)
    _adjust_window(window, 0, 0, f"{reason} (recomputed; it said {was})", actor)
    return True


@transact
def set_exempt(*, user: User, is_exempt: bool, reason: str, actor: User) -> bool:
    """Exempt a person from budgets or revoke that, on record; False where nothing changed."""
    reason = clean_reason(reason)
    rows = User.objects.filter(pk=user.pk).exclude(is_exempt=is_exempt)
    if not rows.update(is_exempt=is_exempt):
        return False
    with changed_by(actor.pk, reason):
        record_rows(User, [user.pk])
    words = (EXEMPT if is_exempt else COUNTED) % {"reason": reason}
    LogEntry.objects.create(
        user=actor,
        content_type=ContentType.objects.get_for_model(User),
        object_id=str(user.pk),
        object_repr=user.username,
        action_flag=CHANGE,
        change_message=words,
    )
    return True


def _save_budget(budget: Budget) -> Budget:
    try:
        budget.full_clean()
        with transaction.atomic():
            budget.save()
    except ValidationError as error:
        raise BudgetError(" ".join(error.messages)) from error
    except IntegrityError as error:  # another was set at the same moment
        words = _("There is an active budget of this kind, unit, period and model.")
        raise BudgetError(words) from error
    return budget


def _demand_same(said: tuple[object, ...], given: tuple[object, ...]) -> None:
    if said != given:
        raise FormUsed


def clean_reason(reason: str) -> str:
    """Return the reason as it is stored; raises BudgetError for an empty one."""
    if not reason.strip():
        raise BudgetError(_("Say why: a reason is needed."))
    return reason.strip()[:200]


def _lock_window(window_id: int) -> BudgetWindow:
    rows = BudgetWindow.objects.select_for_update(of=("self",)).filter(pk=window_id)
    window = rows.first()
    if window is None:
        raise BudgetError(_("There is no window %(number)s.") % {"number": window_id})
    return window


def _adjust_window(
    window: BudgetWindow,
    amount: int,
    overrun: int,
    reason: str,
    actor: User | None,
    form: UUID | None = None,
) -> LedgerEntry:
    """Store the locked window with a correction of `amount`, of which `overrun` is overrun."""
    window.spent += amount - overrun
    window.overrun += overrun
    window.limit = max(window.limit, window.spent + window.held)
    window.save(update_fields=["spent", "held", "overrun", "limit"])
    entry = LedgerEntry(
        window=window,
        kind=LedgerEntry.Kind.ADJUST,
        amount=amount,
        overrun=overrun,
        limit=window.limit,
        reason=reason[:200],
        actor=actor,
        form=form,
    )
    append_row(entry, lock_site_chain())
    record_staff_crossings(pk=window.pk)
    return entry
