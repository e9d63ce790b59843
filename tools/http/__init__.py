"""Requests to the outside: resolved, checked, pinned and bounded."""
