"""Tables and their constraints, nothing else."""

from __future__ import annotations

from conversations.models.budgets import Budget, BudgetWindow, LedgerEntry, Reservation
from conversations.models.calls import ApiCall, ApiResult, Envelope
from conversations.models.catalogue import ApiModel, ModelPrice
from conversations.models.log import (
    AppendOnly,
    Blob,
    Chained,
    Conversation,
    Message,
    Transformation,
)
from conversations.models.people import User
from conversations.models.turns import ALLOWED, LIVE, Draft, ToolCall, Turn, TurnState

__all__ = [
    "ALLOWED",
    "LIVE",
    "ApiCall",
    "ApiModel",
    "ApiResult",
    "AppendOnly",
    "Blob",
    "Budget",
    "BudgetWindow",
    "Chained",
    "Conversation",
    "Draft",
    "Envelope",
    "LedgerEntry",
    "Message",
    "ModelPrice",
    "Reservation",
    "ToolCall",
    "Transformation",
    "Turn",
    "TurnState",
    "User",
]
