"""Links with which others read a chat; nothing of it is copied.

Of a link the digest alone is stored; its token is computed from `public_id` and a key of the site
(library/shared_links.py), so whoever reads the database cannot open it.
"""

from __future__ import annotations

import uuid
from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from conversations.models.log import Conversation


class SharedLink(models.Model):
    class Audience(models.TextChoices):
        PEOPLE = "people", _("whoever is logged in here")
        PUBLIC = "public", _("anybody who has the link")

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.PROTECT, related_name="shared_links"
    )
    digest = models.CharField(max_length=64, unique=True, editable=False)
    audience = models.CharField(max_length=6, choices=Audience)
    #: The number of the last turn that is shown; its path is shown, up to it.
    leaf = models.PositiveIntegerField()
    with_tools = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)
    #: None: it does not end by itself.
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    #: Who revoked it; None: another one took its place after its time, or a command's operator did.
    revoked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    #: How often others opened it, counted once a minute, and when it was last counted.
    opened = models.PositiveIntegerField(default=0)
    opened_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(revoked_at=None),
                name="one_shared_link_of_a_chat",
            ),
            models.CheckConstraint(
                condition=Q(revoked_by=None) | Q(revoked_at__isnull=False),
                name="shared_link_revoked_at",
            ),
        ]

    def __str__(self) -> str:
        return f"link {self.pk}"

    def has_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and self.expires_at <= now
