"""Approvals: the question before a tool acts, the decision, and the site's rule for a tool.

Questions and decisions are rows of the conversation's chain, so who allowed what and when can be
neither changed nor lost. A question is bound to one tool call and to the digest of its arguments;
a database constraint allows one decision for each question.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from conversations.models.log import Chained, Conversation
from conversations.models.turns import ToolCall


class Approval(Chained):
    """A tool call that waits for a person, or has waited."""

    class Reason(models.TextChoices):
        WRITE = "write", _("it changes something")
        PRIVATE = "private", _("it tells others, and private data was read before")
        EGRESS = "egress", _("it tells others, and nothing leaves here unasked")
        RULE = "rule", _("this site asks before this tool is used")

    conversation = models.ForeignKey(
        Conversation, on_delete=models.PROTECT, related_name="approvals"
    )
    call = models.OneToOneField(ToolCall, on_delete=models.PROTECT, related_name="approval")
    #: SHA-256 of the arguments as they were shown, byte for byte.
    arguments_digest = models.CharField(max_length=80)
    #: The receiver as the tool names it; "" if there is none.
    destination = models.TextField(blank=True)
    reason = models.CharField(max_length=8, choices=Reason.choices)
    #: What had been read before, a line each as `origin:name` (toolbox/sources.py).
    sources = models.CharField(max_length=400, blank=True)
    #: The words of it that the call carries, as JSON: pairs of a word and its source; "": none.
    words = models.TextField(blank=True, default="", db_default="")
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"approval {self.pk}"


class Decision(Chained):
    """The decision on a question; without an actor the question expired."""

    class Verdict(models.TextChoices):
        ONCE = "once", _("allowed once")
        CONVERSATION = "chat", _("allowed in this conversation")
        DENIED = "denied", _("denied")
        EXPIRED = "expired", _("not answered in time")

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="+")
    approval = models.OneToOneField(Approval, on_delete=models.PROTECT, related_name="decision")
    verdict = models.CharField(max_length=8, choices=Verdict.choices)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"{self.verdict} {self.approval_id}"

    @property
    def allows(self) -> bool:
        return self.verdict in (self.Verdict.ONCE, self.Verdict.CONVERSATION)


class EgressRule(models.Model):
    """A group in whose members' conversations every tool that reaches outside asks first.

    The site has a setting for all conversations, and a person a switch for each of theirs.
    """

    group = models.OneToOneField(Group, on_delete=models.CASCADE, related_name="egress_rule")

    class Meta:
        verbose_name = _("group that sends nothing unasked")
        verbose_name_plural = _("groups that send nothing unasked")
        ordering = ["group_id"]

    def __str__(self) -> str:
        return str(self.group_id)


class ApprovalRule(models.Model):
    """The site's rule for one tool; without a row what the call does decides whether it asks.

    With `ASK` every call asks that the person has not allowed for the whole conversation.
    """

    class Rule(models.TextChoices):
        ASK = "ask", _("ask the person")
        ALLOW = "allow", _("always allow")
        NEVER = "never", _("never allow")

    tool = models.CharField(
        max_length=128, unique=True, help_text=_("The name of the tool, as the model calls it.")
    )
    rule = models.CharField(max_length=5, choices=Rule.choices, default=Rule.ASK)

    class Meta:
        ordering = ["tool"]

    def __str__(self) -> str:
        return f"{self.tool}: {self.rule}"
