"""Tables and their constraints, nothing else."""

from __future__ import annotations

from conversations.models.attachments import Attachment
from conversations.models.budgets import Budget, BudgetWindow, Grant
from conversations.models.calls import ApiCall, ApiResult, Envelope
from conversations.models.caps import TurnCap
from conversations.models.catalogue import ApiModel, ModelPrice
from conversations.models.erasures import Erasure
from conversations.models.ledger import Crossing, LedgerEntry, Reservation
from conversations.models.log import (
    AppendOnly,
    Blob,
    Chained,
    Conversation,
    Message,
    Transformation,
)
from conversations.models.people import User
from conversations.models.pins import Pin
from conversations.models.proposals import Proposal
from conversations.models.search import SearchText
from conversations.models.turns import ALLOWED, LIVE, Draft, QueuedPrompt, ToolCall, Turn, TurnState

__all__ = [
    "ALLOWED",
    "LIVE",
    "ApiCall",
    "ApiModel",
    "ApiResult",
    "AppendOnly",
    "Attachment",
    "Blob",
    "Budget",
    "BudgetWindow",
    "Chained",
    "Conversation",
    "Crossing",
    "Draft",
    "Envelope",
    "Erasure",
    "Grant",
    "LedgerEntry",
    "Message",
    "ModelPrice",
    "Pin",
    "Proposal",
    "QueuedPrompt",
    "Reservation",
    "SearchText",
    "ToolCall",
    "Transformation",
    "Turn",
    "TurnCap",
    "TurnState",
    "User",
]
