"""The catalogue: models with their windows, and their prices as dated rows."""

from __future__ import annotations

import re

from django.contrib.auth.models import Group
from django.core.validators import MaxValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

#: A million dollars per million tokens; sums of such costs do not overflow.
MOST_RATE = 10**12


_DATED = re.compile(r"-\d{8}")


def is_model_in(scope: str, model: str) -> bool:
    """Return whether a scope names a model: by its id, with a date or without, or by its family.

    A family is a word of the id, such as opus; "" names every model.
    """
    scope, model = scope.lower(), model.lower()
    if not scope or model == scope:
        return True
    if scope.isalpha():
        return scope in model.split("-")
    return model.startswith(scope) and _DATED.fullmatch(model, len(scope)) is not None


class ApiModel(models.Model):
    class Thinking(models.TextChoices):
        ADAPTIVE = "adaptive", _("Adaptive")
        ALWAYS = "always", _("Always")
        EXTENDED = "extended", _("Extended")

    id = models.CharField("model id", max_length=100, primary_key=True)
    window = models.PositiveIntegerField(help_text=_("Context window in tokens."))
    max_output = models.PositiveIntegerField()
    thinking = models.CharField(max_length=10, choices=Thinking.choices)
    clears = models.BooleanField(
        _("clears tool results"),
        default=False,
        help_text=_("Whether the API clears old tool results for it (context editing)."),
    )
    compacts = models.BooleanField(
        _("compacts on demand"),
        default=False,
        help_text=_("Whether the API compacts conversations with it when it is asked to."),
    )
    thresholds = models.JSONField(
        default=dict,
        blank=True,
        help_text=_(
            "Thresholds of the context policy that replace the site's for this model, in"
            ' tokens or as shares of its window, for example {"keep_below_tokens": "60%"}.'
        ),
    )
    is_enabled = models.BooleanField(default=True)
    groups = models.ManyToManyField(
        Group,
        blank=True,
        related_name="models",
        verbose_name=_("kept for groups"),
        help_text=_("Only their members may use the model; none chosen: everybody may."),
    )
    #: As the API reports it: active, deprecated or retired; "" before the first refresh.
    lifecycle = models.CharField(max_length=12, blank=True)
    retires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("model")

    def __str__(self) -> str:
        return self.id


class ModelPrice(models.Model):
    """Micro-dollars per million tokens or searches; written once, closed and replaced."""

    class Kind(models.TextChoices):
        INPUT = "input", _("Input")
        OUTPUT = "output", _("Output")
        CACHE_WRITE_5M = "cache_write_5m", _("Cache write (5 minutes)")
        CACHE_WRITE_1H = "cache_write_1h", _("Cache write (1 hour)")
        CACHE_READ = "cache_read", _("Cache read")
        #: Per million searches, not tokens; a model without this price is offered none.
        WEB_SEARCH = "web_search", _("Web search")

    model = models.ForeignKey(ApiModel, on_delete=models.PROTECT, related_name="prices")
    kind = models.CharField(max_length=14, choices=Kind.choices)
    micros_per_million = models.PositiveBigIntegerField(validators=[MaxValueValidator(MOST_RATE)])
    #: Applies to prompts of more than this many tokens, cache reads and writes included.
    above_tokens = models.PositiveIntegerField(default=0)
    effective_from = models.DateTimeField()
    effective_to = models.DateTimeField(null=True, blank=True)
    source = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["model", "kind", "above_tokens"],
                condition=models.Q(effective_to=None),
                name="one_open_price",
            ),
            models.CheckConstraint(
                name="price_possible",
                condition=models.Q(micros_per_million__gte=0, micros_per_million__lte=MOST_RATE),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model_id} {self.kind}"
