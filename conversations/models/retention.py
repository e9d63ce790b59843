"""How long chats are kept, and which are kept whatever happens.

A hold and its release are rows of the site's chain: they are never changed, so what was held, by
whom, why and until when can be shown later.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from conversations.models.log import Chained


class RetentionRule(models.Model):
    """After how many days chats of a group's members, or of everybody, go; library/retention.py."""

    class Then(models.TextChoices):
        TRASH = "trash", _("to the trash, from which its owner can bring it back")
        ERASE = "erase", _("erased at once")

    group = models.ForeignKey(
        Group,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="retention_rules",
        help_text=_("Leave blank for a rule for everybody."),
    )
    idle_days = models.PositiveIntegerField(
        _("days without a message"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("A chat goes when its last message is this many days old."),
    )
    file_days = models.PositiveIntegerField(
        _("days with an attached file"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=(
            _(
                "A chat goes when a file in it was attached this many days ago. It goes as a whole:"
                " a sent file is part of the record of what the model saw."
            )
        ),
    )
    then = models.CharField(_("where it goes"), max_length=5, choices=Then, default=Then.TRASH)

    class Meta:
        ordering = ["pk"]
        constraints = [
            # No two rows are equal in what is null, so the database is told that they are.
            models.UniqueConstraint(Coalesce("group", 0), name="one_retention_rule_of_each"),
            models.CheckConstraint(
                condition=models.Q(idle_days__isnull=False) | models.Q(file_days__isnull=False),
                name="retention_rule_has_days",
                violation_error_message=_("Set at least one number of days."),
            ),
        ]

    def __str__(self) -> str:
        return f"retention of {self.group}" if self.group_id else "retention for everybody"


class LegalHold(Chained):
    """Nothing of a person, or of one chat of theirs, is erased; log/legal_holds.py."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="legal_holds"
    )
    #: The public id of the chat; None: every chat of the person.
    conversation = models.UUIDField(null=True, db_index=True)
    reason = models.CharField(max_length=500)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"legal hold {self.pk}"


class HoldRelease(Chained):
    """The end of a hold."""

    hold = models.OneToOneField(LegalHold, on_delete=models.PROTECT, related_name="release")
    reason = models.CharField(max_length=500)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"release of {self.hold}"
