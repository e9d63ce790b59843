"""Failed log-ins, counted for an address, for a name at it, at a known device, and everywhere.

A password may have been typed as the name, so only the digest of the name is stored; a known person
is referenced.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from conversations.models.people import User


class FailedLogIns(models.Model):
    #: An IPv4 address, the /64 network that one IPv6 customer has, or a known device; "" for all.
    peer = models.CharField(_("address"), max_length=64, blank=True)
    #: "" for all names from the address together.
    name_digest = models.CharField(max_length=64, blank=True, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, null=True, blank=True)
    #: Attempts since `began_at`.
    count = models.PositiveIntegerField(_("failed log-ins"), default=0)
    began_at = models.DateTimeField()
    #: Consecutive waits, each twice as long as the previous one.
    waits = models.PositiveIntegerField(default=0)
    until = models.DateTimeField(_("refused until"), null=True, blank=True)

    class Meta:
        verbose_name = verbose_name_plural = _("failed log-ins")
        constraints = [
            models.UniqueConstraint(fields=["peer", "name_digest"], name="one_count_of_failures")
        ]

    def __str__(self) -> str:
        return f"failed log-ins from {self.peer}"
