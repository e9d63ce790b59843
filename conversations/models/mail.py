"""Mail accounts: which mailboxes a person lets their agent use.

The secret is sealed (toolbox/secrets.py) and deleted with the row. Everything that describes the
person's mail is private: staff see only that there is an account, and whether it works.
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class MailAccount(models.Model):
    class Security(models.TextChoices):
        TLS = "tls", _("TLS")
        STARTTLS = "starttls", _("STARTTLS")

    class Auth(models.TextChoices):
        PASSWORD = "password", _("App password")
        TOKEN = "token", _("OAuth access token")
        REFRESH = "refresh", _("OAuth refresh token")

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="mail_accounts"
    )
    name = models.CharField(max_length=60)
    address = models.CharField(max_length=254)
    login = models.CharField(max_length=254)
    auth = models.CharField(max_length=10, choices=Auth.choices, default=Auth.PASSWORD)
    #: Name of the OAuth provider in the site's settings.
    provider = models.CharField(max_length=60, blank=True)
    sealed_secret = models.TextField(editable=False)
    imap_host = models.CharField(max_length=253)
    imap_port = models.PositiveIntegerField(default=993)
    imap_security = models.CharField(max_length=10, choices=Security.choices, default=Security.TLS)
    #: Empty where the account is read-only.
    smtp_host = models.CharField(max_length=253, blank=True)
    smtp_port = models.PositiveIntegerField(default=465)
    smtp_security = models.CharField(max_length=10, choices=Security.choices, default=Security.TLS)
    folder = models.CharField(max_length=250, default="INBOX")
    created_at = models.DateTimeField(auto_now_add=True)
    used_at = models.DateTimeField(null=True)
    #: The error of the last use; empty if it succeeded.
    problem = models.CharField(max_length=400, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], name="mail_account_name"),
            models.CheckConstraint(
                condition=models.Q(
                    auth__in=("password", "token", "refresh"),
                    imap_security__in=("tls", "starttls"),
                    smtp_security__in=("tls", "starttls"),
                ),
                name="mail_account_choices",
            ),
        ]

    def __str__(self) -> str:
        return f"mail account {self.public_id}"
