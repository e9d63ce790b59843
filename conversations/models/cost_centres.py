"""Cost centres: to whom an organisation charges what calls cost."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class CostCentre(models.Model):
    """Never deleted, because calls keep theirs; one that is not active takes no more calls."""

    code = models.CharField(
        _("code"), max_length=40, unique=True, help_text=_("As in your accounts.")
    )
    name = models.CharField(max_length=100)
    is_active = models.BooleanField(
        default=True,
        help_text=_("One that is not takes no more calls; what was spent stays where it was."),
    )

    class Meta:
        ordering = ["code"]

    def __str__(self) -> str:
        return f"{self.code} {self.name}"
