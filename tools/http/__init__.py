"""Requests to public addresses: resolved, checked, pinned and bounded."""
