"""The policy lab: what a policy would have done to a conversation, without network or key.

A recorded conversation is replayed through the engine as if each of its answers were the model's;
the cache, the clock and the summaries are simulated, the engine and the prices are the real ones.
Everything here is pure: files, databases and output are left to the commands.
"""

from __future__ import annotations
