"""People: Django's user with a public id, and the context budget set for them."""

from __future__ import annotations

import uuid

from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    policy = models.JSONField(
        "context policy",
        default=dict,
        blank=True,
        help_text='Numbers that replace the site\'s, for example {"input_token_budget": 60000}.',
    )
    #: What the person's conversations may set of it, as context/allowed.py reads it.
    policy_limits = models.JSONField(default=dict, blank=True)
    is_exempt = models.BooleanField(
        "exempt from budgets",
        default=False,
        help_text="Nothing is held or refused; what calls cost is recorded all the same.",
    )
    #: How pages look and act for this person; see preferences.py for the names.
    preferences = models.JSONField(default=dict, blank=True)

    class Meta(AbstractUser.Meta):
        permissions = [("read_content", "Can read the content of other people's conversations")]
