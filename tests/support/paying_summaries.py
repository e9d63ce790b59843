"""Models between which a summary of a literal preset soon pays back.

A summary that costs more than it saves within the expected calls is not requested, and tests have
short conversations: so the one model bills much for what it reads again, and the other one writes
summaries cheaply.
"""

from __future__ import annotations

SUMMARY_PAYS = {"AGENTWEB_MODEL": "claude-opus-5", "AGENTWEB_SUMMARY_MODEL": "claude-haiku-5-5"}
