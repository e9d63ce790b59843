"""Everything that can go wrong, on request."""
