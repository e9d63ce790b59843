"""Changes that break a law on purpose: each must be noticed by the engine's tests."""
