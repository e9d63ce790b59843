"""`manage.py` with an edge that is less patient and has less room, so that tests end soon."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentweb.settings")

import django

django.setup()

from twisted.internet import tcp  # noqa: E402

from agentweb.edge import body_limits, channel, http_server, sockets  # noqa: E402

body_limits.MOST_HELD = 12_000_000
channel.HEAD_SECONDS = channel.PART_SECONDS = 3.0
http_server.SEND_BUFFER = tcp.Server.bufferSize = 8_192
channel.PATIENCE = sockets.PATIENCE = 2.0

from manage import main  # noqa: E402

main()
