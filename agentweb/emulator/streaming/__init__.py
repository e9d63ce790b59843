"""An answer as server-sent events."""
