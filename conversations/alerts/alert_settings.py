"""Changes of an alert beside its fields: its secret, and since when it tells."""

from __future__ import annotations

from django.utils import timezone

from conversations.alerts.webhook import make_secret
from conversations.models import BudgetAlert
from conversations.toolbox.secrets import seal


def save_alert(*, alert: BudgetAlert, origin: str) -> str:
    """Save an alert from a form; return the secret of a new webhook, which is shown this once."""
    was_active = BudgetAlert.objects.filter(pk=alert.pk, is_active=True).exists()
    if alert.is_active and not was_active:
        alert.active_since = timezone.now()
    alert.origin = origin
    secret = make_secret() if alert.url and not alert.sealed_secret else ""
    if secret or not alert.url:
        alert.sealed_secret = seal(secret)
    alert.save()
    return secret


def renew_secret(*, alert: BudgetAlert) -> str:
    """Replace the secret of a webhook; return the new one, which is shown this once."""
    secret = make_secret()
    BudgetAlert.objects.filter(pk=alert.pk).update(sealed_secret=seal(secret))
    return secret
