"""Searching in texts, for tools and for the lab; the standard library only."""
