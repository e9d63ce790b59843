"""A strict, deterministic stand-in for the Messages API: a demo without a key, and an independent
witness in tests.

A plain ASGI app on the standard library. It shares no code with the application it stands before:
it has its own rules, token counts, cache and prices, so that the two can only agree by both being
right.
"""
