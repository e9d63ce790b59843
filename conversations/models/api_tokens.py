"""Tokens with which programs read figures through the API; of each only the digest is stored."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from conversations.models.people import User


class ApiToken(models.Model):
    #: Known only where it has just been made.
    secret = ""

    owner = models.ForeignKey(
        User, on_delete=models.CASCADE, editable=False, related_name="api_tokens"
    )
    name = models.CharField(max_length=100, help_text=_("What uses it, so that you know it again."))
    digest = models.CharField(max_length=64, unique=True, editable=False)
    #: What it may read, by names of accounts/api_tokens.py, with commas between.
    scopes = models.CharField(max_length=200, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(editable=False)
    revoked_at = models.DateTimeField(null=True, editable=False)
    last_used_at = models.DateTimeField(null=True, editable=False)
    #: The minute of its last request, and how many requests it had in that minute.
    minute = models.DateTimeField(null=True, editable=False)
    requests = models.PositiveIntegerField(default=0, editable=False)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name
