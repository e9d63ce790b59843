"""`python -m tests.mutations [NAME...]`: make each mutation and say which ones nobody noticed."""

from __future__ import annotations

import sys

from tests.mutations.run import main

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
