"""How many tool calls ended how, by tool and state, in the data of a server under test.

Run as a process in that server's environment: `python -m agentweb.bench.call_outcomes`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter


def count_outcomes() -> dict[str, int]:
    from conversations.models import ToolCall

    rows = ToolCall.objects.order_by("name", "state").values_list("name", "state")
    return dict(Counter(f"{name} {state}" for name, state in rows))


if __name__ == "__main__":
    import django

    django.setup()
    sys.stdout.write(json.dumps(count_outcomes()) + "\n")
