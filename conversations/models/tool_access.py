"""Tool access: rules of the site and of groups, and what is switched off in a conversation."""

from __future__ import annotations

from django.contrib.auth.models import Group
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from conversations.models.log import Conversation

#: The form in which the API accepts a tool's name.
NAME = RegexValidator(
    r"\A[a-zA-Z0-9_-]{1,128}\Z", "Letters, digits, _ and -, as the model calls it."
)


class ToolRule(models.Model):
    """Whether everybody (no group) or a group's members may use a tool.

    A rule of a person's groups takes precedence over the site's; if groups differ, the one that
    allows applies. Without any rule a tool may be used.
    """

    tool = models.CharField(max_length=128, validators=[NAME])
    group = models.ForeignKey(
        Group,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="tool_rules",
        help_text=_("Empty: everybody for whom no group says otherwise."),
    )
    is_allowed = models.BooleanField(_("allowed"), default=False)

    class Meta:
        ordering = ["tool", "group_id"]
        constraints = [
            models.UniqueConstraint(
                fields=["tool"],
                condition=models.Q(group=None),
                name="one_site_tool_rule",
                violation_error_message=_("There is a rule for this tool already."),
            ),
            models.UniqueConstraint(
                fields=["tool", "group"],
                name="one_group_tool_rule",
                violation_error_message=_("There is a rule for this tool and group already."),
            ),
        ]

    def __str__(self) -> str:
        return self.tool


class ToolSwitch(models.Model):
    """A tool that a person has switched off in one conversation."""

    conversation = models.ForeignKey(
        Conversation, on_delete=models.PROTECT, related_name="tool_switches"
    )
    tool = models.CharField(max_length=128)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["conversation", "tool"], name="tool_switched_once")
        ]

    def __str__(self) -> str:
        return self.tool
