"""The context engine: pure values and functions, on the standard library and `tools.html` only.

A conversation is an append-only log; the model's input is a `View`, folded from messages and
recorded transformations. `pipeline.prepare` decides before each call what to reduce and proposes it
as data; `edits.apply` is the only function that changes a view, live and at replay.
"""

from __future__ import annotations
