"""People: Django's user with a public id, a context policy and preferences."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils.translation import gettext_lazy as _


class User(AbstractUser):
    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    policy = models.JSONField(
        _("context policy"),
        default=dict,
        blank=True,
        help_text=_('Numbers that replace the site\'s, for example {"input_token_budget": 60000}.'),
    )
    #: Limits on what the person's conversations may change of the context policy.
    policy_limits = models.JSONField(default=dict, blank=True)
    is_exempt = models.BooleanField(
        _("exempt from budgets"),
        default=False,
        help_text=_("Nothing is held or refused; what calls cost is recorded all the same."),
    )
    cost_centre = models.ForeignKey(
        "conversations.CostCentre",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        verbose_name=_("cost centre"),
        help_text=_("For which their next calls count, unless a chat has one of its own."),
    )
    #: The person's display and behaviour settings; see accounts/preferences.py.
    preferences = models.JSONField(default=dict, blank=True)

    #: Raised to end every session that was started before.
    session_epoch = models.PositiveIntegerField(default=0, db_default=0, editable=False)

    class Meta(AbstractUser.Meta):
        permissions = [("read_content", "Can read the content of other people's conversations")]

    def get_session_auth_hash(self) -> str:
        return self._of_epoch(super().get_session_auth_hash())

    def get_session_auth_fallback_hash(self) -> Iterator[str]:
        yield from map(self._of_epoch, super().get_session_auth_fallback_hash())

    def _of_epoch(self, of_password: str) -> str:
        """Bind a session's hash to the epoch; the password's own hash is an HMAC already."""
        if not self.session_epoch:
            return of_password
        return hashlib.sha256(f"{self.session_epoch}:{of_password}".encode()).hexdigest()
