"""The append-only log: append, hash chain, triggers, leases, the path and its tree, search."""
