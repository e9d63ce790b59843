"""Saved prompts: a person's own, which are private, and those of the site."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

MOST_COMMAND, MOST_TITLE = 40, 100
COMMAND = RegexValidator(
    r"\A[a-z0-9]+(-[a-z0-9]+)*\Z", _("Use small letters a to z, digits, and - between them.")
)


class PromptTemplate(models.Model):
    """A text with variables (saved_prompts/variables.py), called by its command."""

    public_id = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    title = models.CharField(max_length=MOST_TITLE)
    command = models.CharField(max_length=MOST_COMMAND, validators=[COMMAND])
    text = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True


class SavedPrompt(PromptTemplate):
    """Of one person, for them alone."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_prompts"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "command"], name="saved_prompt_command")
        ]

    def __str__(self) -> str:
        return f"saved prompt {self.public_id}"


class SitePrompt(PromptTemplate):
    """Written by staff, for everybody or for the members of groups."""

    groups = models.ManyToManyField(
        Group,
        blank=True,
        related_name="site_prompts",
        help_text=_("Only their members see the prompt; none chosen: everybody does."),
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["command"],
                name="site_prompt_command",
                violation_error_message=_("A prompt of the site has this command already."),
            )
        ]

    def __str__(self) -> str:
        return f"/{self.command}"
