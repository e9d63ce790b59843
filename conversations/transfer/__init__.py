"""Conversations in and out: exports, imports, and the formats of other programs."""
