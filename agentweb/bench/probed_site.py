"""The site with a probe inside: `python -m agentweb.bench.probed_site --port N`.

It serves like `manage.py serve`, and what the probe has counted at /bench-probe/. Counting costs
time, so processor time is measured on a site without it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from agentweb.bench.turn_probe import TurnProbe, watch_turns

PATH = "/bench-probe/"


def probe_requests(application: Any, probe: TurnProbe) -> Any:
    """Mark the beginning and the end of each sent prompt; serve the counts."""

    async def call(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == PATH:
            await _serve_counts(probe, send)
            return
        is_prompt = scope["type"] == "http" and scope["path"].endswith("/send/")
        if is_prompt:
            probe.mark("asked")

        async def send_and_mark(message: Any) -> None:
            await send(message)
            if is_prompt and message["type"] == "http.response.body":
                probe.mark("taken")

        await application(scope, receive, send_and_mark)

    return call


async def _serve_counts(probe: TurnProbe, send: Any) -> None:
    body = json.dumps(probe.data).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentweb.settings")
    import django

    django.setup()
    from django.core.management import call_command

    from agentweb import asgi

    with watch_turns() as probe:
        asgi.application = probe_requests(asgi.application, probe)
        call_command("serve", *sys.argv[1:])


if __name__ == "__main__":
    main()
