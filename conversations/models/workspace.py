"""The index of people's workspaces: which paths exist, and where their bytes are stored.

A row represents one stored object from before its first byte to after its deletion, so no crash
leaves an unknown object: `pending` while it is written, `live` under its path, `trash` while it can
be restored, `gone` until the object is deleted.
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models


class FileState(models.TextChoices):
    PENDING = "pending"
    LIVE = "live"
    TRASH = "trash"
    GONE = "gone"


class WorkspaceFile(models.Model):
    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="workspace_files"
    )
    state = models.CharField(max_length=8, choices=FileState.choices, default=FileState.PENDING)
    path = models.CharField(max_length=1024)
    #: Name of the object in the storage.
    object = models.CharField(max_length=200, unique=True)
    bytes = models.PositiveBigIntegerField()
    #: Digest of the bytes, checked when they are read; an edit replaces only the bytes that it
    #: read.
    digest = models.CharField(max_length=71)
    #: The key of the tool call that last changed it.
    done_by = models.CharField(max_length=200, blank=True)
    #: Files that were deleted together have one batch and are restored together.
    batch = models.UUIDField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=("owner", "path"),
                condition=models.Q(state="live"),
                name="one_live_file_of_a_path",
            ),
            models.CheckConstraint(
                name="workspace_file_states",
                condition=models.Q(state__in=("pending", "live", "trash", "gone")),
            ),
            models.CheckConstraint(
                name="workspace_file_batch",
                condition=~models.Q(state="trash") | models.Q(batch__isnull=False),
            ),
        ]
        indexes = [
            models.Index(fields=["owner", "state"], name="workspace_file_owner"),
            models.Index(
                fields=["changed_at"],
                condition=~models.Q(state="live"),
                name="workspace_file_sweep",
            ),
        ]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def __str__(self) -> str:
        return f"workspace file {self.public_id}"
