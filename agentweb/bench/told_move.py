"""`manage.py move` that says a line for each batch, so that a kill can be aimed at any.

Run as a process in the environment of the site: `python -m agentweb.bench.told_move URL ROWS`.
"""

from __future__ import annotations

import sys


def move_site(url: str, rows: int) -> None:
    """Move the site to `url`, so many rows at once."""
    from django.core.management import call_command

    from conversations.operations.move import site_move

    site_move.BATCH_ROWS, site_move.TOLD_EVERY = rows, 0.0
    call_command("move", "--to", url)


if __name__ == "__main__":
    import django

    django.setup()
    move_site(sys.argv[1], int(sys.argv[2]))
