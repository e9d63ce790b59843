"""Folders: a person's own, one level of them; a chat names the one it is in."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

#: Characters of a name. Folded, a character becomes up to three.
MOST_NAME = 60


class Folder(models.Model):
    """Of one person, for them alone: its name is as private as the title of a chat."""

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="folders"
    )
    name = models.CharField(max_length=MOST_NAME)
    #: The name without regard to case, which SQLite folds for ASCII alone.
    key = models.CharField(max_length=3 * MOST_NAME)
    #: When it was last opened in the list; None: it is closed there.
    opened_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "key"], name="folder_name"),
            models.CheckConstraint(condition=~models.Q(key=""), name="folder_has_a_name"),
        ]

    def __str__(self) -> str:
        return f"folder {self.public_id}"
