"""Outgoing HTTP requests: resolved, checked, pinned to an address and bounded."""
