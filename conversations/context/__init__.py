"""The context engine: pure values and functions, standard library only.

A conversation is an append-only log; what the model sees is a `View`, folded from messages and
recorded transformations. `pipeline.prepare` decides before each call what to reduce and proposes it
as data; `edits.apply` is the one function that makes a change happen, live and at replay.
"""

from __future__ import annotations
