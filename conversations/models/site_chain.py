"""The site's own hash chain, and how far all chains are anchored outside the database.

Append-only rows that belong to no conversation (grants, corrections, booked differences, crossings,
erasures, decisions on MCP servers and invitations, moves of the database, records of prices and
limits) are the links of one chain. Its end is one row, whose lock orders the writers.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from conversations.models.log import Chained


class SiteChain(models.Model):
    #: The end of the chain.
    links = models.PositiveBigIntegerField(default=0)
    chain = models.CharField(max_length=80, blank=True)
    #: How many of its links are anchored.
    anchored = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(id=1), name="one_site_chain"),
        ]

    def __str__(self) -> str:
        return f"the site's chain of {self.links}"


class AnchorMark(models.Model):
    """The last anchor: its number, the digest of its line, and its time."""

    number = models.PositiveBigIntegerField(default=0)
    digest = models.CharField(max_length=80, blank=True)
    written_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(id=1), name="one_anchor_mark"),
        ]

    def __str__(self) -> str:
        return f"anchor {self.number}"


class DatabaseMove(Chained):
    """The whole site came from a database of the other kind; operations/move."""

    source = models.CharField(max_length=10)
    target = models.CharField(max_length=10)
    #: The rows that were moved, and the digest over those of their tables, equal on both sides.
    rows = models.PositiveBigIntegerField()
    digest = models.CharField(max_length=80)
    begun_at = models.DateTimeField()
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"moved from {self.source} to {self.target}"
