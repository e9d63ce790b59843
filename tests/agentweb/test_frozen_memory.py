"""What a server holds from its start on is left out of every collection."""

from __future__ import annotations

import subprocess
import sys

from django.conf import settings

SCRIPT = """
import gc, django
django.setup()
from agentweb.serving import frozen_memory
there = len(gc.get_objects())
frozen_memory.freeze_memory()
print(there, len(gc.get_objects()), gc.get_threshold() == frozen_memory.THRESHOLDS)
"""


def test_what_was_there_at_the_start_is_not_looked_through_again() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=settings.BASE_DIR, check=True, capture_output=True
    )
    there, left, is_set = ran.stdout.split()
    assert int(there) > 50_000
    assert int(left) < int(there) / 100
    assert is_set == b"True"
