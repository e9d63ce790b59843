"""Conversations in and out: exports, imports, the formats of other programs."""
